"""The SQL of an order that waits for its payment, and of what may hold it up."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lockstep.db.transaction import Reader, Tx
from lockstep.inventory.model import ReservationState

READ_PAYABLE: Final = """
SELECT o.expires_at, NOW(3) AS now, r.state AS hold
FROM oms_order AS o
LEFT JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
WHERE o.id = %s
"""


@dataclass(frozen=True, slots=True)
class Payable:
    """What an order can still be paid by: its time, the database's, and its hold."""

    expires_at: datetime | None
    now: datetime
    hold: ReservationState | None


def read_payable(reader: Reader, order_id: int) -> Payable:
    """Of an order that the caller has locked. A statement of its own: what the lock reads beside
    it may be older than the lock."""
    [row] = reader.all(READ_PAYABLE, (order_id,))
    hold = None if row["hold"] is None else ReservationState(row["hold"])
    return Payable(row["expires_at"], row["now"], hold)


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


# PENDING_PAYMENT -> PAYMENT_PROCESSING: it should be closed, and only the channel knows whether it
# was paid.
MARK_PROCESSING: Final = """
UPDATE oms_order
SET prev_status = status,
    status = 'PAYMENT_PROCESSING'
WHERE id = %s
  AND status = 'PENDING_PAYMENT'
"""


def mark_processing(tx: Tx, order_id: int) -> bool:
    return tx.execute(MARK_PROCESSING, (order_id,)) == 1
