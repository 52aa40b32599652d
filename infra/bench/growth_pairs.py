"""A path beside a short and a long past, in turns, and what the long one leaves of its throughput.

Repeat k's ratio is that of two runs that followed each other, so a slow minute weighs on both. The
median of the ratios is what is held; its lower bound is distribution-free: the median of a path's
true ratios is below the k-th smallest of n with the chance that a fair coin falls on one side less
than k times in n. The bound is the largest k for which that is at most one in ten; of seven that is
the second smallest, one in sixteen.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from infra.bench.crowd import Crowd
from infra.bench.growth_paths import PATHS, Task
from infra.bench.growth_present import Side, a_present, read_who_comes

MEDIAN_LEAST: Final = 0.9
BOUND_LEAST: Final = 0.85
CHANCE_MOST: Final = 0.1


@dataclass
class Pairs:
    """What was done a second, repeat by repeat."""

    path: str
    short: list[float] = field(default_factory=list)
    long: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [long / short for short, long in zip(self.short, self.long, strict=True)]

    @property
    def rates(self) -> tuple[float, float]:
        """The medians beside the short past and beside the long one."""
        return statistics.median(self.short), statistics.median(self.long)

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    @property
    def bound(self) -> float:
        return lower_bound(self.ratios)

    @property
    def holds(self) -> bool:
        return self.median >= MEDIAN_LEAST and self.bound >= BOUND_LEAST

    def document(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "short_per_second": [round(run, 1) for run in self.short],
            "long_per_second": [round(run, 1) for run in self.long],
            "ratios": [round(ratio, 3) for ratio in self.ratios],
            "median": round(self.median, 3),
            "lower_bound": round(self.bound, 3),
            "holds": self.holds,
        }


def lower_bound(ratios: Sequence[float]) -> float:
    """Below this the true median lies with a chance of at most CHANCE_MOST; the smallest of them
    where there are too few to say so."""
    ascending, n = sorted(ratios), len(ratios)
    below, k = 0, 0
    while k < n and (below := below + math.comb(n, k)) <= CHANCE_MOST * 2**n:
        k += 1
    return ascending[max(k, 1) - 1]


@dataclass
class Comparison:
    """The long side's runs follow the short side's; what does not hold is added to ``wrong``."""

    crowd: Crowd
    short: Side
    long: Side
    seconds: float
    wrong: list[str] = field(default_factory=list)

    def measure(self, path: str, repeats: int) -> Pairs:
        pairs = Pairs(path)
        for side in (self.short, self.long):
            read_who_comes(side)
            self._run(path, side)
        for _ in range(repeats):
            pairs.short.append(self._run(path, self.short))
            pairs.long.append(self._run(path, self.long))
        return pairs

    def _run(self, name: str, side: Side) -> float:
        path = PATHS[name]
        orders = path.orders(self.seconds)
        task = Task(name, side.ground.schema, side.past, orders, side.members)
        with a_present(side, path.status, orders):
            outcome = self.crowd.run(task, path.clients, 0, self.seconds)
            if path.done is not None:
                [done] = side.ground.row(f"SELECT COUNT(*) FROM {path.done.format(past=side.past)}")
                if done != outcome.done:
                    self.wrong.append(
                        f"{name} of {side.ground.schema}: {outcome.done} done, {done} in the tables"
                    )
        return outcome.per_second
