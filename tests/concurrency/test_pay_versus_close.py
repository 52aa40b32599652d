"""Goal: paid and closed exclude each other, however closely a payment and a cancel meet.

Method: 1000 orders; two threads, each with a connection of its own, meet at a barrier before every
order, and one delivers its payment notice while the other cancels it. A notice is stored before it
comes to the order, so every other member looks at the order first: both sides win some. The naive
twin pays and closes as many rows by reading the status and then writing by id; there a second
barrier stands between the read and the write, so that the overlap is certain and the fault shows.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, LiteralString

from infra.experiments.twice import BOTH_OF_OURS
from lockstep.db import connection
from lockstep.orders.model import (
    CancelOutcome,
    Closed,
    NotCancellable,
    Order,
    OrderStatus,
)
from lockstep.orders.query import find
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.threads import crowd, in_rounds

ORDERS: Final = 1000


def pay(order: Order) -> Result:
    return accept(a_trade_notice(order))


def close(order: Order) -> CancelOutcome:
    if order.id % 2:
        find(order.member_id, order.order_no)
    return cancel(order.member_id, order.order_no)


def some_orders(database: Database, how_many: int) -> list[Order]:
    a_sku(database, stock=how_many)
    return crowd(4, range(1, how_many + 1), lambda member: an_order(member_id=member))


def test_of_1000_orders_paid_and_closed_at_once_none_is_both(database):
    orders = some_orders(database, ORDERS)
    paid, closed = 0, 0
    for order, outcomes in zip(orders, in_rounds(orders, pay, close), strict=True):
        if outcomes == [Result.APPLIED, NotCancellable(OrderStatus.PAID)]:
            paid += 1
        else:
            assert outcomes == [Result.REFUND_PENDING, Closed(order.id, repeated=False)]
            closed += 1
    assert paid + closed == ORDERS
    assert paid > 0
    assert closed > 0
    assert database.value(BOTH_OF_OURS) == 0
    assert database.count("oms_order", status="PAID") == paid
    assert database.count("oms_order", status="CLOSED", close_reason="CANCELLED") == closed
    assert database.count("oms_order_payment", state="APPLIED") == paid
    late = database.count("oms_order_payment", state="REFUND_PENDING", reason="LATE_PAYMENT")
    assert late == closed
    assert_at_rest(database)
    assert database.stock(1001) == (ORDERS - paid, 0)


NAIVE_PAY: Final = "UPDATE naive_order SET status = 'PAID', paid_at = NOW(3) WHERE id = %s"
NAIVE_CLOSE: Final = "UPDATE naive_order SET status = 'CLOSED', closed_at = NOW(3) WHERE id = %s"


def test_reading_and_then_writing_lets_every_one_of_1000_orders_be_both(scratch):
    with naive_orders(scratch) as ids:
        both_have_read = threading.Barrier(2, timeout=60)

        def read_then_write(order_id: int, write: LiteralString) -> None:
            session = connection.current()
            row = session.one("SELECT status FROM naive_order WHERE id = %s", (order_id,))
            both_have_read.wait()
            if row is not None and row["status"] == "PENDING_PAYMENT":
                session.execute(write, (order_id,))

        in_rounds(
            ids,
            lambda order_id: read_then_write(order_id, NAIVE_PAY),
            lambda order_id: read_then_write(order_id, NAIVE_CLOSE),
        )
        both = "SELECT COUNT(*) FROM naive_order WHERE paid_at > 0 AND closed_at > 0"
        assert scratch.value(both) == ORDERS


@contextmanager
def naive_orders(database: Database) -> Iterator[list[int]]:
    """The ids of 1000 unpaid orders in a plain table, dropped at the end."""
    database.execute(
        "CREATE TABLE naive_order (id BIGINT PRIMARY KEY AUTO_INCREMENT, "
        "status VARCHAR(20) NOT NULL, paid_at DATETIME(3), closed_at DATETIME(3))"
    )
    try:
        one_row_each = ", ".join(["('PENDING_PAYMENT')"] * ORDERS)
        database.execute(f"INSERT INTO naive_order (status) VALUES {one_row_each}")  # noqa: S608
        yield [row["id"] for row in database.rows("SELECT id FROM naive_order")]
    finally:
        database.execute("DROP TABLE naive_order")
