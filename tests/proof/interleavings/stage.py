"""Where sides play a case: one step at a time, whose it is being chosen by the case.

A side that was told to go takes one step, and either comes to its next stop, or ends, or stands
behind a lock of another side. The engine's table of lock waits tells which: nothing is concluded
from time, so that one order of steps is the same history each time.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from tests.proof.interleavings.sides import PATIENCE_SECONDS, Side, Work
from tests.support.database import Database, Row

# Between two looks at the engine's table, while a statement runs.
_LOOK_SECONDS: Final = 0.001
# More than any two or three operations need, with every retry that an order of steps can cause.
_STEPS_MAX: Final = 400

# By transaction and not by thread: the table names the thread that wrote a lock down, and that may
# be another one's: who waits for an implicit lock makes it explicit, and who changes a page writes
# down anew what others hold and want of it.
_WAITS: Final = """
SELECT w.requesting_engine_transaction_id AS who, w.blocking_engine_transaction_id AS for_whom
FROM performance_schema.data_lock_waits AS w
JOIN performance_schema.data_locks AS l ON l.engine_lock_id = w.requesting_engine_lock_id
WHERE l.object_schema = %s
"""

# Of the names of the sides that could take the next step, the one that does.
type Choose = Callable[[str], str]


class Stage:
    """``names`` are the sides', one letter each. Their threads and connections serve one case after
    another."""

    def __init__(self, database: Database, names: str) -> None:
        self.sides = [Side(name) for name in names]
        self.schedule = ""
        self.told: list[str] = []
        self._database = database
        self._waits: list[Row] = []

    def play(self, works: Sequence[Work], choose: Choose) -> None:
        """Run the sides to their end, a step at a time. ``schedule`` has a letter for each step,
        whose it was, and ``told`` a line."""
        self.schedule, self.told = "", []
        try:
            for side, work in zip(self.sides, works, strict=True):
                side.begin(work)
            self._until_still()
            while ready := "".join(side.name for side in self.sides if side.is_ready):
                assert len(self.schedule) < _STEPS_MAX, "it has no end"
                self.schedule += choose(ready)
                self._take(next(s for s in self.sides if s.name == self.schedule[-1]))
            assert all(side.is_over for side in self.sides), "all wait"
        except BaseException:
            self._abandon()
            raise

    def close(self) -> None:
        for side in self.sides:
            side.close()

    def _take(self, side: Side) -> None:
        step = side.step
        side.go()
        side.wait(_LOOK_SECONDS)
        self._until_still()
        self.told.append(f"{side.name} {step}{'' if side.is_still else '  -- and waits'}")

    def _until_still(self) -> None:
        """Until every side stands still, or behind a lock of one that does."""
        over = time.monotonic() + PATIENCE_SECONDS
        while moving := [side for side in self.sides if not side.is_still]:
            # The same as before, because the engine may show what changes while it looks.
            before, self._waits = self._waits, self._database.rows(_WAITS, (self._database.name,))
            all_wait = len({row["who"] for row in self._waits}) == len(moving)
            if all_wait and self._waits == before and not _is_deadlock(before):
                for side in moving:
                    assert side.runs_along is None, f"no step, but it waits: {side.runs_along}"
                return
            for side in moving:
                side.wait(_LOOK_SECONDS)
            assert time.monotonic() < over, "it neither ends nor waits"

    def _abandon(self) -> None:
        running = [side for side in self.sides if not side.is_over]
        for side in running:
            side.abandon()
        over = time.monotonic() + PATIENCE_SECONDS
        for side in running:
            while not side.is_over:
                side.wait(_LOOK_SECONDS)
                assert time.monotonic() < over, f"side {side.name} hangs"


def _is_deadlock(waits: Sequence[Row]) -> bool:
    """Whether the engine is about to choose a victim, which it does apart from the statement."""
    behind: dict[int, set[int]] = {}
    for row in waits:
        behind.setdefault(row["who"], set()).add(row["for_whom"])

    def reached(start: int) -> set[int]:
        found, look_at = set[int](), [start]
        while look_at:
            news = behind.get(look_at.pop(), set()) - found
            found |= news
            look_at += news
        return found

    return any(transaction in reached(transaction) for transaction in behind)
