"""The SQL of a payment whose money goes back: its place, its lock, its states and its sum."""

from decimal import Decimal
from typing import Final

from lockstep.db.connection import Row
from lockstep.db.transaction import Reader, Tx
from lockstep.payments.model import PaymentState
from lockstep.payments.refund_model import RefundablePayment

# --- finding and locking -------------------------------------------------------------------------

READ_REFUND_PLACE: Final = """
SELECT p.id, p.order_id
FROM oms_refund AS r
JOIN oms_order_payment AS p ON p.id = r.payment_id
WHERE r.id = %s
"""


def read_refund_place(reader: Reader, refund_id: int) -> tuple[int, int | None] | None:
    """(payment_id, order_id): what must be locked before the refund may be looked at."""
    row = reader.one(READ_REFUND_PLACE, (refund_id,))
    return None if row is None else (row["id"], row["order_id"])


LOCK_REFUNDABLE: Final = """
SELECT id, trade_no, order_id, amount, state, refunded_amount, told_amount, reason,
       finished_at IS NOT NULL AS is_finished
FROM oms_order_payment
WHERE id = %s
FOR UPDATE
"""


def lock_refundable(tx: Tx, payment_id: int) -> RefundablePayment:
    """A payment that is known to be there: none is ever deleted."""
    [row] = tx.all(LOCK_REFUNDABLE, (payment_id,))
    return _payment(row)


READ_APPLIED: Final = """
SELECT id, trade_no, order_id, amount, state, refunded_amount, told_amount, reason,
       finished_at IS NOT NULL AS is_finished
FROM oms_order_payment
WHERE applied_to = %s
"""


def read_applied(reader: Reader, order_id: int) -> RefundablePayment | None:
    """The payment that paid this order, whose lock covers it."""
    row = reader.one(READ_APPLIED, (order_id,))
    return None if row is None else _payment(row)


def _payment(row: Row) -> RefundablePayment:
    state, is_finished = PaymentState(row["state"]), bool(row["is_finished"])
    return RefundablePayment(**{**row, "state": state, "is_finished": is_finished})


# --- sums and states -----------------------------------------------------------------------------

# Each refund that is done is added once, by whoever moved its row to DONE.
ADD_REFUNDED: Final = """
UPDATE oms_order_payment
SET refunded_amount = refunded_amount + %(amount)s
WHERE id = %(id)s
  AND refunded_amount + %(amount)s <= amount
"""


def add_refunded(tx: Tx, payment_id: int, amount: Decimal) -> bool:
    """False: that would be more than was paid."""
    return tx.execute(ADD_REFUNDED, {"id": payment_id, "amount": amount}) == 1


# Totals are told in any order.
MARK_TOLD: Final = """
UPDATE oms_order_payment
SET told_amount = GREATEST(told_amount, %s)
WHERE id = %s
"""


def mark_told(tx: Tx, payment_id: int, total: Decimal) -> None:
    """Every refund of the trade up to this total is counted."""
    tx.execute(MARK_TOLD, (total, payment_id))


# REFUND_PENDING | REFUND_FAILED -> REFUNDING. An APPLIED payment stays APPLIED.
MARK_PAYMENT_REFUNDING: Final = """
UPDATE oms_order_payment
SET state = 'REFUNDING'
WHERE id = %s
  AND state IN ('REFUND_PENDING', 'REFUND_FAILED')
"""


def mark_payment_refunding(tx: Tx, payment_id: int) -> bool:
    return tx.execute(MARK_PAYMENT_REFUNDING, (payment_id,)) == 1


# Money that no order took, and all of which went back.
MARK_PAYMENT_REFUNDED: Final = """
UPDATE oms_order_payment
SET state = 'REFUNDED'
WHERE id = %s
  AND state IN ('REFUND_PENDING', 'REFUNDING', 'REFUND_FAILED', 'UNMATCHED')
  AND refunded_amount = amount
"""


def mark_payment_refunded(tx: Tx, payment_id: int) -> bool:
    return tx.execute(MARK_PAYMENT_REFUNDED, (payment_id,)) == 1


# REFUNDING -> REFUND_FAILED.
MARK_PAYMENT_FAILED: Final = """
UPDATE oms_order_payment
SET state = 'REFUND_FAILED'
WHERE id = %s
  AND state = 'REFUNDING'
"""


def mark_payment_failed(tx: Tx, payment_id: int) -> bool:
    return tx.execute(MARK_PAYMENT_FAILED, (payment_id,)) == 1


# UNMATCHED -> REFUND_PENDING: a person says that nobody will claim it.
GIVE_UNMATCHED_BACK: Final = """
UPDATE oms_order_payment
SET state = 'REFUND_PENDING'
WHERE id = %s
  AND state = 'UNMATCHED'
"""


def give_unmatched_back(tx: Tx, payment_id: int) -> bool:
    return tx.execute(GIVE_UNMATCHED_BACK, (payment_id,)) == 1
