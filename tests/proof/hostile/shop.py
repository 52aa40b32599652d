"""A shop with one of each thing that a caller can name, by names that are the same each time: so a
call that was seen to do harm does it again.

Member 42 is who calls, member 7 is somebody else.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Final

import pytest

from infra.local import invariants
from tests.proof.world import MEMBER, World, a_world
from tests.support.builders import a_sku
from tests.support.database import Database, Row
from tests.support.http_events import Event

FOREIGN: Final = 7
KEY: Final = "k-open"
OPEN, STARTED, PAID, CLOSED, THEIRS = "OPEN1", "STARTED1", "PAID1", "CLOSED1", "THEIRS1"
ORDERS: Final = (OPEN, STARTED, PAID, CLOSED, THEIRS)
WAITING: Final = "T1"
"""The trade number of money that fits no order."""
SKUS: Final = (1001, 1002, 2001)
HOT: Final = 2001
MEGABYTE: Final = 1024 * 1024


@contextmanager
def a_shop(database: Database) -> Iterator[World]:
    with a_world(database, {1001: 10, 1002: 10}) as world:
        a_sku(database, HOT, hot=True)
        _placed(world, OPEN, key=KEY)
        _placed(world, STARTED)
        world.start(STARTED)
        _placed(world, PAID)
        world.start(PAID)
        world.pay(PAID)
        _placed(world, CLOSED)
        world.cancel(CLOSED)
        _placed(world, THEIRS, member=FOREIGN)
        world.settle()
        _nobodys(world)
        world.settle()
        yield world


def rows_of(database: Database, *, but: str = "") -> Row:
    """What tells whether any row of any table is another: a checksum for each table."""
    tables = database.rows("SHOW TABLES")
    names = [str(name) for row in tables for name in row.values() if name != but]
    checked = database.rows(f"CHECKSUM TABLE {', '.join(names)}")
    return {row["Table"]: row["Checksum"] for row in checked}


def assert_sound(world: World) -> None:
    """What is under way arrives; then nothing is half-done."""
    world.settle()
    assert world.wire.seen["dead"] == 0
    assert invariants.broken(world.database.rows) == {}


def _nobodys(world: World) -> None:
    """Alipay knows the trade, under the number that is ours to choose here."""
    books = world.books
    with pytest.MonkeyPatch.context() as patch:
        made = books._new
        patch.setattr(books, "_new", lambda *said: replace(made(*said), trade_no=WAITING))
        world.pay("NOBODYS1", Decimal("9.90"))


def _placed(world: World, order_no: str, *, key: str | None = None, member: int = MEMBER) -> None:
    answer = world.place(key or f"k-{order_no}", member=member)
    assert answer.status == 201, answer.text
    world.database.execute(
        "UPDATE oms_order SET order_no = %s WHERE order_no = %s",
        (order_no, answer.document["order"]["order_no"]),
    )


def carried(body: bytes, is_base64: bool) -> Event:
    """What an event has of ``body``."""
    if is_base64:
        return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    return {"body": body.decode("utf-8", errors="surrogateescape"), "isBase64Encoded": False}
