"""The transactions that this backend began from, as their articles describe them.

Each is given what costs it least: no BEGIN (autocommit is off), no pool in between, prepared
arguments, no check of a notice's signature, no price to read, no product rows to look up. What the
articles leave to other services is left out.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final

from pymysql.cursors import Cursor

from infra.bench import seed_tables
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.way import PLENTY, Session, Verdict, WentWrong, ask, one_by_one, peer_session
from infra.measuring.ground import Ground

RESERVE: Final = (
    "INSERT INTO ims_reservation (reservation_id, order_id, request_hash, state, expires_at) "
    "VALUES (%s, %s, %s, 'INIT', TIMESTAMPADD(SECOND, 1800, NOW(3))) "
    "ON DUPLICATE KEY UPDATE reservation_id = reservation_id"
)
LOCK_HEADER: Final = (
    "SELECT order_id, request_hash, state FROM ims_reservation WHERE reservation_id = %s FOR UPDATE"
)
HOLD: Final = (
    "UPDATE pms_sku_stock SET lock_stock = lock_stock + %s "
    "WHERE id = %s AND stock - lock_stock >= %s"
)
ADD_ITEM: Final = (
    "INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity) VALUES (%s, %s, %s)"
)
MOVE: Final = (
    "UPDATE ims_reservation SET state = %s, updated_at = NOW(3) "
    "WHERE reservation_id = %s AND state = %s"
)
ITEMS: Final = "SELECT sku_id, quantity FROM ims_reservation_item WHERE reservation_id = %s"
SELL: Final = (
    "UPDATE pms_sku_stock SET stock = stock - %s, lock_stock = lock_stock - %s "
    "WHERE id = %s AND stock >= %s AND lock_stock >= %s"
)
FREE: Final = (
    "UPDATE pms_sku_stock SET lock_stock = lock_stock - %s WHERE id = %s AND lock_stock >= %s"
)
TOMBSTONE: Final = (
    "INSERT INTO ims_reservation (reservation_id, order_id, request_hash, state, expires_at) "
    "VALUES (%s, %s, NULL, 'RELEASED', NULL) "
    "ON DUPLICATE KEY UPDATE reservation_id = reservation_id"
)
HELD: Final = """
SELECT (SELECT COUNT(*) FROM ims_reservation WHERE state = 'RESERVED'),
       (SELECT COALESCE(SUM(quantity), 0) FROM ims_reservation_item
        JOIN ims_reservation USING (reservation_id) WHERE state = 'RESERVED'),
       (SELECT SUM(lock_stock) FROM pms_sku_stock),
       (SELECT COALESCE(SUM(GREATEST(lock_stock - stock, 0)), 0) FROM pms_sku_stock)
"""


def reserve(session: Session, n: int, sku_id: int) -> bool:
    """A piece for order ``n``; False: there was none."""
    reservation_id, request_hash = f"r{n}", _hash([n, sku_id])
    with session.cursor() as cursor:
        cursor.execute(RESERVE, (reservation_id, n, request_hash))
        cursor.execute(LOCK_HEADER, (reservation_id,))
        _expect(cursor.fetchone(), (n, request_hash, "INIT"))
        if cursor.execute(HOLD, (1, sku_id, 1)) != 1:
            session.rollback()
            return False
        cursor.execute(ADD_ITEM, (reservation_id, sku_id, 1))
        cursor.execute(MOVE, ("RESERVED", reservation_id, "INIT"))
    session.commit()
    return True


@dataclass(frozen=True)
class SeedReserve:
    """``buckets`` > 1 spreads each SKU's stock over so many rows, and takes from the next where
    one has none."""

    skus: int = 1
    stock: int = PLENTY
    buckets: int = 1

    name: ClassVar[str] = "the seeds' reserve"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_stock(ground, self.skus * self.buckets, self.stock // self.buckets)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number + 1, seat.clients)
        with peer_session() as session:
            yield Client(lambda: self._reserve(session, next(numbers)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        reservations, held, locked, over = ask(ground, HELD)
        lost = abs(locked - held) + abs(held - outcome.done) + over
        return Verdict(int(reservations), int(lost))

    def _reserve(self, session: Session, n: int) -> int | None:
        first = 1 + n % self.skus * self.buckets
        # The next in a transaction of its own: a lock that was waited for outlives an update that
        # changed nothing, and two that both went on would wait for each other.
        buckets = (first + (n + step) % self.buckets for step in range(self.buckets))
        return 1 if any(reserve(session, n, bucket) for bucket in buckets) else None


@dataclass(frozen=True)
class SeedFinish:
    """What is held is confirmed or released, one order a transaction."""

    verb: str
    orders: int
    skus: int = 1

    may_lose: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"the seeds' {self.verb}"

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_held(ground, self.orders, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = iter(range(seat.number + 1, self.orders + 1, seat.clients))
        finish = {"confirm": _confirm, "release": _release}[self.verb]

        with peer_session() as session:
            yield one_by_one(numbers, lambda n: finish(session, n))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        reservations, held, locked, over = ask(ground, HELD)
        done = self.orders - int(reservations)
        [sold] = ask(ground, f"SELECT {self.skus * PLENTY} - SUM(stock) FROM pms_sku_stock")
        should_be_sold = done if self.verb == "confirm" else 0
        lost = abs(locked - held) + abs(done - outcome.done) + abs(sold - should_be_sold) + over
        return Verdict(done, int(lost))


def _confirm(session: Session, n: int) -> int:
    reservation_id = f"r{n}"
    with session.cursor() as cursor:
        _lock_reserved(cursor, reservation_id)
        for sku_id, quantity in _items(cursor, reservation_id):
            numbers = (quantity, quantity, sku_id, quantity, quantity)
            _expect(cursor.execute(SELL, numbers), 1)
        cursor.execute(MOVE, ("CONFIRMED", reservation_id, "RESERVED"))
    session.commit()
    return 1


def _release(session: Session, n: int) -> int:
    reservation_id = f"r{n}"
    with session.cursor() as cursor:
        cursor.execute(TOMBSTONE, (reservation_id, n))
        _lock_reserved(cursor, reservation_id)
        for sku_id, quantity in _items(cursor, reservation_id):
            _expect(cursor.execute(FREE, (quantity, sku_id, quantity)), 1)
        cursor.execute(MOVE, ("RELEASED", reservation_id, "RESERVED"))
    session.commit()
    return 1


def _lock_reserved(cursor: Cursor, reservation_id: str) -> None:
    cursor.execute(LOCK_HEADER, (reservation_id,))
    row = cursor.fetchone()
    _expect(row and row[2], "RESERVED")


def _items(cursor: Cursor, reservation_id: str) -> list[tuple[int, int]]:
    cursor.execute(ITEMS, (reservation_id,))
    return [(sku_id, quantity) for sku_id, quantity in cursor.fetchall()]


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise WentWrong(f"{found} instead of {wanted}")


def _hash(content: list[int]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
