"""Faults that only a death shows. They are planted in the functions' own processes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

from lockstep.db import connection
from lockstep.db.connection import Connection
from tests.proof.kills import lives
from tests.proof.kills.section import FUNCTIONS
from tests.proof.plants import Plant, instead
from tests.proof.section import Form


def answers_before_it_commits() -> Callable[[], None]:
    """The last transaction's COMMIT is sent when the answer is out."""
    real, put_off = Connection.execute, list[Connection]()

    def execute(session: Connection, sql: Any, arguments: Any = ()) -> int:
        if sql == "COMMIT":
            put_off.append(session)
            return 0
        return real(session, sql, arguments)

    def commit() -> None:
        while put_off:
            real(put_off.pop(), "COMMIT")

    Connection.execute = execute  # type: ignore[assignment, method-assign]
    return commit


def keeps_a_dead_connection() -> Callable[[], None]:
    """A connection that was lost is used on and on."""
    connection.discard = lambda: None
    return lambda: None


@contextmanager
def _in_the_shortest_life() -> Iterator[None]:
    """An order is placed, and whoever commits that dies of it. The relay is called after that, so
    that the life does not end before the commit has come by."""
    with ExitStack() as planted:
        make = partial(partial, plant=answers_before_it_commits)
        planted.enter_context(instead(lives, "live", make))
        planted.enter_context(instead(lives, "KILLS", lambda _: {"commit": (1, 1)}))
        planted.enter_context(instead(lives, "ACTS", lambda _: 0))
        planted.enter_context(instead(lives, "_LAST", lambda _: ("relay",)))
        yield


PLANTS: Final = (
    Plant(
        "a function answers before it commits",
        _in_the_shortest_life,
        FUNCTIONS,
        form=Form.BOUNDED,
    ),
)
