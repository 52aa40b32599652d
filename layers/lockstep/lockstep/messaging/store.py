"""The SQL of outbox and message_refusal."""

from typing import Final

from lockstep.db.transaction import Tx

# The handler sends its own rows right after commit. Older than this, a row is the relay's to send.
RELAY_AFTER_SECONDS: Final = 10

INSERT_OUTBOX: Final = """
INSERT INTO outbox (message_id, queue, group_key, payload, next_at)
VALUES (%s, %s, %s, %s, TIMESTAMPADD(SECOND, %s, NOW(3)))
"""


def insert_outbox(tx: Tx, message_id: str, queue: str, group_key: str, payload: str) -> None:
    tx.insert(INSERT_OUTBOX, (message_id, queue, group_key, payload, RELAY_AFTER_SECONDS))


MARK_SENT: Final = """
UPDATE outbox
SET sent_at = NOW(3), attempts = attempts + 1
WHERE message_id = %s
  AND sent_at IS NULL
"""


def mark_sent(tx: Tx, message_id: str) -> bool:
    """True if this call marked it; False if it was marked before."""
    return tx.execute(MARK_SENT, (message_id,)) == 1


INSERT_REFUSAL: Final = """
INSERT INTO message_refusal (message_id, type, reservation_id, code)
VALUES (%s, %s, %s, %s)
ON DUPLICATE KEY UPDATE message_id = message_refusal.message_id
"""


def insert_refusal(
    tx: Tx, message_id: str, command_type: str, reservation_id: str, code: str
) -> bool:
    """Record a refusal once; a redelivered message that is refused again changes nothing."""
    return tx.execute(INSERT_REFUSAL, (message_id, command_type, reservation_id, code)) == 1
