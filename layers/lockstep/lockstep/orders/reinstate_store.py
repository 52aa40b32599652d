"""The SQL by which a closed order is paid after all."""

from decimal import Decimal
from typing import Final

from lockstep.db.transaction import Tx

# CLOSED -> PAID, in the transaction that takes the fresh hold which the order names from now on.
REINSTATE_ORDER: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'PAID',
    close_reason = NULL,
    paid_amount = pay_amount,
    paid_at = NOW(3),
    reservation_id = %s
WHERE id = %s
  AND status = 'CLOSED'
  AND close_reason = 'EXPIRED'
  AND pay_amount = %s
"""


def reinstate_order(tx: Tx, order_id: int, reservation_id: str, amount: Decimal) -> bool:
    return tx.execute(REINSTATE_ORDER, (reservation_id, order_id, amount)) == 1
