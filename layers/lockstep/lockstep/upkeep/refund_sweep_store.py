"""The SQL that the sweep looks for refunds with; see `store`, whose pages these are too."""

from dataclasses import dataclass
from typing import Final

from lockstep.db.transaction import Reader
from lockstep.payments.refund_model import RefundState
from lockstep.upkeep.store import PAGE_SIZE, Mark


@dataclass(frozen=True, slots=True)
class DueRefund:
    refund_id: int
    payment_id: int
    mark: Mark

    @property
    def name(self) -> str:
        return f"refund {self.refund_id}"


@dataclass(frozen=True, slots=True)
class UnaskedRefund:
    """Money that is to go back and that nobody asked the channel to give back."""

    payment_id: int
    mark: Mark

    @property
    def name(self) -> str:
        return f"payment {self.payment_id}"


# One state a query: of several at once the rows would have to be sorted.
READ_DUE_REFUNDS: Final = """
SELECT r.id, r.payment_id, r.next_try_at AS at
FROM oms_refund AS r
WHERE r.state = %(state)s
  AND r.next_try_at BETWEEN %(at)s AND NOW(3)
  AND (r.next_try_at > %(at)s OR r.id > %(id)s)
ORDER BY r.next_try_at, r.id
LIMIT %(limit)s
"""


def read_due_refunds(reader: Reader, after: Mark, state: RefundState) -> list[DueRefund]:
    """Refunds in this state whose time has come, longest ago first."""
    arguments = {"state": state, "at": after.at, "id": after.id, "limit": PAGE_SIZE}
    rows = reader.all(READ_DUE_REFUNDS, arguments)
    return [DueRefund(row["id"], row["payment_id"], Mark(row["at"], row["id"])) for row in rows]


READ_UNASKED_REFUNDS: Final = """
SELECT p.id, p.created_at AS at
FROM oms_order_payment AS p
WHERE p.state = 'REFUND_PENDING'
  AND p.created_at >= %(at)s
  AND (p.created_at > %(at)s OR p.id > %(id)s)
  AND NOT EXISTS (
      SELECT 1
      FROM oms_refund AS r
      WHERE r.payment_id = p.id
        AND r.state <> 'DONE')
ORDER BY p.created_at, p.id
LIMIT %(limit)s
"""


def read_unasked_refunds(reader: Reader, after: Mark) -> list[UnaskedRefund]:
    """Payments that wait for a refund which has no row, oldest first."""
    rows = reader.all(READ_UNASKED_REFUNDS, {"at": after.at, "id": after.id, "limit": PAGE_SIZE})
    return [UnaskedRefund(row["id"], Mark(row["at"], row["id"])) for row in rows]


# Each try sets next_try_at anew, so that what was staged since then was lost, or is on its way.
READ_STAGED_REFUND: Final = """
SELECT COALESCE(SUM(b.created_at >= r.next_try_at), 0) AS times,
       TIMESTAMPDIFF(SECOND, MAX(b.created_at), NOW(3)) AS newest_seconds
FROM oms_refund AS r
LEFT JOIN outbox AS b
    ON b.queue = 'refund' AND b.group_key = %(group_key)s AND b.payload->>'$.refund_id' = r.id
WHERE r.id = %(refund_id)s
"""


def read_staged_refund(reader: Reader, refund_id: int, payment_id: int) -> tuple[int, int | None]:
    """(how often since the refund is due, how many seconds ago last) a try of it was staged."""
    arguments = {"group_key": str(payment_id), "refund_id": refund_id}
    [row] = reader.all(READ_STAGED_REFUND, arguments)
    return int(row["times"]), row["newest_seconds"]
