"""Orders of ours that are there before the clock starts, made by the server itself; and what has
to hold of them when it stops."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pymysql.cursors import DictCursor

from infra.bench.way import PLENTY
from infra.local import invariants, mysql
from infra.measuring.ground import Ground

NUMBERS: Final = "FROM bench_number WHERE i <= "
ORDER_NO: Final = "CONCAT('20261130', LPAD(i, 16, '0'))"
TABLES: Final = (
    *("oms_order", "oms_order_item", "oms_order_request", "oms_order_event", "oms_order_payment"),
    *("oms_money_entry", "oms_notice", "ims_reservation", "ims_reservation_item"),
    *("ims_sku_stock", "ims_stock_entry", "ims_hot_turn", "outbox", "message_refusal"),
)

# The way each kind of order came, as its trail tells it.
TRAILS: Final = {
    "RESERVING": ("NONE", "RESERVING"),
    "PENDING_PAYMENT": ("NONE", "PENDING_PAYMENT"),
    "PAID": ("NONE", "PENDING_PAYMENT", "PAID"),
    "CLOSED": ("NONE", "PENDING_PAYMENT", "CLOSED"),
}

# What ends with a message that a run leaves in flight.
AT_REST_ONLY: Final = "a paid order's stock is sold"

DECIDED_TWICE: Final = """
SELECT order_id
FROM oms_order_event
WHERE from_status = 'RESERVING'
GROUP BY order_id
HAVING COUNT(*) <> 1
"""
OUT_OF_ORDER: Final = """
SELECT order_id
FROM (SELECT e.order_id,
             LAG(e.order_id) OVER (PARTITION BY o.turn_sku_id ORDER BY e.id) AS before_it
      FROM oms_order_event AS e
      JOIN oms_order AS o ON o.id = e.order_id
      WHERE e.from_status = 'RESERVING'
        AND e.to_status = 'PENDING_PAYMENT') AS held
WHERE before_it > order_id
"""
PASSED_OVER: Final = """
SELECT turn_sku_id
FROM oms_order
WHERE turn_sku_id IS NOT NULL
GROUP BY turn_sku_id
HAVING MAX(IF(status = 'PENDING_PAYMENT', id, NULL)) > MIN(IF(status = 'CLOSED', id, NULL))
"""
LEFT_OVER: Final = """
SELECT sku_id
FROM ims_sku_stock AS s
WHERE stock > lock_stock
  AND EXISTS (SELECT 1 FROM oms_order AS o WHERE o.turn_sku_id = s.sku_id AND o.status = 'CLOSED')
"""
LINE: Final = {
    "every order is decided once": DECIDED_TWICE,
    "holds are taken in order of arrival": OUT_OF_ORDER,
    "nobody is refused before somebody who came later": PASSED_OVER,
    "nobody is refused while there is stock": LEFT_OVER,
}


def clear(ground: Ground) -> None:
    for table in TABLES:
        if ground.row(f"SELECT 1 FROM {table} LIMIT 1"):
            ground.execute(f"TRUNCATE TABLE {table}")


def add_skus(ground: Ground, skus: int, stock: int = PLENTY, *, hot: bool = False) -> None:
    """SKUs 1 to ``skus``, with the entries that their stock came by."""
    ground.execute(
        "INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot) "
        f"SELECT i, 'of a benchmark', 9.90, {stock:d}, {hot} {NUMBERS}{skus:d}",
        "INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason) "
        "SELECT sku_id, 'INITIAL', stock, CONCAT('bench:', sku_id), 'bench', 'bench' "
        "FROM ims_sku_stock",
    )


def add_orders(ground: Ground, status: str, orders: int, skus: int) -> None:
    """Orders 1 to ``orders`` of one piece each, dealt over the SKUs in turn."""
    ground.execute(*_orders(status, orders, skus))
    if status != "RESERVING":
        ground.execute(*_holds(orders, skus))
    if status == "PAID":
        ground.execute(*_payments(orders))


def _orders(status: str, orders: int, skus: int) -> Iterator[str]:
    waiting, paid = status == "RESERVING", status == "PAID"
    sku, (*_, came_from, _) = f"1 + i % {skus:d}", TRAILS[status]
    written = {
        "id": "i",
        "order_no": ORDER_NO,
        "member_id": "i",
        "status": f"'{status}'",
        "prev_status": f"'{came_from}'",
        "close_reason": "'CANCELLED'" if status == "CLOSED" else "NULL",
        "total_amount": "9.90",
        "pay_amount": "9.90",
        "paid_amount": "9.90" if paid else "0",
        "reservation_id": f"CONCAT({ORDER_NO}, '-1')",
        "turn_sku_id": sku if waiting else "NULL",
        "expires_at": "NULL" if waiting else "NOW(3) + INTERVAL 1 DAY",
        "paid_at": "NOW(3)" if paid else "NULL",
    }
    yield (
        f"INSERT INTO oms_order ({', '.join(written)}) "
        f"SELECT {', '.join(written.values())} {NUMBERS}{orders:d}"
    )
    yield (
        "INSERT INTO oms_order_item (order_id, sku_id, title, quantity, price, amount) "
        f"SELECT i, {sku}, 'of a benchmark', 1, 9.90, 9.90 {NUMBERS}{orders:d}"
    )
    yield (
        "INSERT INTO oms_order_request "
        "(member_id, idempotency_key, request_hash, state, order_id) "
        f"SELECT i, CONCAT('key-', i), SHA2(i, 256), 'SUCCESS', i {NUMBERS}{orders:d}"
    )
    for before, after in zip(TRAILS[status], TRAILS[status][1:], strict=False):
        yield (
            "INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason) "
            f"SELECT i, '{before}', '{after}', 'bench', 'BENCH' {NUMBERS}{orders:d}"
        )


def _holds(orders: int, skus: int) -> Iterator[str]:
    yield (
        "INSERT INTO ims_reservation "
        "(reservation_id, order_id, n, request_hash, state, expires_at) "
        f"SELECT CONCAT({ORDER_NO}, '-1'), i, 1, SHA2(i, 256), 'RESERVED', NOW(3) + INTERVAL 1 DAY "
        f"{NUMBERS}{orders:d}"
    )
    yield (
        "INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity) "
        f"SELECT CONCAT({ORDER_NO}, '-1'), 1 + i % {skus:d}, 1 {NUMBERS}{orders:d}"
    )
    yield (
        "UPDATE ims_sku_stock AS s JOIN (SELECT sku_id, SUM(quantity) AS held "
        "FROM ims_reservation_item GROUP BY sku_id) AS h USING (sku_id) SET s.lock_stock = h.held"
    )


def _payments(orders: int) -> Iterator[str]:
    yield (
        "INSERT INTO oms_order_payment "
        "(provider, trade_no, out_trade_no, order_id, amount, state) "
        f"SELECT 'ALIPAY', CONCAT('T', i), {ORDER_NO}, i, 9.90, 'APPLIED' {NUMBERS}{orders:d}"
    )
    yield (
        "INSERT INTO oms_money_entry (order_id, payment_id, kind, amount, source) "
        "SELECT order_id, id, 'PAYMENT', amount, CONCAT('bench:', id) FROM oms_order_payment"
    )


# --- afterwards ----------------------------------------------------------------------------------


def broken(ground: Ground, *, at_rest: bool) -> list[str]:
    """What does not hold: of the whole database, and of the line that orders stood in."""
    with mysql.connect(ground.server, ground.schema) as session:
        cursor = session.cursor(DictCursor)

        def read(query: str) -> Sequence[dict[str, Any]]:
            cursor.execute(query)
            return cursor.fetchall()

        return list(_found(read, at_rest=at_rest))


def _found(read: Any, *, at_rest: bool) -> Iterable[str]:
    queries = dict(LINE)
    for invariant in invariants.INVARIANTS:
        if at_rest or not invariant.name.startswith(AT_REST_ONLY):
            queries[invariant.name] = invariant.query
    for name, query in queries.items():
        if rows := read(query):
            yield f"{name}: {len(rows)} break it, first {rows[0]}"
