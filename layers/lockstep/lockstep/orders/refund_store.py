"""The SQL of an order whose money goes back: sums, and the states around REFUNDING.

The caller holds the order's lock. Every change of status names its from-states and sets
prev_status, as in `store`.
"""

from decimal import Decimal
from typing import Final

from lockstep.db.transaction import Tx
from lockstep.orders.model import OrderStatus

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


# PAID | SHIPPED | FINISHED -> REFUNDING, as soon as all of it is asked for: it ships no more.
BEGIN_REFUND: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'REFUNDING'
WHERE id = %s
  AND status IN ('PAID', 'SHIPPED', 'FINISHED')
"""


def begin_refund(tx: Tx, order_id: int) -> bool:
    return tx.execute(BEGIN_REFUND, (order_id,)) == 1


# REFUNDING -> the state before, when the channel will not do it.
GIVE_UP_REFUND: Final = """
UPDATE oms_order
SET prev_status = status,
    status = %(back_to)s
WHERE id = %(order_id)s
  AND status = 'REFUNDING'
  AND prev_status = %(back_to)s
"""


def give_up_refund(tx: Tx, order_id: int, back_to: OrderStatus) -> bool:
    return tx.execute(GIVE_UP_REFUND, {"order_id": order_id, "back_to": back_to}) == 1
