"""The SQL that old rows are found and deleted with.

What is found has ended: none of the conditions here comes untrue again. So it is found without a
lock, and deleted by its primary key, a bounded number of rows a transaction. FORCE INDEX: for a few
hundred rows the engine would rather read all payments than look each one up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from lockstep.db.transaction import Reader, Tx

CHUNK_SIZE: Final = 500


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that may go, and from when on the next look has to look."""

    ids: tuple[int, ...]
    at: datetime


# Unsent rows have no sent_at. Restaging counts what was said about a hold that is not settled, an
# order that waits for one, and a payment whose refund has not ended. A queue that is not named here
# keeps its rows until somebody has thought of who reads them.
FIND_OUTBOX: Final = """
SELECT b.id, b.sent_at AS at
FROM outbox AS b
WHERE b.sent_at >= %(at)s
  AND b.sent_at < TIMESTAMPADD(DAY, -%(days)s, NOW(3))
  AND b.queue IN ('reserve', 'confirm', 'release', 'refund')
  AND NOT EXISTS (
      SELECT 1
      FROM ims_reservation AS r FORCE INDEX (uk_reservation)
      WHERE r.reservation_id = b.group_key
        AND r.state = 'RESERVED')
  AND NOT EXISTS (
      SELECT 1
      FROM oms_order AS o FORCE INDEX (uk_order_no)
      WHERE o.order_no = SUBSTRING_INDEX(b.group_key, '-', 1)
        AND o.status = 'RESERVING')
  AND NOT EXISTS (
      SELECT 1
      FROM oms_refund AS f FORCE INDEX (uk_refund_request)
      WHERE f.payment_id = IF(b.queue = 'refund', CAST(b.group_key AS UNSIGNED), 0)
        AND f.state IN ('DUE', 'CALLING', 'UNKNOWN'))
ORDER BY b.sent_at
LIMIT %(limit)s
"""


def find_outbox(reader: Reader, since: datetime, days: int) -> Found:
    """Messages that were sent so long ago and that nobody reads any more."""
    return _find(reader, FIND_OUTBOX, since, days)


DELETE_OUTBOX: Final = """
DELETE FROM outbox
WHERE id IN %s
"""


def delete_outbox(tx: Tx, ids: Sequence[int]) -> int:
    return tx.execute(DELETE_OUTBOX, (ids,))


# Money that is still on its way, or that fits no order, keeps what was said about it.
FIND_NOTICES: Final = """
SELECT n.id, n.created_at AS at
FROM oms_notice AS n
WHERE n.state = 'DONE'
  AND n.created_at >= %(at)s
  AND n.created_at < TIMESTAMPADD(DAY, -%(days)s, NOW(3))
  AND NOT EXISTS (
      SELECT 1
      FROM oms_order_payment AS p FORCE INDEX (uk_payment_trade)
      WHERE p.provider = n.provider
        AND p.trade_no = n.trade_no
        AND p.state NOT IN ('APPLIED', 'REFUNDED'))
ORDER BY n.created_at
LIMIT %(limit)s
"""


def find_notices(reader: Reader, since: datetime, days: int) -> Found:
    """Notices that came so long ago, are decided, and whose money has come to rest."""
    return _find(reader, FIND_NOTICES, since, days)


DELETE_NOTICES: Final = """
DELETE FROM oms_notice
WHERE id IN %s
"""


def delete_notices(tx: Tx, ids: Sequence[int]) -> int:
    return tx.execute(DELETE_NOTICES, (ids,))


# Only a tombstone has no expires_at, which is how the key finds it. It stays as long as a message
# that it refuses may be under way.
FIND_TOMBSTONES: Final = """
SELECT r.id, r.created_at AS at
FROM ims_reservation AS r
WHERE r.state = 'RELEASED'
  AND r.expires_at IS NULL
  AND r.request_hash IS NULL
  AND r.created_at < TIMESTAMPADD(DAY, -%(days)s, NOW(3))
  AND NOT EXISTS (
      SELECT 1
      FROM outbox AS b
      WHERE b.queue = 'reserve'
        AND b.group_key = r.reservation_id
        AND (b.sent_at IS NULL OR b.sent_at >= TIMESTAMPADD(DAY, -%(days)s, NOW(3))))
ORDER BY r.id
LIMIT %(limit)s
"""


def find_tombstones(reader: Reader, since: datetime, days: int) -> Found:
    """Tombstones whose ReserveStock cannot come any more."""
    return _find(reader, FIND_TOMBSTONES, since, days)


DELETE_TOMBSTONES: Final = """
DELETE FROM ims_reservation
WHERE id IN %s
"""


def delete_tombstones(tx: Tx, ids: Sequence[int]) -> int:
    return tx.execute(DELETE_TOMBSTONES, (ids,))


FIND_REFUSALS: Final = """
SELECT id, created_at AS at
FROM message_refusal
WHERE created_at < TIMESTAMPADD(DAY, -%(days)s, NOW(3))
ORDER BY created_at
LIMIT %(limit)s
"""


def find_refusals(reader: Reader, since: datetime, days: int) -> Found:
    """Refusals that were recorded so long ago."""
    return _find(reader, FIND_REFUSALS, since, days)


DELETE_REFUSALS: Final = """
DELETE FROM message_refusal
WHERE id IN %s
"""


def delete_refusals(tx: Tx, ids: Sequence[int]) -> int:
    return tx.execute(DELETE_REFUSALS, (ids,))


def _find(reader: Reader, sql: LiteralString, since: datetime, days: int) -> Found:
    rows = reader.all(sql, {"at": since, "days": days, "limit": CHUNK_SIZE})
    return Found(tuple(row["id"] for row in rows), rows[-1]["at"] if rows else since)
