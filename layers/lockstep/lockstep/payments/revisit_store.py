"""The SQL of stored notices that are looked at again."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.db.transaction import Reader, Tx
from lockstep.payments.model import NoticeState

# A lease: whoever dies over it leaves it to the next one after that time.
LEASE_NOTICE: Final = """
UPDATE oms_notice
SET asks = asks + 1,
    next_ask_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND next_ask_at <= NOW(3)
"""


def lease_notice(tx: Tx, notice_id: int, seconds: int) -> bool:
    return tx.execute(LEASE_NOTICE, (seconds, notice_id)) == 1


READ_STORED_NOTICE: Final = """
SELECT n.kind, n.notify_id, n.notify_type, n.app_id, n.seller_id, n.trade_no, n.out_trade_no,
       n.trade_status, n.total_amount, n.refund_fee, n.out_biz_no, n.gmt_payment, n.gmt_refund,
       n.gmt_close, n.state, n.reason, n.created_at <= TIMESTAMPADD(DAY, -1, NOW(3)) AS is_last,
       p.id IS NOT NULL AS is_payment_known
FROM oms_notice AS n
LEFT JOIN oms_order_payment AS p ON p.provider = n.provider AND p.trade_no = n.trade_no
WHERE n.id = %s
"""


@dataclass(frozen=True, slots=True)
class StoredNotice:
    """``is_last``: it is a day old, and nobody looks again after this."""

    notice: TradeNotice
    state: NoticeState
    reason: str | None
    is_last: bool
    is_payment_known: bool


def read_stored_notice(tx: Tx, notice_id: int) -> StoredNotice:
    """Of a notice that the caller has leased just now, and so locked."""
    [row] = tx.all(READ_STORED_NOTICE, (notice_id,))
    state, reason = NoticeState(row.pop("state")), row.pop("reason")
    is_last, is_payment_known = bool(row.pop("is_last")), bool(row.pop("is_payment_known"))
    notice = TradeNotice(**{**row, "kind": NoticeKind(row["kind"]), "subject": ""})
    return StoredNotice(notice, state, reason, is_last, is_payment_known)


LOCK_STORED_NOTICE: Final = """
SELECT state
FROM oms_notice
WHERE id = %s
FOR UPDATE
"""


def lock_stored_notice(tx: Tx, notice_id: int) -> NoticeState | None:
    """The first statement of a transaction that decides a stored notice again."""
    row = tx.one(LOCK_STORED_NOTICE, (notice_id,))
    return None if row is None else NoticeState(row["state"])


# What waits for this trade may be decided now that somebody acted.
WAKE_NOTICES: Final = """
UPDATE oms_notice
SET next_ask_at = NOW(3)
WHERE trade_no = %s
  AND provider = %s
  AND state IN ('QUERY_DUE', 'UNMATCHED', 'CONFLICT')
"""


def wake_notices(tx: Tx, provider: str, trade_no: str) -> int:
    """Have what waits for this trade decided again at the next look; how many notices that is."""
    return tx.execute(WAKE_NOTICES, (trade_no, provider))


READ_RECEIPT: Final = """
SELECT out_trade_no, gateway_paid_at, finished_at
FROM oms_order_payment
WHERE id = %s
"""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was said of a payment when it came."""

    out_trade_no: str
    gateway_paid_at: datetime | None
    finished_at: datetime | None


def read_receipt(tx: Tx, payment_id: int) -> Receipt:
    """Of a payment that the caller has locked."""
    [row] = tx.all(READ_RECEIPT, (payment_id,))
    return Receipt(**row)


READ_REFUND_DONE: Final = """
SELECT amount
FROM oms_refund
WHERE payment_id = %s
  AND out_request_no = %s
  AND state = 'DONE'
"""


def read_refund_done(reader: Reader, payment_id: int, out_request_no: str | None) -> Decimal | None:
    """The amount of this refund, if it is known to be done; without a number, of none."""
    row = reader.one(READ_REFUND_DONE, (payment_id, out_request_no))
    return None if row is None else row["amount"]
