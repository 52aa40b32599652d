"""The SQL of oms_order, oms_order_item and oms_order_event.

Every change of status is one guarded UPDATE that names its from-states and sets prev_status, so
that the legal-pairs foreign key can judge it; 0 affected rows mean that somebody else was first.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from lockstep.db.connection import Row
from lockstep.db.packet import Packet, Reply, Writer
from lockstep.db.transaction import Tx
from lockstep.orders.model import (
    CloseReason,
    LockedOrder,
    Order,
    OrderLine,
    OrderStatus,
    TradedOrder,
)

# --- writing an order ----------------------------------------------------------------------------

INSERT_ORDER: Final = """
INSERT INTO oms_order (
    order_no, member_id, status, prev_status, total_amount, pay_amount, note, reservation_id,
    turn_sku_id, created_at, expires_at)
VALUES (%s, %s, %s, 'NONE', %s, %s, %s, %s, %s, %s, %s)
"""


def insert_order(packet: Packet, order: Order, turn_sku_id: int | None) -> Reply:
    """Its reply has the new order's id. DuplicateKey('uk_order_no') if the number is taken."""
    return packet.insert(
        INSERT_ORDER,
        (
            order.order_no,
            order.member_id,
            order.status,
            order.total_amount,
            order.pay_amount,
            order.note,
            order.reservation_id,
            turn_sku_id,
            order.created_at,
            order.expires_at,
        ),
    )


INSERT_ITEMS: Final = """
INSERT INTO oms_order_item (order_id, sku_id, title, quantity, price, amount)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def insert_items(writer: Writer, order_id: int, lines: Iterable[OrderLine]) -> None:
    writer.insert_many(
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
    writer: Writer,
    order_id: int,
    from_status: OrderStatus,
    to_status: OrderStatus,
    actor: str,
    reason: str,
    evidence: Mapping[str, str] | None = None,
) -> None:
    """One line of the trail, in the transaction of the change that it tells."""
    text = None if evidence is None else json.dumps(evidence, sort_keys=True)
    writer.insert(INSERT_EVENT, (order_id, from_status, to_status, actor, reason, text))


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


# PENDING_PAYMENT | PAYMENT_PROCESSING -> CLOSED at the end of its time by the database's clock, but
# not with a payment page that may be open: the channel is asked first.
EXPIRE_ORDER: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'CLOSED',
    close_reason = 'EXPIRED'
WHERE id = %s
  AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')
  AND expires_at <= NOW(3)
  AND NOT EXISTS (
      SELECT 1
      FROM oms_payment_attempt AS a
      WHERE a.order_id = oms_order.id
        AND a.state IN ('OPEN', 'CLOSING'))
"""


def expire_order(tx: Tx, order_id: int) -> bool:
    return tx.execute(EXPIRE_ORDER, (order_id,)) == 1


# RESERVING -> CLOSED, when its turn did not come in time.
GIVE_UP_ORDER: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'CLOSED',
    close_reason = 'OUT_OF_STOCK'
WHERE id = %s
  AND status = 'RESERVING'
  AND created_at <= TIMESTAMPADD(SECOND, -%s, NOW(3))
"""


def give_up_order(tx: Tx, order_id: int, limit_seconds: int) -> bool:
    return tx.execute(GIVE_UP_ORDER, (order_id, limit_seconds)) == 1


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


# --- locking -------------------------------------------------------------------------------------

LOCK_OWN_ORDER: Final = """
SELECT id, status, prev_status, cancel_requested_at, pay_amount, reservation_id
FROM oms_order
WHERE order_no = %s
  AND member_id = %s
FOR UPDATE
"""


def lock_own_order(tx: Tx, member_id: int, order_no: str) -> LockedOrder | None:
    return _locked(tx.one(LOCK_OWN_ORDER, (order_no, member_id)))


LOCK_ORDER: Final = """
SELECT id, status, prev_status, cancel_requested_at, pay_amount, reservation_id
FROM oms_order
WHERE id = %s
FOR UPDATE
"""


def lock_order(tx: Tx, order_id: int) -> LockedOrder | None:
    return _locked(tx.one(LOCK_ORDER, (order_id,)))


LOCK_ORDER_BY_NO: Final = """
SELECT id, status, prev_status, cancel_requested_at, pay_amount, reservation_id
FROM oms_order
WHERE order_no = %s
FOR UPDATE
"""


def lock_order_by_no(tx: Tx, order_no: str) -> LockedOrder | None:
    """Whoever owns it: for operators."""
    return _locked(tx.one(LOCK_ORDER_BY_NO, (order_no,)))


def _locked(row: Row | None) -> LockedOrder | None:
    return None if row is None else LockedOrder(**{**row, **_statuses(row)})


def _statuses(row: Row) -> dict[str, OrderStatus]:
    return {name: OrderStatus(row[name]) for name in ("status", "prev_status")}


# An attempt's number leads to its order; without one, an order_no is the number of its own order.
# Before both goes the order that a payment with this number was given to, by a person perhaps.
# Whether there are attempts is read with a lock: a plain subquery answers from the statement's
# view, which is older than the order's lock if that had to be waited for.
LOCK_ORDER_OF_TRADE: Final = """
SELECT id, status, prev_status, cancel_requested_at, pay_amount, reservation_id, close_reason,
       expires_at,
       EXISTS (
           SELECT 1
           FROM oms_payment_attempt AS a
           WHERE a.order_id = oms_order.id
           FOR SHARE) AS has_attempt
FROM oms_order
WHERE id = COALESCE(
    (SELECT p.order_id
     FROM oms_order_payment AS p
     WHERE p.provider = %(provider)s
       AND p.trade_no = %(trade_no)s
       AND p.out_trade_no = %(out_trade_no)s),
    (SELECT order_id FROM oms_payment_attempt WHERE out_trade_no = %(out_trade_no)s),
    (SELECT o.id FROM oms_order AS o WHERE o.order_no = %(out_trade_no)s))
FOR UPDATE
"""


def lock_order_of_trade(
    tx: Tx, out_trade_no: str, provider: str | None = None, trade_no: str | None = None
) -> TradedOrder | None:
    """The order that ``out_trade_no``, or a trade of it, pays for, whoever owns it."""
    arguments = {"out_trade_no": out_trade_no, "provider": provider, "trade_no": trade_no}
    row = tx.one(LOCK_ORDER_OF_TRADE, arguments)
    if row is None:
        return None
    said = {**_statuses(row), "has_attempt": bool(row["has_attempt"])}
    said["close_reason"] = row["close_reason"] and CloseReason(row["close_reason"])
    return TradedOrder(**{**row, **said})
