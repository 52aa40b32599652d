"""Stage a command with the change that asks for it; send it once that change is durable.

The row is the truth, the send right after commit is only haste: if it fails, or the process dies in
between, the row stays unsent and the relay takes it. Sending twice is harmless, since consumers
decide by state.
"""

import secrets
from collections.abc import Sequence
from functools import partial

from lockstep import settings
from lockstep.db.transaction import Tx, in_transaction
from lockstep.messaging import sqs, store
from lockstep.messaging.contracts import QUEUE_OF, Command, RefundPayment, StockCommand
from lockstep.messaging.store import Staged
from lockstep.observability import count, logger


def stage(tx: Tx, command: StockCommand) -> None:
    """Write ``command`` in this transaction and send it after the commit, in the line of its
    reservation."""
    _stage(tx, command, command.reservation_id)


def stage_refund(tx: Tx, command: RefundPayment, payment_id: int) -> None:
    """The same, in the line of its payment: one trade's refunds are tried one after the other."""
    _stage(tx, command, str(payment_id))


def _stage(tx: Tx, command: Command, group_key: str) -> None:
    message_id = secrets.token_hex(16)
    queue = QUEUE_OF[type(command)]
    payload = command.model_dump_json()
    store.insert_outbox(tx, message_id, queue, group_key, payload)
    tx.after_commit(partial(_send, message_id, queue, group_key, payload))


def _send(message_id: str, queue: str, group_key: str, payload: str) -> None:
    """Send one staged message and mark it. Never raises: the row is still there for the relay."""
    queue_url = settings.queue_url(queue)
    if queue_url is None:
        return
    try:
        sqs.client().send_message(
            QueueUrl=queue_url,
            MessageBody=payload,
            MessageGroupId=group_key,
            MessageDeduplicationId=message_id,
        )
        in_transaction(partial(_mark_sent, message_id=message_id), within_seconds=1)
    except Exception as fault:
        count("SendAfterCommitFailed")
        logger.warning(
            "message stays in the outbox", message_id=message_id, fault=type(fault).__name__
        )


def send_batch(queue: str, messages: Sequence[Staged]) -> list[str]:
    """Send at most ten staged messages of one queue; the ids of those that it took. Never
    raises."""
    queue_url = settings.queue_url(queue)
    if queue_url is None:
        return []
    try:
        reply = sqs.client().send_message_batch(
            QueueUrl=queue_url,
            Entries=[
                {
                    "Id": message.message_id,
                    "MessageBody": message.payload,
                    "MessageGroupId": message.group_key,
                    "MessageDeduplicationId": message.message_id,
                }
                for message in messages
            ],
        )
    except Exception as fault:
        logger.warning("batch not sent", queue=queue, fault=type(fault).__name__)
        return []
    return [entry["Id"] for entry in reply.get("Successful", [])]


def _mark_sent(tx: Tx, message_id: str) -> None:
    store.mark_sent(tx, message_id)
