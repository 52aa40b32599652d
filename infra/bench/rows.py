"""A way at so many clients and so long a round trip: its runs, and what they came to."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.bench.crowd import Crowd, Outcome
from infra.bench.oscar import OscarAllocate
from infra.bench.way import Verdict, Way
from infra.measuring.ground import Ground


@dataclass(frozen=True)
class Case:
    """``path`` is what is done: reserve, confirm, release, place, notice."""

    path: str
    way: Way | OscarAllocate
    clients: int
    wait_ms: float = 0
    batch: int | None = None

    @property
    def skus(self) -> int:
        return int(getattr(self.way, "skus", 1))

    @property
    def label(self) -> str:
        """What it is called in a table, where round trips are columns."""
        batch = "" if self.batch is None else f", batches of {self.batch:,}"
        buckets = getattr(self.way, "buckets", 1)
        spread = "" if buckets == 1 else f" over {buckets} buckets"
        return f"{self.way.name}{spread}{batch}, {self._crowd}"

    @property
    def _crowd(self) -> str:
        noun = "worker" if self.batch is not None else "client"
        return f"{self.clients} {noun}{'s' if self.clients > 1 else ''}"


@dataclass
class Row:
    """The runs of a case, in the order of the rounds, so that two rows can be paired."""

    section: str
    case: Case
    runs: list[float] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return statistics.median(self.runs)

    def millis(self, share: float) -> float:
        return statistics.median(outcome.millis(share) for outcome in self.outcomes)

    @property
    def trips(self) -> float:
        """Round trips to the database for one order."""
        return statistics.median(
            outcome.trips / verdict.done if verdict.done else float("nan")
            for outcome, verdict in zip(self.outcomes, self.verdicts, strict=True)
        )

    @property
    def lost(self) -> int:
        return max(verdict.lost for verdict in self.verdicts)

    @property
    def done(self) -> int:
        return max(verdict.done for verdict in self.verdicts)

    @property
    def wrong(self) -> list[str]:
        """What must not be; of a way that is here to lose, only what else does not hold."""
        said = {text for verdict in self.verdicts for text in verdict.broken}
        if self.lost and not self.case.way.may_lose:
            said.add(f"{self.lost} pieces were lost or sold twice")
        return [f"{self.section}, {self.case.label}: {text}" for text in sorted(said)]

    def document(self) -> Mapping[str, Any]:
        return {
            "section": self.section,
            "path": self.case.path,
            "way": self.case.way.name.partition(":")[0],
            "name": self.case.way.name,
            "skus": self.case.skus,
            "clients": self.case.clients,
            "rtt_ms": self.case.wait_ms,
            "batch": self.case.batch,
            "per_second": round(self.per_second, 1),
            "p50_ms": _number(self.millis(0.5), 2),
            "p99_ms": _number(self.millis(0.99), 2),
            "trips": _number(self.trips, 3),
            "runs": [round(run, 1) for run in self.runs],
            "done": self.done,
            "lost": self.lost,
        }


def _number(figure: float, digits: int) -> float | None:
    """JSON has none for what is not a number."""
    return None if math.isnan(figure) else round(figure, digits)


def run_once(ground: Ground, crowd: Crowd, row: Row, seconds: float) -> None:
    """Add one run to ``row``, on tables made anew, and judge it."""
    case, way = row.case, row.case.way
    way.prepare(ground)
    if isinstance(way, OscarAllocate):
        outcome = way.run(ground, case.clients, case.wait_ms, seconds)
    else:
        outcome = crowd.run(way, case.clients, case.wait_ms, seconds)
    verdict = way.judge(ground, outcome)
    row.outcomes.append(outcome)
    row.verdicts.append(verdict)
    row.runs.append(verdict.done / outcome.seconds if outcome.seconds else 0.0)


def interleaved(
    ground: Ground, crowd: Crowd, section: str, cases: Sequence[Case], repeats: int, seconds: float
) -> list[Row]:
    """A B C, A B C, …: whatever slows the machine down for a while slows all of them."""
    rows = [Row(section, case) for case in cases]
    for _ in range(repeats):
        for row in rows:
            run_once(ground, crowd, row, seconds)
    return rows
