"""The SQL that members' views of orders are read with: no locks, no writes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from lockstep.db.transaction import Reader
from lockstep.inventory.model import ReservationState
from lockstep.orders.model import CloseReason, Order, OrderLine, OrderStatus, Transition

_ORDER_COLUMNS: Final = """
SELECT o.id, o.order_no, o.member_id, o.status, o.close_reason, o.cancel_requested_at,
       o.total_amount, o.pay_amount, o.paid_amount, o.refunded_amount, o.note, o.reservation_id,
       r.state AS reservation_state, o.created_at, o.expires_at, o.paid_at
FROM oms_order AS o
"""
_WITH_HOLD: Final = """
LEFT JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
"""

READ_ORDER: Final = _ORDER_COLUMNS + _WITH_HOLD + "WHERE o.id = %s"
READ_OWN_ORDER: Final = _ORDER_COLUMNS + _WITH_HOLD + "WHERE o.order_no = %s AND o.member_id = %s"

# Left to itself the optimizer sorts a member's orders or, for many old ones, walks the primary key
# through everybody's newer orders.
LIST_ORDERS: Final = (
    _ORDER_COLUMNS
    + "FORCE INDEX (ix_order_member)"
    + _WITH_HOLD
    + """
WHERE o.member_id = %(member_id)s
  AND o.id < %(before)s
ORDER BY o.id DESC
LIMIT %(limit)s
"""
)

LIST_ORDERS_IN_STATUS: Final = (
    _ORDER_COLUMNS
    + _WITH_HOLD
    + """
WHERE o.member_id = %(member_id)s
  AND o.status = %(status)s
  AND o.id < %(before)s
ORDER BY o.id DESC
LIMIT %(limit)s
"""
)

READ_ITEMS: Final = """
SELECT order_id, sku_id, title, quantity, price, amount
FROM oms_order_item
WHERE order_id IN %s
ORDER BY order_id, sku_id
"""


def read_order(reader: Reader, order_id: int) -> Order | None:
    return _single(reader, reader.all(READ_ORDER, (order_id,)))


def read_own_order(reader: Reader, member_id: int, order_no: str) -> Order | None:
    return _single(reader, reader.all(READ_OWN_ORDER, (order_no, member_id)))


def list_orders(
    reader: Reader, member_id: int, status: OrderStatus | None, before: int, limit: int
) -> list[Order]:
    """The member's orders with an id below ``before``, newest first."""
    arguments = {"member_id": member_id, "status": status, "before": before, "limit": limit}
    sql = LIST_ORDERS if status is None else LIST_ORDERS_IN_STATUS
    return _with_lines(reader, reader.all(sql, arguments))


def _single(reader: Reader, rows: list[dict[str, Any]]) -> Order | None:
    orders = _with_lines(reader, rows)
    return orders[0] if orders else None


def _with_lines(reader: Reader, rows: list[dict[str, Any]]) -> list[Order]:
    if not rows:
        return []
    lines: dict[int, list[OrderLine]] = {row["id"]: [] for row in rows}
    for item in reader.all(READ_ITEMS, (tuple(lines),)):
        lines[item.pop("order_id")].append(OrderLine(**item))
    return [Order(**{**row, **_states(row)}, lines=tuple(lines[row["id"]])) for row in rows]


def _states(row: Mapping[str, Any]) -> dict[str, Any]:
    """The enum values of a row's state columns."""
    states: dict[str, Any] = {"status": OrderStatus(row["status"])}
    states["close_reason"] = row["close_reason"] and CloseReason(row["close_reason"])
    if row.get("reservation_state"):
        states["reservation_state"] = ReservationState(row["reservation_state"])
    return states


READ_WANTED: Final = """
SELECT sku_id, quantity, NOW(3) AS now
FROM oms_order_item
WHERE order_id = %s
ORDER BY sku_id
"""


def read_wanted(reader: Reader, order_id: int) -> tuple[dict[int, int], datetime]:
    """What an order wants held, sku_id to quantity, and the database's time."""
    rows = reader.all(READ_WANTED, (order_id,))
    return {row["sku_id"]: row["quantity"] for row in rows}, rows[0]["now"]


READ_STATUSES: Final = """
SELECT id, status
FROM oms_order
WHERE id IN %s
"""


def read_statuses(reader: Reader, order_ids: Iterable[int]) -> dict[int, OrderStatus]:
    """Of the orders that exist, by id."""
    rows = reader.all(READ_STATUSES, (tuple(order_ids),))
    return {row["id"]: OrderStatus(row["status"]) for row in rows}


READ_TIMELINE: Final = """
SELECT created_at AS at, from_status, to_status, actor, reason
FROM oms_order_event
WHERE order_id = %s
ORDER BY id
"""


def read_timeline(reader: Reader, order_id: int) -> list[Transition]:
    """The order's trail, oldest first."""
    return [
        Transition(
            row["at"],
            OrderStatus(row["from_status"]),
            OrderStatus(row["to_status"]),
            row["actor"],
            row["reason"],
        )
        for row in reader.all(READ_TIMELINE, (order_id,))
    ]


READ_OWN_HOLDS: Final = """
SELECT DISTINCT o.order_no
FROM oms_order AS o
JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id AND r.state = 'RESERVED'
JOIN ims_reservation_item AS i ON i.reservation_id = r.reservation_id
WHERE o.member_id = %s
  AND o.status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')
  AND i.sku_id IN %s
ORDER BY o.order_no
"""


def read_own_holds(reader: Reader, member_id: int, sku_ids: Iterable[int]) -> tuple[str, ...]:
    """Order numbers of the member's unpaid orders that hold any of ``sku_ids``."""
    rows = reader.all(READ_OWN_HOLDS, (member_id, tuple(sku_ids)))
    return tuple(row["order_no"] for row in rows)
