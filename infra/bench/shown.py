"""The tables of a run: each section with a column for each round-trip time, then the ratios."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Final

from infra.bench.ratios import THRESHOLDS
from infra.bench.rows import Row
from infra.measuring.table import Table, Way

COLUMNS: Final = (
    *("0 ms: a second", "p50 ms", "p99 ms", "1 ms: a second", "p50 ms", "p99 ms"),
    *("round trips", "lost"),
)
QUESTIONS: Final = {
    "scan": "Holds on one hot SKU: how large a batch",
    "workers": "Holds on one hot SKU: a second worker",
    "hot": "Holds on one hot SKU: ours beside the seeds' reserve",
    "confirm": "Confirm on one hot SKU",
    "place": "Orders with their holds, a thousand SKUs",
    "in line": "Orders for one hot SKU, which line up for it",
    "release": "Release on one hot SKU",
    "cancel": "Cancel on one hot SKU",
    "notice": "Payment notices",
    "beside": "One hot SKU, other ways and limits",
    "thousand": "A thousand SKUs",
    "scarce": "More buyers than stock: 200 pieces of one SKU",
}


def tables(rows: Sequence[Row]) -> list[Table]:
    sections = dict.fromkeys(row.section for row in rows)
    return [_table(name, [row for row in rows if row.section == name]) for name in sections]


def _table(section: str, rows: Sequence[Row]) -> Table:
    labels = dict.fromkeys(row.case.label for row in rows)
    ways = [Way(label, _figures([r for r in rows if r.case.label == label])) for label in labels]
    runs = sorted({len(row.runs) for row in rows})
    return Table(
        QUESTIONS[section],
        COLUMNS,
        ways,
        f"Medians of {' or '.join(map(str, runs))} runs; round trips for one order, "
        "latencies of a call or a transaction.",
    )


def _figures(rows: Sequence[Row]) -> list[float]:
    figures: list[float] = []
    for wait in (0, 1):
        row = next((row for row in rows if row.case.wait_ms == wait), None)
        figures += (
            [nan, nan, nan]
            if row is None
            else [round(row.per_second), row.millis(0.5), row.millis(0.99)]
        )
    return [*figures, rows[0].trips, max(row.lost for row in rows)]


def ratio_lines(ratios: Mapping[str, float]) -> list[str]:
    lines = [
        "| ours over the seeds' |  | measured | asked |  |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    for name, threshold in THRESHOLDS.items():
        if name not in ratios:
            continue
        verdict = "holds" if threshold.holds(ratios[name]) else "MISSED"
        asked = f"at {threshold.at} {threshold.wanted:g}"
        lines.append(f"| `{name}` | {threshold.says} | {ratios[name]:.2f} | {asked} | {verdict} |")
    return lines
