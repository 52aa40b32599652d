"""The seeds' transactions around an order: it is placed and its stock reserved, in two
transactions; a notice of its payment is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final

from infra.bench import seed_tables
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.seeds import HELD, reserve
from infra.bench.way import Session, Verdict, WentWrong, ask, make_tables, one_by_one, peer_session
from infra.measuring.ground import Ground

CLAIM: Final = (
    "INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state) "
    "VALUES (%s, %s, SHA2(%s, 256), 'PROCESSING')"
)
ADD_ORDER: Final = (
    "INSERT INTO oms_order (member_id, order_sn, total_amount, pay_amount, status) "
    "VALUES (%s, %s, 9.90, 9.90, 0)"
)
ADD_LINE: Final = (
    "INSERT INTO oms_order_item (order_id, product_sku_id, product_name, product_price, "
    "product_quantity) VALUES (%s, %s, 'of a benchmark', 9.90, 1)"
)
STAGE: Final = "INSERT INTO outbox (group_key, payload) VALUES (%s, JSON_OBJECT('order_id', %s))"
COMPLETE: Final = (
    "UPDATE oms_order_request SET order_id = %s, state = 'SUCCESS' "
    "WHERE member_id = %s AND idempotency_key = %s AND request_hash = SHA2(%s, 256) "
    "AND state = 'PROCESSING' AND order_id IS NULL"
)

ORDER: Final = "SELECT id, status, pay_amount FROM oms_order WHERE order_sn = %s FOR UPDATE"
RECORD: Final = (
    "INSERT INTO oms_order_payment (provider, trade_no, order_id, amount, state) "
    "VALUES ('ALIPAY', %s, %s, 9.90, 'RECEIVED')"
)
PAYMENT: Final = (
    "SELECT order_id, amount, state FROM oms_order_payment "
    "WHERE provider = 'ALIPAY' AND trade_no = %s FOR UPDATE"
)
MARK_PAID: Final = (
    "UPDATE oms_order SET status = 1, payment_time = NOW() "
    "WHERE id = %s AND status = 0 AND delete_status = 0"
)
APPLY: Final = (
    "UPDATE oms_order_payment SET state = 'APPLIED' "
    "WHERE provider = 'ALIPAY' AND trade_no = %s AND state = 'RECEIVED'"
)
READ_PAID: Final = "SELECT id, status, pay_amount FROM oms_order WHERE id = %s FOR UPDATE"


@dataclass(frozen=True)
class SeedPlace:
    skus: int

    name: ClassVar[str] = "the seeds' place, then reserve"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_stock(ground, self.skus)
        make_tables(ground, seed_tables.ORDER)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number + 1, seat.clients)
        with peer_session() as session:
            yield Client(lambda: self._buy(session, next(numbers)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        _, held, locked, over = ask(ground, HELD)
        [placed] = ask(ground, "SELECT COUNT(*) FROM oms_order_request WHERE state = 'SUCCESS'")
        lost = abs(locked - held) + abs(held - outcome.done) + abs(placed - outcome.done) + over
        return Verdict(int(placed), int(lost))

    def _buy(self, session: Session, n: int) -> int:
        sku_id = 1 + n % self.skus
        order_id = _place(session, n, sku_id)
        if not reserve(session, order_id, sku_id):
            raise WentWrong("there is stock for every order")
        return 1


def _place(session: Session, n: int, sku_id: int) -> int:
    with session.cursor() as cursor:
        cursor.execute(CLAIM, (n, f"key-{n}", n))
        cursor.execute(ADD_ORDER, (n, f"O{n}"))
        order_id = cursor.lastrowid
        cursor.execute(ADD_LINE, (order_id, sku_id))
        cursor.execute(STAGE, (f"r{order_id}", order_id))
        if cursor.execute(COMPLETE, (order_id, n, f"key-{n}", n)) != 1:
            raise WentWrong("the request was not completed")
    session.commit()
    return int(order_id)


@dataclass(frozen=True)
class SeedNotice:
    orders: int

    name: ClassVar[str] = "the seeds' payment notice"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_orders(ground, self.orders)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = iter(range(seat.number + 1, self.orders + 1, seat.clients))
        with peer_session() as session:
            yield one_by_one(numbers, lambda n: _accept(session, n))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [paid] = ask(ground, "SELECT COUNT(*) FROM oms_order WHERE status = 1")
        [applied] = ask(ground, "SELECT COUNT(*) FROM oms_order_payment WHERE state = 'APPLIED'")
        return Verdict(int(paid), abs(paid - applied) + abs(paid - outcome.done))


def _accept(session: Session, n: int) -> int:
    trade_no = f"T{n}"
    with session.cursor() as cursor:
        cursor.execute(ORDER, (f"O{n}",))
        [order_id, *_] = cursor.fetchone() or ()
        cursor.execute(RECORD, (trade_no, order_id))
        cursor.execute(PAYMENT, (trade_no,))
        if cursor.execute(MARK_PAID, (order_id,)) != 1:
            raise WentWrong("an unpaid order was not paid")
        cursor.execute(APPLY, (trade_no,))
        cursor.execute(READ_PAID, (order_id,))
    session.commit()
    return 1
