"""The SQL that operators find money with that waits for a person: no locks, no writes."""

from typing import Final

from lockstep.db.transaction import Reader
from lockstep.payments.model import PaymentState
from lockstep.payments.refund_model import WaitingMoney

LIST_WAITING: Final = """
SELECT p.id, p.provider, p.trade_no, p.out_trade_no, o.order_no, p.amount, p.refunded_amount,
       p.state, p.reason, p.gateway_paid_at AS paid_at, f.out_request_no, f.amount AS refund_amount,
       f.code AS refund_code
FROM oms_order_payment AS p
LEFT JOIN oms_refund AS f
    ON f.payment_id = p.id
   AND f.state = 'FAILED'
   AND NOT EXISTS (
       SELECT 1 FROM oms_refund AS later WHERE later.payment_id = p.id AND later.id > f.id)
LEFT JOIN oms_order AS o ON o.id = p.order_id
WHERE p.state = %(state)s
  AND p.id < %(before)s
ORDER BY p.id DESC
LIMIT %(limit)s
"""

# Of a payment that paid its order: the newest of its refunds was given up, and nobody asked anew.
LIST_APPLIED_WITH_FAILED_REFUND: Final = """
SELECT p.id, p.provider, p.trade_no, p.out_trade_no, o.order_no, p.amount, p.refunded_amount,
       p.state, p.reason, p.gateway_paid_at AS paid_at, f.out_request_no, f.amount AS refund_amount,
       f.code AS refund_code
FROM oms_refund AS f
JOIN oms_order_payment AS p ON p.id = f.payment_id
LEFT JOIN oms_order AS o ON o.id = p.order_id
WHERE f.state = 'FAILED'
  AND p.state = 'APPLIED'
  AND p.refunded_amount < p.amount
  AND p.id < %(before)s
  AND NOT EXISTS (
      SELECT 1 FROM oms_refund AS later WHERE later.payment_id = p.id AND later.id > f.id)
ORDER BY p.id DESC
LIMIT %(limit)s
"""


def list_waiting(
    reader: Reader, state: PaymentState, before: int, limit: int
) -> list[WaitingMoney]:
    """Payments in ``state``, or APPLIED ones whose last refund was given up, with an id below
    ``before``, newest first."""
    is_applied = state is PaymentState.APPLIED
    sql = LIST_APPLIED_WITH_FAILED_REFUND if is_applied else LIST_WAITING
    rows = reader.all(sql, {"state": state, "before": before, "limit": limit})
    return [WaitingMoney(**{**row, "state": PaymentState(row["state"])}) for row in rows]
