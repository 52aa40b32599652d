"""The SQL of payments that may revive their order."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lockstep.db.transaction import Reader, Tx
from lockstep.payments.model import Payment, PaymentState, RefundReason


@dataclass(frozen=True, slots=True)
class LatePayment(Payment):
    """A REINSTATE_PENDING payment. It has a time: without one it would go back at once."""

    gateway_paid_at: datetime


# A statement of its own after the order's lock, which covers the order's payments.
READ_LATE_PAYMENTS: Final = """
SELECT id, trade_no, order_id, amount, state, refunded_amount, told_amount, gateway_paid_at
FROM oms_order_payment
WHERE order_id = %s
  AND state = 'REINSTATE_PENDING'
ORDER BY id
"""


def read_late_payments(tx: Tx, order_id: int) -> list[LatePayment]:
    rows = tx.all(READ_LATE_PAYMENTS, (order_id,))
    return [LatePayment(**{**row, "state": PaymentState(row["state"])}) for row in rows]


READ_LATE_ORDERS: Final = """
SELECT DISTINCT o.id
FROM oms_order_payment AS p FORCE INDEX (ix_payment_state)
STRAIGHT_JOIN oms_order AS o FORCE INDEX (PRIMARY) ON o.id = p.order_id
WHERE p.state = 'REINSTATE_PENDING'
  AND o.turn_sku_id = %s
ORDER BY o.id
"""


def read_late_orders(reader: Reader, sku_id: int) -> list[int]:
    """The orders at this turn that late money may revive, in order of arrival."""
    return [row["id"] for row in reader.all(READ_LATE_ORDERS, (sku_id,))]


COUNT_LATE_PAYMENTS: Final = """
SELECT COUNT(*) AS late
FROM oms_order_payment
WHERE order_id = %s
  AND state = 'REINSTATE_PENDING'
"""


def count_late_payments(reader: Reader, order_id: int) -> int:
    [row] = reader.all(COUNT_LATE_PAYMENTS, (order_id,))
    return int(row["late"])


# REINSTATE_PENDING -> APPLIED | REFUND_PENDING.
SETTLE_LATE_PAYMENT: Final = """
UPDATE oms_order_payment
SET state = %s,
    reason = %s
WHERE id = %s
  AND state = 'REINSTATE_PENDING'
"""


def settle_late_payment(
    tx: Tx, payment_id: int, state: PaymentState, reason: RefundReason | None
) -> bool:
    return tx.execute(SETTLE_LATE_PAYMENT, (state, reason, payment_id)) == 1
