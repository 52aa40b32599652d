"""Statements that go to the engine together, in one round trip.

    with tx.packet() as packet:
        store.insert_items(packet, order_id, lines)
        held = packet.execute(HOLD_STOCK, …)
    if held.changed == 0: …

The engine runs them in order and ends at the first error, which is raised here. So a packet is for
statements of which none has to hear the one before it: what is decided by affected rows is decided
when all are done, and the transaction is there to take everything back.
"""

from collections.abc import Callable, Sequence
from typing import Final, LiteralString, Protocol

from lockstep.db.connection import Answer, Arguments, Connection, Row

# A proxy pins the session of a longer text. What one statement needs by itself is its own affair.
BYTES_MAX: Final = 16_000


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

    def insert_many(self, sql: LiteralString, rows: Sequence[Arguments]) -> Reply:
        return self._add(self._session.compose_many(sql, rows))

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


def _pieces(texts: Sequence[str]) -> list[list[str]]:
    """``texts`` in order, cut where one piece would become too long."""
    pieces: list[list[str]] = []
    room = 0
    for text in texts:
        size = len(text.encode()) + 1
        if size > room:
            pieces.append([])
            room = BYTES_MAX
        pieces[-1].append(text)
        room -= size
    return pieces
