"""What was measured: figures.json, and in its place whatever `make bench` found on this machine.

Each figure there says by which ``row`` of bench.json it is replaced: one that has these values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from infra.load import documents
from infra.load.errors import ModelError
from infra.local.paths import LOCAL

FILE: Final = Path(__file__).with_name("figures.json")
BENCH: Final = LOCAL / "bench.json"
ERROR: Final = "BAD_FIGURES"
PER_SECOND: Final = "per_second"


@dataclass(frozen=True, slots=True)
class Line:
    """What a batch of n takes: ``fixed`` + ``each`` · n seconds."""

    fixed: float
    each: float

    def seconds(self, n: int) -> float:
        return self.fixed + self.each * n

    @classmethod
    def through(cls, points: Iterable[tuple[int, float]]) -> Self:
        """The line with the least squares of relative errors through (n, seconds): no batch size
        counts for more because its batches take longer.

        With w = 1/t² the sums to minimise are Σ w (t - a - b n)²; their normal equations give a, b.
        """
        weighted = [(1 / seconds**2, n, seconds) for n, seconds in points]
        if len({n for _, n, _ in weighted}) < 2:
            raise ModelError(ERROR, "a line needs batches of two sizes")
        w, wn, wnn = (sum(w * n**k for w, n, _ in weighted) for k in (0, 1, 2))
        wt = sum(w * t for w, _, t in weighted)
        wnt = sum(w * n * t for w, n, t in weighted)
        each = (w * wnt - wn * wt) / (w * wnn - wn**2)
        fixed = max(0.0, (wt - each * wn) / w)
        if each <= 0:
            raise ModelError(ERROR, "larger batches of the decider take no longer than small ones")
        return cls(fixed, each)


@dataclass(frozen=True, slots=True)
class Figures:
    machine: str
    sources: Sequence[str]
    cores: int
    per_second: Mapping[str, float]
    says: Mapping[str, str]
    decide: Line

    @classmethod
    def read(cls, bench: Path | None = None, path: Path = FILE) -> Self:
        """``bench`` must be there if it is given; otherwise .local/bench.json may be."""
        document = documents.read(path, ERROR)
        entries = document.get("figures")
        if not isinstance(entries, dict):
            raise ModelError(ERROR, f"{path} has no figures")
        here = _here(bench)
        rates, says = {}, {}
        for name, entry in entries.items():
            found = _measured(entry.get("row"), here.get("rows", []))
            rates[name] = documents.number({name: entry.get(PER_SECOND)}, name, ERROR, least=1e-9)
            says[name] = str(entry.get("says", ""))
            if found is not None:
                rates[name], says[name] = found, "measured here"
        sources = [f"figures.json: {document['source']}"]
        if here:
            replaced = sum(text == "measured here" for text in says.values())
            sources.append(
                f"{bench or BENCH} ({here.get('machine', 'machine not named')}): {replaced} of "
                f"{len(rates)} figures"
            )
        cores = int(documents.number(document, "cores", ERROR, least=1))
        return cls(str(document["machine"]), sources, cores, rates, says, _line(entries, rates))

    def work(self, name: str) -> float:
        """The measured machine's seconds for one of ``name``."""
        return 1 / self.per_second[name]

    def lines(self) -> Iterator[str]:
        for name, rate in self.per_second.items():
            yield f"{name} {rate:,.0f}/s: {self.says[name]}"


def _here(bench: Path | None) -> Mapping[str, Any]:
    if bench is None and not BENCH.exists():
        return {}
    path = bench or BENCH
    document = documents.read(path, ERROR)
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ModelError(ERROR, f"{path} has no list of rows")
    return document


def _measured(wanted: Mapping[str, Any] | None, rows: Iterable[Mapping[str, Any]]) -> float | None:
    if not wanted:
        return None
    for row in rows:
        if wanted.items() <= row.items():
            return documents.number(row, PER_SECOND, ERROR, least=1e-9)
    return None


def _line(entries: Mapping[str, Any], rates: Mapping[str, float]) -> Line:
    sizes = {name: entry["batch"] for name, entry in entries.items() if name.startswith("decide")}
    return Line.through((n, n / rates[name]) for name, n in sizes.items())
