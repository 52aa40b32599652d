"""The SQL of oms_order_payment and oms_notice. The caller holds the order's lock wherever there is
an order."""

from dataclasses import asdict
from datetime import datetime
from typing import Final

from lockstep import fingerprint
from lockstep.alipay.model import Notice, NoticeKind, TradeNotice, TradeReport
from lockstep.db.errors import Contended, DuplicateKey
from lockstep.db.transaction import Tx
from lockstep.payments.model import (
    NoticeState,
    Payment,
    PaymentState,
    RefundReason,
)

# --- the inbox -----------------------------------------------------------------------------------

# Born DONE: what else it comes to is written over that before the commit.
INSERT_NOTICE: Final = """
INSERT INTO oms_notice (
    provider, notify_id, content_hash, kind, notify_type, app_id, seller_id, trade_no, out_trade_no,
    trade_status, total_amount, refund_fee, out_biz_no, gmt_payment, gmt_refund, gmt_close, state)
VALUES (
    %(provider)s, %(notify_id)s, %(content_hash)s, %(kind)s, %(notify_type)s, %(app_id)s,
    %(seller_id)s, %(trade_no)s, %(out_trade_no)s, %(trade_status)s, %(total_amount)s,
    %(refund_fee)s, %(out_biz_no)s, %(gmt_payment)s, %(gmt_refund)s, %(gmt_close)s, 'DONE')
"""

_TRADE_FIELDS: Final = (
    "total_amount",
    "refund_fee",
    "out_biz_no",
    "gmt_payment",
    "gmt_refund",
    "gmt_close",
)


def insert_notice(tx: Tx, provider: str, notice: Notice) -> int | None:
    """The inbox id, or None if this notice is in the inbox already. Waits for one being decided."""
    columns = dict.fromkeys(_TRADE_FIELDS) | asdict(notice)
    columns |= {"provider": provider, "content_hash": content_hash(notice)}
    try:
        return tx.insert(INSERT_NOTICE, columns)
    except DuplicateKey:
        return None


def content_hash(notice: Notice) -> str:
    """Equal for every delivery of one notice, different for any that says something else."""
    said = asdict(notice)
    return fingerprint.of_notice(said[name] for name in sorted(said))


# FOR SHARE, never more: the failed INSERT of each duplicate holds a shared lock already.
READ_NOTICE_STATE: Final = """
SELECT state
FROM oms_notice
WHERE provider = %s
  AND notify_id = %s
  AND content_hash = %s
FOR SHARE
"""


def read_notice_state(tx: Tx, provider: str, notice: Notice) -> NoticeState:
    [row] = tx.all(READ_NOTICE_STATE, (provider, notice.notify_id, content_hash(notice)))
    return NoticeState(row["state"])


LOCK_NOTICE: Final = """
SELECT id, state
FROM oms_notice
WHERE provider = %s
  AND notify_id = %s
  AND content_hash = %s
FOR UPDATE
"""


def lock_notice(tx: Tx, provider: str, notice: Notice) -> tuple[int, NoticeState] | None:
    """The first statement of a transaction that decides a stored notice again."""
    row = tx.one(LOCK_NOTICE, (provider, notice.notify_id, content_hash(notice)))
    return None if row is None else (row["id"], NoticeState(row["state"]))


# What is not final comes again after 1, 2, 4 ... 60 minutes, and what the channel must say at once
# and then likewise, for a day. After that nobody asks: a person must act.
FINISH_NOTICE: Final = """
UPDATE oms_notice
SET state = %(state)s,
    reason = %(reason)s,
    next_ask_at = IF(
        %(state)s <> 'DONE' AND created_at > TIMESTAMPADD(DAY, -1, NOW(3)),
        TIMESTAMPADD(
            MINUTE,
            LEAST((1 << LEAST(asks, 7)) DIV IF(%(state)s = 'QUERY_DUE', 2, 1), 60),
            NOW(3)),
        NULL)
WHERE id = %(id)s
"""


def finish_notice(tx: Tx, notice_id: int, state: NoticeState, reason: str | None) -> None:
    """Keep what a notice came to, and when it is looked at again."""
    tx.execute(FINISH_NOTICE, {"id": notice_id, "state": state, "reason": reason})


READ_DUE_NOTICES: Final = """
SELECT id, kind, notify_id, notify_type, app_id, seller_id, trade_no, out_trade_no, trade_status,
       total_amount, refund_fee, out_biz_no, gmt_payment, gmt_refund, gmt_close
FROM oms_notice
WHERE trade_no = %s
  AND provider = %s
  AND state = 'QUERY_DUE'
ORDER BY id
"""


def read_due_notices(tx: Tx, provider: str, trade_no: str) -> list[tuple[int, TradeNotice]]:
    """Notices that came before the payment they speak of, oldest first. What was only for display
    is not kept."""
    rows = tx.all(READ_DUE_NOTICES, (trade_no, provider))
    return [
        (row.pop("id"), TradeNotice(**{**row, "kind": NoticeKind(row["kind"]), "subject": ""}))
        for row in rows
    ]


# --- payments ------------------------------------------------------------------------------------

# A missing row locks nothing: two transactions with one new trade_no meet at the unique key. The
# statement comes after the order's lock, so that it sees every notice of the order stored before.
LOCK_PAYMENT: Final = """
SELECT p.id, p.trade_no, p.order_id, p.amount, p.state, p.refunded_amount, p.told_amount,
       due.has_due_notices
FROM (
    SELECT EXISTS (
        SELECT 1
        FROM oms_notice AS n
        WHERE n.trade_no = %(trade_no)s
          AND n.provider = %(provider)s
          AND n.state = 'QUERY_DUE') AS has_due_notices) AS due
LEFT JOIN oms_order_payment AS p
    ON p.provider = %(provider)s AND p.trade_no = %(trade_no)s
FOR UPDATE OF p
"""


def lock_payment(tx: Tx, provider: str, trade_no: str) -> tuple[Payment | None, bool]:
    """The payment of this trade if it is known, and whether notices of it are waiting for it."""
    [row] = tx.all(LOCK_PAYMENT, {"provider": provider, "trade_no": trade_no})
    has_due_notices = bool(row.pop("has_due_notices"))
    if row["id"] is None:
        return None, has_due_notices
    return Payment(**{**row, "state": PaymentState(row["state"])}), has_due_notices


INSERT_PAYMENT: Final = """
INSERT INTO oms_order_payment (
    provider, trade_no, out_trade_no, order_id, amount, state, reason, gateway_paid_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""


def insert_payment(
    tx: Tx,
    provider: str,
    report: TradeReport,
    order_id: int | None,
    state: PaymentState,
    reason: RefundReason | None,
) -> int:
    """Record a payment once; its id. Raises Contended if somebody recorded this trade meanwhile."""
    columns = (
        provider,
        report.trade_no,
        report.out_trade_no,
        order_id,
        report.total_amount,
        state,
        reason,
        report.gmt_payment,
    )
    try:
        return tx.insert(INSERT_PAYMENT, columns)
    except DuplicateKey as race:
        if race.key != "uk_payment_trade":
            raise
        raise Contended(str(race)) from race


# UNMATCHED -> APPLIED | REFUND_PENDING | REINSTATE_PENDING, once its order is known after all.
MATCH_PAYMENT: Final = """
UPDATE oms_order_payment
SET order_id = %s,
    state = %s,
    reason = %s
WHERE id = %s
  AND state = 'UNMATCHED'
"""


def match_payment(
    tx: Tx, payment_id: int, order_id: int, state: PaymentState, reason: RefundReason | None
) -> bool:
    return tx.execute(MATCH_PAYMENT, (order_id, state, reason, payment_id)) == 1


MARK_FINISHED: Final = """
UPDATE oms_order_payment
SET finished_at = COALESCE(%s, NOW(3))
WHERE id = %s
  AND finished_at IS NULL
"""


def mark_finished(tx: Tx, payment_id: int, at: datetime | None) -> bool:
    """The channel refunds this trade no more. False: known before."""
    return tx.execute(MARK_FINISHED, (at, payment_id)) == 1
