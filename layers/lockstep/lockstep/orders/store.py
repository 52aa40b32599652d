"""The SQL of oms_order, oms_order_item, oms_order_request and oms_order_event.

Every change of status is one guarded UPDATE that names its from-states and sets prev_status, so
that the legal-pairs foreign key can judge it; 0 affected rows mean that somebody else was first.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from lockstep.db.errors import DuplicateKey
from lockstep.db.transaction import Reader, Tx
from lockstep.inventory.model import ReservationState
from lockstep.orders.model import (
    CloseReason,
    LockedOrder,
    Order,
    OrderLine,
    OrderRequest,
    OrderStatus,
    RequestState,
    Transition,
)

# --- requests ------------------------------------------------------------------------------------

CLAIM_REQUEST: Final = """
INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state)
VALUES (%s, %s, %s, 'PROCESSING')
"""


def claim_request(tx: Tx, member_id: int, key: str, request_hash: str) -> bool:
    """False: the key is taken. Waits for the transaction that is taking it, if there is one."""
    try:
        tx.insert(CLAIM_REQUEST, (member_id, key, request_hash))
    except DuplicateKey:
        return False
    return True


COMPLETE_REQUEST: Final = """
UPDATE oms_order_request
SET state = 'SUCCESS',
    order_id = %s
WHERE member_id = %s
  AND idempotency_key = %s
  AND state = 'PROCESSING'
"""


def complete_request(tx: Tx, member_id: int, key: str, order_id: int) -> bool:
    return tx.execute(COMPLETE_REQUEST, (order_id, member_id, key)) == 1


# FOR SHARE sees the newest commit and never asks for more than the failed INSERT holds; NOWAIT
# turns "someone is in that transaction now" into an answer.
READ_REQUEST: Final = """
SELECT request_hash, state, order_id
FROM oms_order_request
WHERE member_id = %s
  AND idempotency_key = %s
FOR SHARE NOWAIT
"""


def read_request(reader: Reader, member_id: int, key: str) -> OrderRequest | None:
    """The committed request of ``key``. Raises LockNotAvailable while one is being decided."""
    row = reader.one(READ_REQUEST, (member_id, key))
    if row is None:
        return None
    return OrderRequest(row["request_hash"], RequestState(row["state"]), row["order_id"])


# --- writing an order ----------------------------------------------------------------------------

INSERT_ORDER: Final = """
INSERT INTO oms_order (
    order_no, member_id, status, prev_status, total_amount, pay_amount, note, reservation_id,
    created_at, expires_at)
VALUES (%s, %s, 'PENDING_PAYMENT', 'NONE', %s, %s, %s, %s, %s, %s)
"""


def insert_order(
    tx: Tx,
    order_no: str,
    member_id: int,
    pay_amount: Decimal,
    note: str | None,
    reservation_id: str,
    created_at: datetime,
    expires_at: datetime,
) -> int:
    """The new order's id. Raises DuplicateKey('uk_order_no') if the number is taken."""
    return tx.insert(
        INSERT_ORDER,
        (
            order_no,
            member_id,
            pay_amount,
            pay_amount,
            note,
            reservation_id,
            created_at,
            expires_at,
        ),
    )


INSERT_ITEMS: Final = """
INSERT INTO oms_order_item (order_id, sku_id, title, quantity, price, amount)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def insert_items(tx: Tx, order_id: int, lines: Iterable[OrderLine]) -> None:
    tx.insert_many(
        INSERT_ITEMS,
        [
            (order_id, line.sku_id, line.title, line.quantity, line.price, line.amount)
            for line in lines
        ],
    )


INSERT_EVENT: Final = """
INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason, evidence)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def append_event(
    tx: Tx,
    order_id: int,
    from_status: OrderStatus,
    to_status: OrderStatus,
    actor: str,
    reason: str,
    evidence: Mapping[str, str] | None = None,
) -> None:
    """One line of the trail, in the transaction of the change that it tells."""
    text = None if evidence is None else json.dumps(evidence, sort_keys=True)
    tx.insert(INSERT_EVENT, (order_id, from_status, to_status, actor, reason, text))


# --- transitions ---------------------------------------------------------------------------------

# RESERVING | PENDING_PAYMENT | PAYMENT_PROCESSING -> CLOSED, unless a payment page may still be
# open.
CLOSE_ORDER: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'CLOSED',
    close_reason = %s
WHERE id = %s
  AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')
  AND NOT EXISTS (
      SELECT 1
      FROM oms_payment_attempt AS a
      WHERE a.order_id = oms_order.id
        AND a.state IN ('OPEN', 'CLOSING'))
"""


def close_order(tx: Tx, order_id: int, reason: CloseReason) -> bool:
    return tx.execute(CLOSE_ORDER, (reason, order_id)) == 1


# PENDING_PAYMENT | PAYMENT_PROCESSING -> PAID.
MARK_PAID: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'PAID',
    paid_amount = pay_amount,
    paid_at = NOW(3)
WHERE id = %s
  AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')
  AND pay_amount = %s
"""


def mark_paid(tx: Tx, order_id: int, amount: Decimal) -> bool:
    return tx.execute(MARK_PAID, (order_id, amount)) == 1


REQUEST_CANCEL: Final = """
UPDATE oms_order
SET cancel_requested_at = NOW(3)
WHERE id = %s
  AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')
  AND cancel_requested_at IS NULL
"""


def request_cancel(tx: Tx, order_id: int) -> bool:
    """False: it was asked for before."""
    return tx.execute(REQUEST_CANCEL, (order_id,)) == 1


RECORD_REFUNDED_AMOUNT: Final = """
UPDATE oms_order
SET refunded_amount = %(refunded)s
WHERE id = %(order_id)s
  AND status IN ('PAID', 'SHIPPED', 'FINISHED', 'REFUNDING')
  AND refunded_amount < %(refunded)s
  AND paid_amount >= %(refunded)s
"""


def record_refunded_amount(tx: Tx, order_id: int, refunded: Decimal) -> bool:
    """Raise the cumulative sum; False: that much, or more, is known."""
    arguments = {"order_id": order_id, "refunded": refunded}
    return tx.execute(RECORD_REFUNDED_AMOUNT, arguments) == 1


# PAID | SHIPPED | FINISHED -> REFUNDING, once all that was paid has gone back.
MARK_REFUNDING: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'REFUNDING'
WHERE id = %s
  AND status IN ('PAID', 'SHIPPED', 'FINISHED')
  AND refunded_amount = paid_amount
"""


def mark_refunding(tx: Tx, order_id: int) -> bool:
    return tx.execute(MARK_REFUNDING, (order_id,)) == 1


# REFUNDING -> REFUNDED.
MARK_REFUNDED: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'REFUNDED'
WHERE id = %s
  AND status = 'REFUNDING'
  AND refunded_amount = paid_amount
"""


def mark_refunded(tx: Tx, order_id: int) -> bool:
    return tx.execute(MARK_REFUNDED, (order_id,)) == 1


# --- locking -------------------------------------------------------------------------------------

LOCK_OWN_ORDER: Final = """
SELECT id, status, cancel_requested_at, pay_amount, reservation_id,
       EXISTS (
           SELECT 1
           FROM oms_payment_attempt AS a
           WHERE a.order_id = oms_order.id) AS has_attempt
FROM oms_order
WHERE order_no = %s
  AND member_id = %s
FOR UPDATE
"""


def lock_own_order(tx: Tx, member_id: int, order_no: str) -> LockedOrder | None:
    return _locked(tx.one(LOCK_OWN_ORDER, (order_no, member_id)))


# An attempt's number leads to its order; without one, an order_no is the number of its own order.
LOCK_ORDER_OF_TRADE: Final = """
SELECT id, status, cancel_requested_at, pay_amount, reservation_id,
       EXISTS (
           SELECT 1
           FROM oms_payment_attempt AS a
           WHERE a.order_id = oms_order.id) AS has_attempt
FROM oms_order
WHERE id = COALESCE(
    (SELECT order_id FROM oms_payment_attempt WHERE out_trade_no = %(out_trade_no)s),
    (SELECT o.id FROM oms_order AS o WHERE o.order_no = %(out_trade_no)s))
FOR UPDATE
"""


def lock_order_of_trade(tx: Tx, out_trade_no: str) -> LockedOrder | None:
    """The order that ``out_trade_no`` pays for, whoever owns it."""
    return _locked(tx.one(LOCK_ORDER_OF_TRADE, {"out_trade_no": out_trade_no}))


def _locked(row: Mapping[str, Any] | None) -> LockedOrder | None:
    if row is None:
        return None
    return LockedOrder(
        **{
            **row,
            "status": OrderStatus(row["status"]),
            "has_attempt": bool(row["has_attempt"]),
        }
    )


# --- reading -------------------------------------------------------------------------------------

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


READ_STATUS: Final = """
SELECT status
FROM oms_order
WHERE id = %s
"""


def read_status(reader: Reader, order_id: int) -> OrderStatus | None:
    row = reader.one(READ_STATUS, (order_id,))
    return None if row is None else OrderStatus(row["status"])


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
