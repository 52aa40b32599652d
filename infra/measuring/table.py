"""What is shown of figures: a table of ways, each with published figures beside those from here
where there are any."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

NOTHING: Final = "-"


def say(*lines: str) -> None:
    """At once, however long what comes next takes."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Way:
    """``published`` has one figure for each of the table's columns, or there are none; what was
    not measured is not a number."""

    name: str
    here: Sequence[float]
    published: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """``shows`` says in one line what the figures from here say."""

    question: str
    columns: Sequence[str]
    ways: Sequence[Way]
    shows: str

    def lines(self) -> list[str]:
        """For a terminal, and GitHub's markup as well."""
        names = [name for column in self.columns for name in self._named(column)]
        head, rule = ["", *names], ["---", *["---:"] * len(names)]
        rows = [[way.name, *self._figures(way)] for way in self.ways]
        table = ["| " + " | ".join(row) + " |" for row in _aligned([head, rule, *rows])]
        return [self.question, "", *table, "", self.shows]

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def _is_published(self) -> bool:
        return any(way.published for way in self.ways)

    def _named(self, column: str) -> list[str]:
        return [f"{column}, published", "here"] if self._is_published else [column]

    def _figures(self, way: Way) -> list[str]:
        if not self._is_published:
            return [_text(figure) for figure in way.here]
        published: Sequence[float | None] = way.published or [None] * len(self.columns)
        pairs = zip(published, way.here, strict=True)
        return [_text(figure) for pair in pairs for figure in pair]


def _text(figure: float | None) -> str:
    if figure is None or math.isnan(figure):
        return NOTHING
    return f"{figure:,.1f}" if isinstance(figure, float) else f"{figure:,}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
