"""Transactions that are retried as a whole, or not at all.

The contract of ``work`` in ``in_transaction``: it begins by its business key (request key, inbox
id, order, reservation) and so may run again after a COMMIT whose answer was lost: the second run
finds what the first one did. It calls nothing outside the database.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final, LiteralString, Protocol

from lockstep.db import connection
from lockstep.db.connection import Arguments, Connection, Row
from lockstep.db.errors import ConnectionLost, Contended, DatabaseFault, DuplicateKey
from lockstep.errors import InvariantBroken, TimeShort, TryAgain
from lockstep.observability import count

WITHIN_SECONDS: Final = 5.0
# Jittered and doubling: waiters on one key that all got 1213 must not meet again at once.
_PAUSE_SECONDS_MIN: Final = 0.02
_PAUSE_SECONDS_MAX: Final = 0.32
# The system's chance: copies of one snapshot would share a generator's state, and their pauses.
_CHANCE: Final = random.SystemRandom()


class Reader(Protocol):
    """What a read needs: a transaction, or a session outside of one."""

    def one(self, sql: LiteralString, arguments: Arguments = ()) -> Row | None: ...

    def all(self, sql: LiteralString, arguments: Arguments = ()) -> list[Row]: ...


class RollBack[T](Exception):
    """Leave no trace of this transaction, and answer ``outcome``."""

    def __init__(self, outcome: T) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Tx:
    """An open transaction. Store functions take it; only ``in_transaction`` makes one."""

    def __init__(self, session: Connection, deadline: float) -> None:
        self._session = session
        self._deadline = deadline
        self.committed_actions: list[Callable[[], None]] = []

    def execute(self, sql: LiteralString, arguments: Arguments = ()) -> int:
        self._check_time()
        return self._session.execute(sql, arguments)

    def insert(self, sql: LiteralString, arguments: Arguments = ()) -> int:
        self._check_time()
        return self._session.insert(sql, arguments)

    def insert_many(self, sql: LiteralString, rows: Sequence[Arguments]) -> None:
        self._check_time()
        self._session.insert_many(sql, rows)

    def one(self, sql: LiteralString, arguments: Arguments = ()) -> Row | None:
        self._check_time()
        return self._session.one(sql, arguments)

    def all(self, sql: LiteralString, arguments: Arguments = ()) -> list[Row]:
        self._check_time()
        return self._session.all(sql, arguments)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run ``action`` once this transaction is durable. It must not raise."""
        self.committed_actions.append(action)

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeShort("the operation's time is over")


def in_transaction[T](work: Callable[[Tx], T], *, within_seconds: float = WITHIN_SECONDS) -> T:
    """Run ``work`` in one transaction and commit it; the value that ``work`` returned.

    1205, 1213 and a lost connection roll the whole transaction back and run it again, pausing a
    little, while time remains. Raises TryAgain when it does not, InvariantBroken for a duplicate
    that ``work`` did not expect, and whatever ``work`` raises.
    """
    deadline = time.monotonic() + within_seconds
    pause = _PAUSE_SECONDS_MIN
    while True:
        try:
            return _once(work, deadline)
        except DuplicateKey as unexpected:  # whoever expected it has caught it
            raise InvariantBroken(str(unexpected)) from unexpected
        except (Contended, ConnectionLost) as fault:
            pause_for = _CHANCE.uniform(pause / 2, pause)
            if time.monotonic() + pause_for >= deadline:
                count("TransactionRetriesUsedUp")
                raise TryAgain(str(fault)) from fault
            time.sleep(pause_for)
            pause = min(pause * 2, _PAUSE_SECONDS_MAX)


def _once[T](work: Callable[[Tx], T], deadline: float) -> T:
    session = _begin()
    tx = Tx(session, deadline)
    try:
        outcome = work(tx)
        session.execute("COMMIT")
    except RollBack as leave:
        _roll_back(session)
        return leave.outcome  # type: ignore[no-any-return]
    except ConnectionLost:
        connection.discard()
        raise
    except BaseException:
        _roll_back(session)
        raise
    for action in tx.committed_actions:
        action()
    return outcome


def _begin() -> Connection:
    """BEGIN; on a session that had died while it was idle, once more on a new one. To connect is
    not tried twice: it takes as long as a caller may wait."""
    session = connection.current()
    try:
        session.execute("BEGIN")
    except ConnectionLost:
        connection.discard()
        session = connection.current()
        session.execute("BEGIN")
    return session


def _roll_back(session: Connection) -> None:
    """A session that cannot roll back is dropped: its end rolls back for it."""
    try:
        session.execute("ROLLBACK")
    except DatabaseFault:
        connection.discard()


def read[T](query: Callable[[Reader], T]) -> T:
    """Run a plain read outside any transaction; once more if the idle session had died.

    Raises TryAgain.
    """
    try:
        session = connection.current()
        try:
            return query(session)
        except ConnectionLost:
            connection.discard()
            return query(connection.current())
    except ConnectionLost as fault:
        connection.discard()
        raise TryAgain(str(fault)) from fault
