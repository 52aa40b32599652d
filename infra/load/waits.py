"""How long many waited: what half of them, 99 of a hundred, and the last one saw."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Waits:
    """In seconds."""

    count: int
    mean: float
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self:
        """By the nearest rank: a wait that somebody had, never one in between."""
        ascending = sorted(seconds)
        count = len(ascending)
        if not count:
            return cls(0, 0, 0, 0, 0)
        p50, p99 = (ascending[-(-count * share // 100) - 1] for share in (50, 99))
        return cls(count, sum(ascending) / count, p50, p99, ascending[-1])
