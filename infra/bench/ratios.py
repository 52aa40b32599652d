"""Ours over the seeds', each round's pair by itself, and what is asked of it.

The seeds' best number of clients is the one whose median is the best; the ratio is the median of
the rounds' ratios to that row, so that a slow minute of the machine weighs on both sides alike.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from infra.bench.rows import Row
from infra.bench.sections import of


@dataclass(frozen=True, slots=True)
class Threshold:
    says: str
    wanted: float
    at: Literal["least", "most"] = "least"

    def holds(self, ratio: float) -> bool:
        return ratio >= self.wanted if self.at == "least" else ratio <= self.wanted


THRESHOLDS: Final = {
    "hot_best_0ms": Threshold("holds a second on one SKU, the best batch", 20),
    "hot_100_0ms": Threshold("the same, batches of 100", 8),
    "hot_best_1ms": Threshold("the best batch, 1 ms a round trip", 50),
    "confirm_100_0ms": Threshold("confirms a second, events of 100", 10),
    "place_wall_1ms": Threshold("time for an order and its hold, 1 ms", 0.75, "most"),
    "place_throughput_0ms": Threshold("orders with their holds a second", 1.3),
    "cold_import": Threshold("import of a queue worker, over SAM's layer", 0.5, "most"),
}


@dataclass(frozen=True, slots=True)
class Ratio:
    """``pairs`` are the rounds'; ``between`` says what was divided by what."""

    value: float
    pairs: Sequence[float]
    between: str


def of_rows(rows: Sequence[Row]) -> dict[str, Ratio]:
    """The ratios that ``rows`` are enough for."""
    hot = {wait: of(rows, "hot", wait, "ours") for wait in (0, 1)}
    found = {
        "hot_best_0ms": _ratio(hot[0], of(rows, "hot", 0, "the seeds'")),
        "hot_100_0ms": _ratio(
            [row for row in hot[0] if row.case.batch == 100], of(rows, "hot", 0, "the seeds'")
        ),
        "hot_best_1ms": _ratio(hot[1], of(rows, "hot", 1, "the seeds'")),
        "confirm_100_0ms": _ratio(
            [row for row in of(rows, "confirm", 0, "ours") if row.case.batch == 100],
            of(rows, "confirm", 0, "the seeds'"),
        ),
        # Of as many clients the time of an order is the inverse of how many there are a second.
        "place_wall_1ms": _ratio(of(rows, "place", 1, "the seeds'"), of(rows, "place", 1, "ours")),
        "place_throughput_0ms": _ratio(
            of(rows, "place", 0, "ours"), of(rows, "place", 0, "the seeds'")
        ),
    }
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def _ratio(above: Sequence[Row], below: Sequence[Row]) -> Ratio | None:
    if not above or not below:
        return None
    one, other = (max(rows, key=lambda row: row.per_second) for rows in (above, below))
    pairs = [a / b for a, b in zip(one.runs, other.runs, strict=False)]
    return Ratio(statistics.median(pairs), pairs, f"{one.case.label} / {other.case.label}")
