"""What the engine's errors mean here, classified by errno, never by class or text.

PyMySQL raises 1213, 1205, 2013 and a broken CHECK alike as OperationalError, so its classes do not
help.

DatabaseFault
├── DuplicateKey          1062: the named unique key holds that value already
├── LockNotAvailable      3572: NOWAIT met a lock
├── Contended             1205, 1213: roll everything back, then the whole transaction may run again
├── ConnectionLost        the session is gone, and with it any transaction that had not sent COMMIT
│   └── ServerUnfit       1290, 1836, 1040 …: alive, but not able to write now (failover, full)
InvariantBroken           a CHECK, foreign key or range refused the row (lockstep.errors)
"""

import re
from typing import Final

import pymysql

from lockstep.errors import InvariantBroken

_CONTENDED: Final = frozenset({1205, 1213})
# 0 is PyMySQL's InterfaceError on a connection that it closed itself after a read time-out.
# 2026 is a server that offers no TLS where we insist on it.
_LOST: Final = frozenset({0, 2003, 2006, 2013, 2014, 2026, 2055, 1053, 1927, 4031})
# Read-only after a failover, or no room: another connection may reach a server that can.
_UNFIT: Final = frozenset({1290, 1792, 1836, 1040, 1203})
# CHECK, foreign key, out of range, too long, not null, bad value, division by zero in strict mode.
_BROKEN: Final = frozenset({3819, 1451, 1452, 1264, 1690, 1406, 1048, 1366, 1365})

# Their texts name constraints; the others' may quote a value.
_NAMING: Final = frozenset({3819, 1451, 1452})

_DUPLICATE_KEY_NAME: Final = re.compile(r"for key '(?:[^'.]*\.)?([^']+)'$")


class DatabaseFault(Exception):
    """An engine error that callers tell apart."""


class DuplicateKey(DatabaseFault):
    """A row with this unique value exists; ``key`` is the index that says so."""

    def __init__(self, key: str) -> None:
        super().__init__(f"duplicate entry for key {key}")
        self.key = key


class LockNotAvailable(DatabaseFault):
    """Somebody holds the row right now, and NOWAIT was asked for."""


class Contended(DatabaseFault):
    """A deadlock or a lock wait time-out: this transaction must be rolled back as a whole."""


class ConnectionLost(DatabaseFault):
    """The session ended under us."""


class ServerUnfit(ConnectionLost):
    """The server answers but cannot take writes: drop the connection and look for a better one."""


def translate(error: pymysql.MySQLError) -> Exception:
    """The fault that ``error`` is, or ``error`` itself where nobody branches on it."""
    errno = error.args[0] if error.args and isinstance(error.args[0], int) else None
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    if errno == 1062:
        found = _DUPLICATE_KEY_NAME.search(message)
        return DuplicateKey(found.group(1) if found else "")
    if errno == 3572:
        return LockNotAvailable(message)
    if errno in _BROKEN:
        return InvariantBroken(f"{errno}: {message if errno in _NAMING else 'a value was refused'}")
    for errnos, fault in (
        (_CONTENDED, Contended),
        (_LOST, ConnectionLost),
        (_UNFIT, ServerUnfit),
    ):
        if errno in errnos:
            return fault(f"{errno}: {message}")
    return error
