"""Packets of statements taken apart, for those who stop, count or break single statements.

Each goes to the engine when it is written down, and BEGIN before the first. The engine runs the
same statements in the same order and ends at the same one: tests/integration/test_packets.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from lockstep.db import connection
from lockstep.db.connection import Answer, Connection
from lockstep.db.packet import Packet, Reply


def take_apart(patch: pytest.MonkeyPatch) -> None:
    def send_one_by_one(session: Connection, texts: Sequence[str]) -> list[Answer]:
        return [connection._answer(session._run(text)) for text in texts]

    def send_at_once(packet: Packet, text: str) -> Reply:
        reply = Reply()
        [reply.answer] = packet._send([text])
        return reply

    patch.setattr(Connection, "send_together", send_one_by_one)
    patch.setattr(Packet, "_add", send_at_once)


@contextmanager
def taken_apart() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        take_apart(patch)
        yield
