"""The SQL of outbox and message_refusal."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.db.transaction import Reader, Tx

# The handler sends its own rows right after commit. Older than this, a row is the relay's to send.
RELAY_AFTER_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Staged:
    """An outbox row that waits to be sent."""

    id: int
    message_id: str
    queue: str
    group_key: str
    payload: str


INSERT_OUTBOX: Final = """
INSERT INTO outbox (message_id, queue, group_key, payload, next_at)
VALUES (%s, %s, %s, %s, TIMESTAMPADD(SECOND, %s, NOW(3)))
"""


def insert_outbox(tx: Tx, message_id: str, queue: str, group_key: str, payload: str) -> None:
    tx.insert(INSERT_OUTBOX, (message_id, queue, group_key, payload, RELAY_AFTER_SECONDS))


# In the order of the index, so that the oldest go first and only what is claimed is locked: a sort
# would lock all that is due. A row that another relay holds is its own.
LOCK_DUE: Final = """
SELECT id, message_id, queue, group_key, payload
FROM outbox FORCE INDEX (ix_outbox_due)
WHERE sent_at IS NULL
  AND next_at <= NOW(3)
ORDER BY next_at, id
LIMIT %s
FOR UPDATE SKIP LOCKED
"""


def lock_due(tx: Tx, limit: int) -> list[Staged]:
    """Unsent messages whose time has come, oldest first, each for one relay."""
    rows = tx.all(LOCK_DUE, (limit,))
    return [Staged(**{**row, "payload": json.dumps(row["payload"])}) for row in rows]


LEASE: Final = """
UPDATE outbox
SET next_at = TIMESTAMPADD(SECOND, LEAST(%(seconds)s << LEAST(attempts, 9), %(most)s), NOW(3)),
    attempts = attempts + 1
WHERE id IN %(ids)s
"""


def lease(tx: Tx, ids: Sequence[int], seconds: int, most: int) -> None:
    """Keep these rows, which the caller has locked, from other relays: for ``seconds``, and twice
    as long with each claim, up to ``most``. What is not sent by then is due again."""
    tx.execute(LEASE, {"seconds": seconds, "most": most, "ids": tuple(ids)})


COUNT_DUE: Final = """
SELECT COUNT(*) AS due
FROM outbox
WHERE sent_at IS NULL
  AND next_at <= NOW(3)
"""


def count_due(reader: Reader) -> int:
    [row] = reader.all(COUNT_DUE)
    return int(row["due"])


# What a queue was told about a group so far decides when it may be told again.
READ_STAGED: Final = """
SELECT COUNT(*) AS times, TIMESTAMPDIFF(SECOND, MAX(created_at), NOW(3)) AS newest_seconds
FROM outbox
WHERE queue = %s
  AND group_key = %s
"""


def read_staged(reader: Reader, queue: str, group_key: str) -> tuple[int, int | None]:
    """(how often, how many seconds ago last) a command of this queue and group was staged."""
    [row] = reader.all(READ_STAGED, (queue, group_key))
    return row["times"], row["newest_seconds"]


# The first try may have been its own handler's, which claims nothing.
MARK_SENT: Final = """
UPDATE outbox FORCE INDEX (uk_outbox_message)
SET sent_at = NOW(3),
    attempts = GREATEST(attempts, 1)
WHERE message_id IN %s
  AND sent_at IS NULL
"""


def mark_sent(tx: Tx, message_ids: Sequence[str]) -> int:
    """How many this call marked; the others were marked before."""
    return tx.execute(MARK_SENT, (tuple(message_ids),))


INSERT_REFUSAL: Final = """
INSERT INTO message_refusal (message_id, type, reservation_id, code)
VALUES (%s, %s, %s, %s)
ON DUPLICATE KEY UPDATE message_id = message_refusal.message_id
"""


def insert_refusal(
    tx: Tx, message_id: str, command_type: str, reservation_id: str | None, code: str
) -> bool:
    """Record a refusal once; a redelivered message that is refused again changes nothing."""
    return tx.execute(INSERT_REFUSAL, (message_id, command_type, reservation_id, code)) == 1
