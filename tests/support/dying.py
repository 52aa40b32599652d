"""A process that dies at a chosen round trip to the database: no ROLLBACK, no last words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lockstep.db.connection import Connection
from tests.support.packets import take_apart


def _nothing() -> None:
    pass


class Died(BaseException):
    """The process is gone. Not an Exception: nothing in the product may catch it and go on.

    ``bury`` lets the next process be alive.
    """

    def __init__(self, bury: Callable[[], None] = _nothing) -> None:
        super().__init__("the process died")
        self.bury = bury


def outlive[R](process: Callable[[], R], otherwise: R) -> R:
    """What ``process`` came to, seen from outside of it; ``otherwise`` where it died."""
    try:
        return process()
    except Died as died:
        died.bury()
        return otherwise


@contextmanager
def _around_round_trips(around: Callable[[Connection, Callable[[], Any]], Any]) -> Iterator[None]:
    """Statements of a packet count one by one."""
    real = Connection._run
    with pytest.MonkeyPatch.context() as patched:
        take_apart(patched)
        patched.setattr(
            Connection, "_run", lambda session, text: around(session, lambda: real(session, text))
        )
        yield


def count_round_trips(work: Callable[[], object]) -> int:
    """Run ``work`` to its end; how often it went to the database."""
    trips: list[None] = []

    def around(_: Connection, go: Callable[[], Any]) -> Any:
        trips.append(None)
        return go()

    with _around_round_trips(around):
        work()
    return len(trips)


def die_at(work: Callable[[], object], trip: int, *, after: bool) -> None:
    """Run ``work`` until its ``trip``-th round trip, from 0, and die before or after that."""
    trips: list[None] = []

    def around(session: Connection, go: Callable[[], Any]) -> Any:
        here = len(trips) == trip
        trips.append(None)
        answer = go() if after or not here else None
        if here:
            # The socket just ends, as when the process does; the engine rolls back for it.
            session._session._force_close()  # type: ignore[attr-defined]
            raise Died
        return answer

    with _around_round_trips(around), pytest.raises(Died):
        work()
