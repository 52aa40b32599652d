"""FIFO batches: each message decided alone, so that one reservation never blocks another.

What a handler returns is acknowledged. What it raises is delivered again, and in the end
dead-lettered: only faults are raised. A refusal that will never change is recorded and
acknowledged.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import LockstepError
from lockstep.messaging import store
from lockstep.messaging.contracts import (
    Command,
    ConfirmStock,
    RefundPayment,
    ReleaseStock,
    ReserveStock,
)
from lockstep.observability import count, count_fault, logger

# What one message may take: its transaction's time and a lock wait on top. Less than the shortest
# time-out that a function may be given.
MESSAGE_SECONDS: Final = 8


class DeliverAgain(LockstepError):
    """Not now: the state that this command waits for is not there yet."""


def consume[C: (ReserveStock, ConfirmStock, ReleaseStock, RefundPayment)](
    event: dict[str, Any],
    context: LambdaContext,
    model: type[C],
    handle: Callable[[C], StrEnum | None],
) -> PartialItemFailureResponse:
    """Give each message of a batch to ``handle``, which returns a refusal or None.

    A failed message is reported with the later ones of its group; other groups go on. A body that
    does not parse fails like any other message: it is never dropped.
    """
    processor = SqsFifoPartialProcessor(skip_group_on_error=True)
    # A batch whose every message failed is reported like any other: an exception would only add
    # a function error to what MessageFailed already counts.
    processor.raise_on_entire_batch_failure = False

    def decide(record: SQSRecord) -> None:
        logger.set_correlation_id(None)
        try:
            _refuse_without_time(context)
            command = model.read(record.body)
            logger.set_correlation_id(command.correlation_id)
            refusal = handle(command)
            if refusal is not None:
                _record_refusal(record, command, refusal)
        except Exception as fault:
            count_fault("MessageFailed", fault)
            logger.warning(
                "message will be delivered again",
                message_id=record.message_id,
                fault=type(fault).__name__,
                detail=str(fault) if isinstance(fault, LockstepError) else None,
            )
            raise

    return process_partial_response(
        event=event, record_handler=decide, processor=processor, context=context
    )


def _refuse_without_time(context: LambdaContext) -> None:
    """A function that is cut off fails its whole batch, the messages that were decided too."""
    if context.get_remaining_time_in_millis() < MESSAGE_SECONDS * 1000:
        raise DeliverAgain("the batch took too long; this message was not looked at")


def _record_refusal(record: SQSRecord, command: Command, code: StrEnum) -> None:
    message_id = record.attributes.message_deduplication_id or record.message_id
    reservation_id = None if isinstance(command, RefundPayment) else command.reservation_id

    def work(tx: Tx) -> None:
        store.insert_refusal(tx, message_id, command.type, reservation_id, code)

    in_transaction(work)
    count("MessageRefused")
    logger.info(
        "command refused",
        message_id=message_id,
        reservation_id=reservation_id,
        code=code,
    )
