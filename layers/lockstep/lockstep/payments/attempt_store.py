"""The SQL of oms_payment_attempt. The caller holds the lock of the attempt's order."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from lockstep.db.connection import Row
from lockstep.db.transaction import Reader, Tx
from lockstep.payments.model import Attempt, AttemptState, Product

# The channel forgets a page at the end of its time, by a clock of its own; then it is asked.
OVER_AFTER_SECONDS: Final = 60
# What nobody told us of a page by then, we ask.
FIRST_ASK_SECONDS: Final = 60
# Longer than a conversation and what follows from it take: whoever claimed an attempt and died is
# relieved after this.
LEASE_SECONDS: Final = 30

INSERT_ATTEMPT: Final = """
INSERT INTO oms_payment_attempt (
    order_id, out_trade_no, product, amount, state, expires_at, next_ask_at)
VALUES (%s, %s, %s, %s, 'OPEN', %s, TIMESTAMPADD(SECOND, %s, NOW(3)))
"""


def insert_attempt(
    tx: Tx,
    order_id: int,
    out_trade_no: str,
    product: Product,
    amount: Decimal,
    expires_at: datetime,
) -> Attempt:
    row = (order_id, out_trade_no, product, amount, expires_at, FIRST_ASK_SECONDS)
    attempt_id = tx.insert(INSERT_ATTEMPT, row)
    return Attempt(attempt_id, out_trade_no, product, amount, AttemptState.OPEN, expires_at)


READ_ATTEMPTS: Final = """
SELECT id, out_trade_no, product, amount, state, expires_at
FROM oms_payment_attempt
WHERE order_id = %s
ORDER BY id
"""


def read_attempts(reader: Reader, order_id: int) -> list[Attempt]:
    """Every attempt of the order, oldest first."""
    return [_attempt(row) for row in reader.all(READ_ATTEMPTS, (order_id,))]


READ_ATTEMPT: Final = """
SELECT id, out_trade_no, product, amount, state, expires_at, asks,
       expires_at <= TIMESTAMPADD(SECOND, -%s, NOW(3)) AS is_over
FROM oms_payment_attempt
WHERE id = %s
"""


@dataclass(frozen=True, slots=True)
class AskedAttempt:
    """``is_over``: the channel takes no money for it any more. ``asks``: how often it was asked
    before, since it is to be closed."""

    attempt: Attempt
    asks: int
    is_over: bool


def read_attempt(reader: Reader, attempt_id: int) -> AskedAttempt | None:
    row = reader.one(READ_ATTEMPT, (OVER_AFTER_SECONDS, attempt_id))
    if row is None:
        return None
    asks, is_over = row.pop("asks"), bool(row.pop("is_over"))
    return AskedAttempt(_attempt(row), asks, is_over)


def _attempt(row: Row) -> Attempt:
    return Attempt(**{**row, "state": AttemptState(row["state"])})


# --- what is asked --------------------------------------------------------------------------------

# OPEN -> CLOSING: committed before the channel is asked to close it, so that nobody starts another
# and the channel's own word of the close is known as asked for.
BEGIN_CLOSING: Final = """
UPDATE oms_payment_attempt
SET state = 'CLOSING',
    asks = 0
WHERE id = %s
  AND state = 'OPEN'
"""


def begin_closing(tx: Tx, attempt_id: int) -> bool:
    return tx.execute(BEGIN_CLOSING, (attempt_id,)) == 1


ASK_NOW: Final = """
UPDATE oms_payment_attempt
SET next_ask_at = NOW(3)
WHERE id = %s
  AND state IN ('OPEN', 'CLOSING')
"""


def ask_now(tx: Tx, attempt_id: int) -> bool:
    """Let it be asked about at once, whoever was to ask it later."""
    return tx.execute(ASK_NOW, (attempt_id,)) == 1


LEASE_ATTEMPT: Final = """
UPDATE oms_payment_attempt
SET asks = asks + 1,
    next_ask_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND state IN ('OPEN', 'CLOSING', 'CLOSED')
  AND next_ask_at <= NOW(3)
"""


def lease_attempt(tx: Tx, attempt_id: int) -> bool:
    """True: the caller asks, and nobody else for LEASE_SECONDS. False: somebody else does."""
    return tx.execute(LEASE_ATTEMPT, (LEASE_SECONDS, attempt_id)) == 1


# OPEN | CLOSING -> CLOSED: the channel said that nobody can pay it, or it is no longer waited for.
CLOSE_ATTEMPT: Final = """
UPDATE oms_payment_attempt
SET state = 'CLOSED',
    next_ask_at = NULL
WHERE id = %s
  AND state IN ('OPEN', 'CLOSING')
"""


def close_attempt(tx: Tx, attempt_id: int) -> bool:
    return tx.execute(CLOSE_ATTEMPT, (attempt_id,)) == 1


# CLOSED though nothing was closed at the channel: its link can be paid until its time is over. What
# is paid by it goes back; then it is asked once more whether anything was, lest no notice tells.
ASK_AT_THE_END: Final = """
UPDATE oms_payment_attempt
SET next_ask_at = IF(
    expires_at <= TIMESTAMPADD(SECOND, -%(seconds)s, NOW(3)),
    NULL,
    TIMESTAMPADD(SECOND, %(seconds)s, expires_at))
WHERE id = %(id)s
  AND state = 'CLOSED'
"""


def ask_at_the_end(tx: Tx, attempt_id: int) -> bool:
    arguments = {"id": attempt_id, "seconds": OVER_AFTER_SECONDS}
    return tx.execute(ASK_AT_THE_END, arguments) == 1


# A page that may be paid is asked about once more as soon as its time is over.
POSTPONE_POLL: Final = """
UPDATE oms_payment_attempt
SET next_ask_at = LEAST(
    TIMESTAMPADD(SECOND, %s, NOW(3)),
    TIMESTAMPADD(SECOND, %s, expires_at))
WHERE id = %s
  AND state = 'OPEN'
"""


def postpone_poll(tx: Tx, attempt_id: int, seconds: int) -> bool:
    """False: it is to be closed by now, and whoever does that asks."""
    return tx.execute(POSTPONE_POLL, (seconds, OVER_AFTER_SECONDS, attempt_id)) == 1


POSTPONE_CLOSE: Final = """
UPDATE oms_payment_attempt
SET next_ask_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND state IN ('CLOSING', 'CLOSED')
  AND next_ask_at IS NOT NULL
"""


def postpone_close(tx: Tx, attempt_id: int, seconds: int) -> bool:
    return tx.execute(POSTPONE_CLOSE, (seconds, attempt_id)) == 1


FORGET_ATTEMPT: Final = """
UPDATE oms_payment_attempt
SET next_ask_at = NULL
WHERE id = %s
  AND state IN ('CLOSED', 'PAID')
"""


def forget_attempt(tx: Tx, attempt_id: int) -> bool:
    """Nothing is owed any more for an attempt that is over. False: it is not, or nothing was."""
    return tx.execute(FORGET_ATTEMPT, (attempt_id,)) == 1


# --- what a notice says ---------------------------------------------------------------------------

# OPEN | CLOSING -> PAID, on any successful payment: a wrong amount uses the link up as well.
MARK_ATTEMPT_PAID: Final = """
UPDATE oms_payment_attempt
SET state = 'PAID',
    next_ask_at = NULL
WHERE out_trade_no = %s
  AND state IN ('OPEN', 'CLOSING')
"""


def mark_attempt_paid(tx: Tx, out_trade_no: str) -> bool:
    return tx.execute(MARK_ATTEMPT_PAID, (out_trade_no,)) == 1


# OPEN -> CLOSED. A CLOSING one was asked for by us, and whoever asked finishes it.
CLOSE_OPEN_ATTEMPT: Final = """
UPDATE oms_payment_attempt
SET state = 'CLOSED',
    next_ask_at = NULL
WHERE out_trade_no = %s
  AND state = 'OPEN'
"""


def close_open_attempt(tx: Tx, out_trade_no: str) -> bool:
    return tx.execute(CLOSE_OPEN_ATTEMPT, (out_trade_no,)) == 1


# CLOSING -> CLOSED. Whoever asked still owes what follows for the order: if not at once, the sweep
# does it soon, however late the next question would have been.
CLOSE_ASKED_ATTEMPT: Final = """
UPDATE oms_payment_attempt
SET state = 'CLOSED',
    next_ask_at = LEAST(next_ask_at, TIMESTAMPADD(SECOND, 30, NOW(3)))
WHERE out_trade_no = %s
  AND state = 'CLOSING'
"""


def close_asked_attempt(tx: Tx, out_trade_no: str) -> bool:
    return tx.execute(CLOSE_ASKED_ATTEMPT, (out_trade_no,)) == 1
