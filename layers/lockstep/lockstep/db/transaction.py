"""Transactions that are retried as a whole, or not at all.

The contract of ``work`` in ``in_transaction``: it begins by its business key (request key, inbox
id, order, reservation) and so may run again after a COMMIT whose answer was lost: the second run
finds what the first one did. It calls nothing outside the database.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, LiteralString, Protocol

from lockstep.db import connection
from lockstep.db.connection import Answer, Arguments, Connection, Row, only
from lockstep.db.errors import ConnectionLost, Contended, DatabaseFault, DuplicateKey
from lockstep.db.packet import Packet, with_lists
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
    """An open transaction. Store functions take it; only ``in_transaction`` makes one.

    BEGIN goes with its first statement, in one round trip.
    """

    def __init__(self, session: Connection, deadline: float) -> None:
        self._session = session
        self._deadline = deadline
        self.has_begun = False
        self.committed_actions: list[Callable[[], None]] = []

    def execute(self, sql: LiteralString, arguments: Arguments = ()) -> int:
        return self._run(sql, arguments).changed

    def insert(self, sql: LiteralString, arguments: Arguments = ()) -> int:
        return self._run(sql, arguments).new_id

    def insert_many(self, sql: LiteralString, rows: Sequence[Arguments]) -> None:
        for text in with_lists(self._session, sql, rows):
            self._send([text])

    def one(self, sql: LiteralString, arguments: Arguments = ()) -> Row | None:
        return only(self.all(sql, arguments))

    def all(self, sql: LiteralString, arguments: Arguments = ()) -> list[Row]:
        return self._run(sql, arguments).rows

    @contextmanager
    def packet(self) -> Iterator[Packet]:
        """What is written to it in the block is sent at the end of the block."""
        packet = Packet(self._session, self._send)
        yield packet
        packet.send()

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run ``action`` once this transaction is durable. It must not raise."""
        self.committed_actions.append(action)

    def commit(self) -> None:
        if self.has_begun:
            self._session.execute("COMMIT")

    def roll_back(self) -> None:
        """A session that cannot roll back is dropped: its end rolls back for it."""
        if not self.has_begun:
            return
        try:
            self._session.execute("ROLLBACK")
        except DatabaseFault:
            connection.discard()

    def _run(self, sql: LiteralString, arguments: Arguments) -> Answer:
        return self._send([self._session.compose(sql, arguments)])[0]

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeShort("the operation's time is over")

    def _send(self, texts: Sequence[str]) -> list[Answer]:
        self._check_time()
        if self.has_begun:
            return self._session.send_together(texts)
        self.has_begun = True
        try:
            return self._session.send_together(["BEGIN", *texts])[1:]
        except ConnectionLost:
            # It had died while it was idle, so once more on a new one. To connect is not tried
            # twice: it takes as long as a caller may wait.
            connection.discard()
            self._session = connection.current()
            return self._session.send_together(["BEGIN", *texts])[1:]


class _OneStatement(Tx):
    """A transaction that ends with its first statement; another would be one of its own."""

    def _send(self, texts: Sequence[str]) -> list[Answer]:
        if self.has_begun:
            raise InvariantBroken("one statement was promised, and there is a second")
        self._check_time()
        self.has_begun = True
        return self._session.send_together(texts)


def in_transaction[T](work: Callable[[Tx], T], *, within_seconds: float = WITHIN_SECONDS) -> T:
    """Run ``work`` in one transaction and commit it; the value that ``work`` returned.

    1205, 1213 and a lost connection roll the whole transaction back and run it again, pausing a
    little, while time remains. Raises TryAgain when it does not, InvariantBroken for a duplicate
    that ``work`` did not expect, and whatever ``work`` raises.
    """
    return _retried(_once, work, time.monotonic() + within_seconds)


def in_one_statement[T](work: Callable[[Tx], T], *, within_seconds: float = WITHIN_SECONDS) -> T:
    """The same for ``work`` of a single statement, which commits by itself: one round trip, where
    BEGIN and COMMIT would make it three."""
    return _retried(_once_alone, work, time.monotonic() + within_seconds)


def _retried[T](
    once: Callable[[Callable[[Tx], T], float], T], work: Callable[[Tx], T], deadline: float
) -> T:
    pause = _PAUSE_SECONDS_MIN
    while True:
        try:
            return once(work, deadline)
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
    tx = Tx(connection.current(), deadline)
    try:
        outcome = work(tx)
        tx.commit()
    except RollBack as leave:
        tx.roll_back()
        return leave.outcome  # type: ignore[no-any-return]
    except ConnectionLost:
        connection.discard()
        raise
    except BaseException:
        tx.roll_back()
        raise
    for action in tx.committed_actions:
        action()
    return outcome


def _once_alone[T](work: Callable[[Tx], T], deadline: float) -> T:
    tx = _OneStatement(connection.current(), deadline)
    try:
        outcome = work(tx)
    except ConnectionLost:
        connection.discard()
        raise
    for action in tx.committed_actions:
        action()
    return outcome


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
