"""The SQL of oms_refund.

The caller holds the payment's lock, which covers its refunds. ``tries`` in a guard is the claim
that a try was made under: what another claim has overtaken changes nothing.
"""

from decimal import Decimal
from typing import Final

from lockstep.db.transaction import Tx
from lockstep.payments.refund_model import Refund, RefundState

READ_REFUNDS: Final = """
SELECT id, out_request_no, amount, state, requested_by, reason, request_hash, tries, code,
       COALESCE(next_try_at <= NOW(3), FALSE) AS is_due,
       TIMESTAMPDIFF(MICROSECOND, called_at, NOW(3)) DIV 1000 AS called_ms_ago
FROM oms_refund
WHERE payment_id = %s
"""


def read_refunds(tx: Tx, payment_id: int) -> list[Refund]:
    """All refunds of the payment, in the order in which they were asked for."""
    rows = tx.all(READ_REFUNDS, (payment_id,))
    refunds = [
        Refund(**{**row, "state": RefundState(row["state"]), "is_due": bool(row["is_due"])})
        for row in rows
    ]
    return sorted(refunds, key=lambda refund: refund.id)


# --- asking --------------------------------------------------------------------------------------

INSERT_DUE: Final = """
INSERT INTO oms_refund (
    payment_id, out_request_no, amount, state, requested_by, reason, request_hash, next_try_at)
VALUES (%s, %s, %s, 'DUE', %s, %s, %s, NOW(3))
"""


def insert_due(
    tx: Tx,
    payment_id: int,
    out_request_no: str,
    amount: Decimal,
    requested_by: str,
    reason: str,
    request_hash: str | None,
) -> int:
    """The new refund's id. Raises DuplicateKey('uk_refund_request') if it was asked for before."""
    columns = (payment_id, out_request_no, amount, requested_by, reason, request_hash)
    return tx.insert(INSERT_DUE, columns)


INSERT_DONE: Final = """
INSERT INTO oms_refund (
    payment_id, out_request_no, amount, state, requested_by, reason, done_at)
VALUES (%s, %s, %s, 'DONE', %s, %s, NOW(3))
"""


def insert_done(
    tx: Tx, payment_id: int, out_request_no: str, amount: Decimal, requested_by: str, reason: str
) -> None:
    """Record what the channel did without being asked by us."""
    tx.insert(INSERT_DONE, (payment_id, out_request_no, amount, requested_by, reason))


# FAILED -> DUE: a person wants it tried again, with the same number and the same amount.
ASK_AGAIN: Final = """
UPDATE oms_refund
SET state = 'DUE',
    code = NULL,
    requested_by = %s,
    next_try_at = NOW(3)
WHERE id = %s
  AND state = 'FAILED'
"""


def ask_again(tx: Tx, refund_id: int, requested_by: str) -> bool:
    return tx.execute(ASK_AGAIN, (requested_by, refund_id)) == 1


# --- trying --------------------------------------------------------------------------------------

# DUE -> CALLING, committed before the call. What the channel said before is the last word no more.
CLAIM_CALL: Final = """
UPDATE oms_refund
SET state = 'CALLING',
    code = NULL,
    tries = tries + 1,
    called_at = NOW(3),
    next_try_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND state = 'DUE'
  AND next_try_at <= NOW(3)
"""


def claim_call(tx: Tx, refund_id: int, lease_seconds: int) -> bool:
    return tx.execute(CLAIM_CALL, (lease_seconds, refund_id)) == 1


# CALLING | UNKNOWN -> UNKNOWN: whoever called is gone, or got no answer that says what happened.
CLAIM_QUERY: Final = """
UPDATE oms_refund
SET state = 'UNKNOWN',
    tries = tries + 1,
    next_try_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND state IN ('CALLING', 'UNKNOWN')
  AND next_try_at <= NOW(3)
"""


def claim_query(tx: Tx, refund_id: int, lease_seconds: int) -> bool:
    return tx.execute(CLAIM_QUERY, (lease_seconds, refund_id)) == 1


DEFER: Final = """
UPDATE oms_refund
SET next_try_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND state IN ('DUE', 'CALLING', 'UNKNOWN')
"""


def defer(tx: Tx, refund_id: int, seconds: int) -> bool:
    """Try it in so many seconds, and not before; 0: now."""
    return tx.execute(DEFER, (seconds, refund_id)) == 1


# --- what a try comes to -------------------------------------------------------------------------

# The channel says so: of a refund that was given up, too.
MARK_DONE: Final = """
UPDATE oms_refund
SET state = 'DONE',
    code = NULL,
    next_try_at = NULL,
    done_at = NOW(3)
WHERE id = %s
  AND state IN ('DUE', 'CALLING', 'UNKNOWN', 'FAILED')
"""


def mark_done(tx: Tx, refund_id: int) -> bool:
    return tx.execute(MARK_DONE, (refund_id,)) == 1


# CALLING | UNKNOWN -> UNKNOWN.
MARK_UNKNOWN: Final = """
UPDATE oms_refund
SET state = 'UNKNOWN',
    code = %s,
    next_try_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND tries = %s
  AND state IN ('CALLING', 'UNKNOWN')
"""


def mark_unknown(tx: Tx, refund_id: int, tries: int, code: str | None, seconds: int) -> bool:
    return tx.execute(MARK_UNKNOWN, (code, seconds, refund_id, tries)) == 1


# CALLING | UNKNOWN -> DUE: it was not done, and will be tried with the same number and amount.
MARK_DUE: Final = """
UPDATE oms_refund
SET state = 'DUE',
    code = %s,
    next_try_at = TIMESTAMPADD(SECOND, %s, NOW(3))
WHERE id = %s
  AND tries = %s
  AND state IN ('CALLING', 'UNKNOWN')
"""


def mark_due(tx: Tx, refund_id: int, tries: int, code: str | None, seconds: int) -> bool:
    return tx.execute(MARK_DUE, (code, seconds, refund_id, tries)) == 1


# DUE | CALLING | UNKNOWN -> FAILED: it waits for a person.
MARK_FAILED: Final = """
UPDATE oms_refund
SET state = 'FAILED',
    code = %s,
    next_try_at = NULL
WHERE id = %s
  AND tries = %s
  AND state IN ('DUE', 'CALLING', 'UNKNOWN')
"""


def mark_failed(tx: Tx, refund_id: int, tries: int, code: str) -> bool:
    return tx.execute(MARK_FAILED, (code, refund_id, tries)) == 1
