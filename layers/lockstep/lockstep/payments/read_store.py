"""The SQL that payments are looked at with: no locks, no writes."""

from typing import Final

from lockstep.db.transaction import Reader
from lockstep.payments.model import PaymentState, PaymentView

READ_UNCONFIRMED_HOLD: Final = """
SELECT o.id, o.reservation_id
FROM oms_order_payment AS p
JOIN oms_order AS o ON o.id = p.order_id
JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id AND r.state = 'RESERVED'
WHERE p.provider = %s
  AND p.trade_no = %s
  AND p.state = 'APPLIED'
"""


def read_unconfirmed_hold(reader: Reader, provider: str, trade_no: str) -> tuple[int, str] | None:
    """(order_id, reservation_id) of a paid order whose stock is held but not yet sold."""
    row = reader.one(READ_UNCONFIRMED_HOLD, (provider, trade_no))
    return None if row is None else (row["id"], row["reservation_id"])


HAS_OPEN_REFUND: Final = """
SELECT EXISTS (
    SELECT 1
    FROM oms_refund
    WHERE payment_id = %s
      AND state IN ('DUE', 'CALLING', 'UNKNOWN')) AS has_open_refund
"""


def has_open_refund(reader: Reader, payment_id: int) -> bool:
    """Whether a refund of this payment is still under way."""
    [row] = reader.all(HAS_OPEN_REFUND, (payment_id,))
    return bool(row["has_open_refund"])


READ_PAYMENTS: Final = """
SELECT provider, trade_no, amount, state, gateway_paid_at AS paid_at
FROM oms_order_payment
WHERE order_id = %s
ORDER BY id
"""


def read_payments(reader: Reader, order_id: int) -> list[PaymentView]:
    """The order's payments, in order of arrival."""
    rows = reader.all(READ_PAYMENTS, (order_id,))
    return [PaymentView(**{**row, "state": PaymentState(row["state"])}) for row in rows]
