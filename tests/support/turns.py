"""Orders in line at the turn of a hot SKU, and the bell that is rung for them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import pytest

from functions import reserve_stock
from lockstep.db.connection import Connection
from lockstep.messaging.contracts import ReserveStock
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.support.batches import batch, failed_ids, record_of
from tests.support.builders import a_trade_notice, an_order
from tests.support.database import Database
from tests.support.lambda_context import Context
from tests.support.late import reinstating

HOT: Final = 2001
# A year of ten thousand orders a second later.
FIRST_ID: Final = 300_000_000_000

_NUMBERS: Final = """
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
"""
_ORDERS: Final = """
INSERT INTO oms_order (
    id, order_no, member_id, status, total_amount, pay_amount, reservation_id, turn_sku_id)
{numbers}
SELECT {first} + i, CONCAT('202611300143200000042', LPAD(i, 5, '0')), 42, 'RESERVING',
       {amount}, {amount}, CONCAT('202611300143200000042', LPAD(i, 5, '0'), '-1'), {hot}
FROM n
"""
_ITEMS: Final = """
INSERT INTO oms_order_item (order_id, sku_id, title, quantity, price, amount)
{numbers}
SELECT {first} + i, {sku_id}, 'a thing', 1, 9.90, 9.90
FROM n
"""
_EVENTS: Final = """
INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason)
{numbers}
SELECT {first} + i, 'NONE', 'RESERVING', 'member:42', 'PLACED'
FROM n
"""
_REQUESTS: Final = """
INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state, order_id)
{numbers}
SELECT 42, CONCAT('long-', i), SHA2(i, 256), 'SUCCESS', {first} + i
FROM n
"""


@contextmanager
def a_long_line(
    database: Database, how_many: int, skus: Sequence[int] = (HOT,)
) -> Iterator[list[int]]:
    """The ids of so many orders at the turn of HOT, one of each of ``skus``; numbers as long as in
    a shop that is old. Their keys do not go on from there."""
    goes_on = database.value(
        "SELECT auto_increment AS it FROM information_schema.tables "
        "WHERE table_schema = %s AND table_name = 'oms_order'",
        (database.name,),
    )
    database.execute("SET SESSION cte_max_recursion_depth = 1000000")
    numbers = _NUMBERS.format(last=how_many - 1)
    amount = Decimal("9.90") * len(skus)
    for sql in (_ORDERS, _REQUESTS, _EVENTS):
        database.execute(sql.format(numbers=numbers, first=FIRST_ID, hot=HOT, amount=amount))
    for sku_id in skus:
        database.execute(_ITEMS.format(numbers=numbers, first=FIRST_ID, sku_id=sku_id))
    try:
        yield list(range(FIRST_ID, FIRST_ID + how_many))
    finally:
        database.empty()
        database.execute(f"ALTER TABLE oms_order AUTO_INCREMENT = {goes_on or 1}")


def command_of(order: Order) -> ReserveStock:
    assert order.reservation_id is not None
    return ReserveStock(reservation_id=order.reservation_id, order_id=order.id)


def ring(*orders: Order, context: Context | None = None) -> list[str]:
    """Give the worker one batch of these orders' commands, m1, m2, …; the messages that failed."""
    records = [record_of(f"m{n}", command_of(order)) for n, order in enumerate(orders, 1)]
    return failed_ids(reserve_stock.handler(batch(*records), context or Context()))


def ring_for(order_id: int) -> list[str]:
    """The same for one order, by its id."""
    command = ReserveStock(reservation_id="202611300143200000042-1", order_id=order_id)
    return failed_ids(reserve_stock.handler(batch(record_of("m1", command)), Context()))


def a_while() -> Callable[[], bool]:
    """Time enough for everything, but not for a loop without an end."""
    looks = iter(range(200))
    return lambda: next(looks, None) is not None


def statuses(database: Database) -> list[str]:
    """Of all orders in order of arrival, ``CLOSED/OUT_OF_STOCK`` for one that found too little."""
    rows = database.rows(
        "SELECT CONCAT_WS('/', status, close_reason) AS it FROM oms_order ORDER BY id"
    )
    return [row["it"] for row in rows]


def paid_late(database: Database, monkeypatch: pytest.MonkeyPatch, lines: dict[int, int]) -> Order:
    """An order that expired, whose hold was given back, and whose money came in time and late."""
    order = an_order(lines)
    hold(order.id)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) WHERE id = %s", (order.id,))
    assert expire(order.id)
    database.execute("UPDATE oms_order SET expires_at = '2030-01-01' WHERE id = %s", (order.id,))
    reinstating(monkeypatch)
    assert accept(a_trade_notice(order)) is Result.REINSTATE_PENDING
    return order


def statements_of(work: Callable[[], object]) -> list[str]:
    """What ``work`` sends to the engine, each text as it goes out."""
    sent: list[str] = []
    run, send_together = Connection._run, Connection.send_together

    def send(session: Connection, texts: Sequence[str]) -> Any:
        sent.append(";".join(texts))
        return send_together(session, texts)

    def send_one(session: Connection, text: str) -> Any:
        sent.append(text)
        return run(session, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_run", send_one)
        patch.setattr(Connection, "send_together", send)
        work()
    return sent
