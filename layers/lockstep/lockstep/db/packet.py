"""Statements that go to the engine together, in one round trip.

    with tx.packet() as packet:
        store.insert_items(packet, order_id, lines)
        held = packet.execute(HOLD_STOCK, …)
    if held.changed == 0: …

The engine runs them in order and ends at the first error, which is raised here. So a packet is for
statements of which none has to hear the one before it: what is decided by affected rows is decided
when all are done, and the transaction is there to take everything back.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, LiteralString, Protocol

from lockstep.db.connection import Answer, Arguments, Connection, Row

# RDS Proxy pins the connection of a session that sent more than 16 KB in one text; BEGIN may come
# before what is counted here.
BYTES_MAX: Final = 16 * 1024 - len("BEGIN;")


class Writer(Protocol):
    """What a store needs for a row of which nobody asks back: a transaction, or a packet in it."""

    def insert(self, sql: LiteralString, arguments: Arguments = ()) -> object: ...

    def insert_many(self, sql: LiteralString, rows: Sequence[Arguments]) -> object: ...


class Reply:
    """The engine's answer to one statement of a packet, known when the packet was sent."""

    def __init__(self) -> None:
        self.answer: Answer | None = None

    @property
    def changed(self) -> int:
        return self._answered().changed

    @property
    def new_id(self) -> int:
        return self._answered().new_id

    @property
    def rows(self) -> list[Row]:
        return self._answered().rows

    def _answered(self) -> Answer:
        if self.answer is None:
            raise ValueError("this statement was not sent yet")
        return self.answer


type Send = Callable[[Sequence[str]], list[Answer]]


class Packet:
    """Made by ``Tx.packet``, which sends it."""

    def __init__(self, session: Connection, send: Send) -> None:
        self._session = session
        self._send = send
        self._texts: list[str] = []
        self._replies: list[Reply] = []

    def execute(self, sql: LiteralString, arguments: Arguments = ()) -> Reply:
        return self._add(self._session.compose(sql, arguments))

    def insert(self, sql: LiteralString, arguments: Arguments = ()) -> Reply:
        return self.execute(sql, arguments)

    def all(self, sql: LiteralString, arguments: Arguments = ()) -> Reply:
        return self.execute(sql, arguments)

    def insert_many(self, sql: LiteralString, rows: Sequence[Arguments]) -> None:
        for text in with_lists(self._session, sql, rows):
            self._add(text)

    def send(self) -> None:
        """In as few round trips as BYTES_MAX allows."""
        replies = iter(self._replies)
        for texts in _pieces(self._texts):
            for answer in self._send(texts):
                next(replies).answer = answer

    def _add(self, text: str) -> Reply:
        self._texts.append(text)
        self._replies.append(reply := Reply())
        return reply


def with_lists(session: Connection, sql: LiteralString, rows: Sequence[Arguments]) -> Iterator[str]:
    """An INSERT, which ends with its VALUES, with a list of ``rows``, as few times as BYTES_MAX
    allows.

    The driver's own executemany looks for a row of nothing but %s, and where it finds none sends
    row by row without a word.
    """
    head, values, row = sql.strip().rpartition("VALUES ")
    for written in _pieces([session.compose(row, each) for each in rows], room_for=len(sql)):
        yield head + values + ",".join(written)


def _pieces(texts: Sequence[str], room_for: int = 0) -> list[list[str]]:
    """``texts`` in order, cut where one piece would become too long."""
    pieces: list[list[str]] = []
    room = 0
    for text in texts:
        size = len(text.encode()) + 1
        if size > room:
            pieces.append([])
            room = BYTES_MAX - room_for
        pieces[-1].append(text)
        room -= size
    return pieces
