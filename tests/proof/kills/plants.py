"""Faults that are planted in the functions' processes, to see that the section sees them."""

from collections.abc import Callable
from typing import Any

from lockstep.db import connection
from lockstep.db.connection import Connection


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
