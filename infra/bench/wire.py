"""What a round trip takes: a wait in the driver, the same for everybody who speaks through it.

Every command of PyMySQL, a statement as well as BEGIN and COMMIT, leaves through one method, and
its answer is read before the next may go. The wait stands before that method, so it is added to
what the server takes, and a row that is locked stays locked through it, as with a network. Several
statements in one packet are one command, and wait once. To connect is not waited for.

The commands are counted, too: what a way costs in round trips shows what a longer way to the
database would cost it.
"""

import time
from itertools import count
from typing import Any

from pymysql.connections import Connection

_send = Connection._execute_command  # type: ignore[attr-defined]
_wait_seconds = 0.0
_sent = count()  # one of the few counters that threads may share


def take(milliseconds: float) -> None:
    """From now on, in this process, a round trip takes so much longer."""
    global _wait_seconds  # noqa: PLW0603 - the driver has one method for all connections
    _wait_seconds = milliseconds / 1000
    Connection._execute_command = _wait_and_send  # type: ignore[attr-defined]


def trips() -> int:
    """How many round trips this process has made; to ask is counted as none."""
    global _sent  # noqa: PLW0603
    so_far = next(_sent)
    _sent = count(so_far)
    return so_far


def _wait_and_send(self: Any, command: int, sql: Any) -> Any:
    if _wait_seconds:
        time.sleep(_wait_seconds)
    next(_sent)
    return _send(self, command, sql)
