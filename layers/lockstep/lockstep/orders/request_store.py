"""The SQL of oms_order_request: which key of which member led to which order."""

from typing import Final

from lockstep.db.packet import Packet, Reply
from lockstep.db.transaction import Reader
from lockstep.orders.model import OrderRequest, RequestState

CLAIM_REQUEST: Final = """
INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state)
VALUES (%s, %s, %s, 'PROCESSING')
"""


def claim_request(packet: Packet, member_id: int, key: str, request_hash: str) -> None:
    """DuplicateKey('PRIMARY') if the key is taken. Waits for the transaction that is taking it, if
    there is one."""
    packet.insert(CLAIM_REQUEST, (member_id, key, request_hash))


COMPLETE_REQUEST: Final = """
UPDATE oms_order_request
SET state = 'SUCCESS',
    order_id = %s
WHERE member_id = %s
  AND idempotency_key = %s
  AND state = 'PROCESSING'
"""


def complete_request(packet: Packet, member_id: int, key: str, order_id: int) -> Reply:
    """Its reply has changed one row, or there is no request that this transaction claimed."""
    return packet.execute(COMPLETE_REQUEST, (order_id, member_id, key))


# FOR SHARE sees the newest commit and never asks for more than the failed INSERT holds; NOWAIT
# turns "someone is in that transaction now" into an answer.
READ_REQUEST: Final = """
SELECT request_hash, state, order_id
FROM oms_order_request
WHERE member_id = %s
  AND idempotency_key = %s
FOR SHARE NOWAIT
"""


def read_request(reader: Reader, member_id: int, key: str) -> OrderRequest | None:
    """The committed request of ``key``. Raises LockNotAvailable while one is being decided."""
    row = reader.one(READ_REQUEST, (member_id, key))
    if row is None:
        return None
    return OrderRequest(row["request_hash"], RequestState(row["state"]), row["order_id"])


def ask_request(packet: Packet, member_id: int, key: str) -> None:
    """LockNotAvailable while the key's request is being decided; else nothing."""
    packet.all(READ_REQUEST, (member_id, key))
