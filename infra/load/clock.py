"""Events in the order of time; those of one moment in the order in which they were planned."""

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any


class Clock:
    """``now`` is the time of the event that happens."""

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = count()

    def at(self, when: float, happens: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._planned, (when, next(self._serial), happens, arguments))

    def feed(self, times: Iterable[float], happens: Callable[[], None]) -> None:
        """Plan an event for each of ``times``, which ascend, one ahead: a million planned at once
        would make every step slower."""
        coming = iter(times)

        def come() -> None:
            plan_next()
            happens()

        def plan_next() -> None:
            if (when := next(coming, None)) is not None:
                self.at(when, come)

        plan_next()

    def run(self) -> None:
        """Let everything happen that is planned, and what follows from it."""
        planned, pop = self._planned, heapq.heappop
        while planned:
            self.now, _, happens, arguments = pop(planned)
            happens(*arguments)
