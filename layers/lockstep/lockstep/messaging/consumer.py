"""FIFO batches: what is decided is acknowledged, and one reservation never blocks another.

A message whose decision fails is delivered again, and in the end dead-lettered, together with the
later ones of its group: only faults fail. A refusal that will never change is recorded and
acknowledged. A body that does not parse fails like any other message: it is never dropped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypedDict

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import LockstepError
from lockstep.messaging import store
from lockstep.messaging.contracts import (
    QUEUE_OF,
    Command,
    ConfirmStock,
    RefundPayment,
    ReleaseStock,
    ReserveStock,
)
from lockstep.messaging.visibility import look_again_soon
from lockstep.observability import count, count_fault, logger

# What one message, or one transaction for many, may take: its time and a lock wait on top. Less
# than the shortest time-out that a function may be given.
MESSAGE_SECONDS: Final = 8

type Record = Mapping[str, Any]
# What became of a message: acknowledged, refused for good, or to be delivered again.
type Answer = StrEnum | Exception | None


class Failure(TypedDict):
    itemIdentifier: str


class BatchAnswer(TypedDict):
    """The messages that SQS shall deliver again; it deletes the others."""

    batchItemFailures: list[Failure]


class DeliverAgain(LockstepError):
    """Not now: the state that this command waits for is not there yet."""


class DeliverSoon(DeliverAgain):
    """The same, but somebody is at it: there is no need to wait for the whole time-out."""


def consume[C: (ReserveStock, ConfirmStock, ReleaseStock, RefundPayment)](
    event: Mapping[str, Any],
    context: LambdaContext,
    model: type[C],
    handle: Callable[[C], StrEnum | None],
) -> BatchAnswer:
    """Give each message of a batch alone to ``handle``, which returns a refusal or None.

    After a failure the later messages of its group are not looked at; other groups go on.
    """
    batch = _Batch(QUEUE_OF[model])
    for record in event["Records"]:
        if batch.holds_back(record):
            continue
        with batch.failing(record):
            if not _has_time(context):
                raise DeliverAgain("the batch took too long; this message was not looked at")
            command = _read(model, record)
            batch.settle(record, command, handle(command))
    return batch.answer()


def consume_together[C: (ReserveStock, ConfirmStock, ReleaseStock)](
    event: Mapping[str, Any],
    context: LambdaContext,
    model: type[C],
    decide: Callable[[Sequence[C], Callable[[], bool]], Sequence[Answer]],
) -> BatchAnswer:
    """Give all messages of a batch to ``decide``, which returns what became of each, in their
    order; its second argument says whether there is time to begin another transaction."""
    batch = _Batch(QUEUE_OF[model])
    records, commands = [], []
    for record in event["Records"]:
        with batch.failing(record):
            if not _has_time(context):
                raise DeliverAgain("there is no time left to decide this batch")
            commands.append(_read(model, record))
            records.append(record)
    try:
        answers = decide(commands, lambda: _has_time(context)) if commands else ()
    except Exception as fault:  # nobody knows what became of whom: all of them come again
        answers = [fault] * len(commands)
    for record, command, answer in zip(records, commands, answers, strict=True):
        with batch.failing(record):
            batch.settle(record, command, answer)
    return batch.answer()


@dataclass
class _Batch:
    """The messages of ``queue`` that failed so far; of these ``soon`` shall come again soon."""

    queue: str
    failed: list[Record] = field(default_factory=list)
    broken_groups: set[str] = field(default_factory=set)
    soon: list[Record] = field(default_factory=list)

    def holds_back(self, record: Record) -> bool:
        """Whether an earlier message of its group failed; then this one does too."""
        if record["attributes"]["MessageGroupId"] not in self.broken_groups:
            return False
        self.failed.append(record)
        return True

    @contextmanager
    def failing(self, record: Record) -> Iterator[None]:
        """Whatever is raised inside makes this message fail, and nothing else."""
        try:
            yield
        except Exception as fault:
            self._fail(record, fault)

    def settle(self, record: Record, command: Command, answer: Answer) -> None:
        """Record a refusal. Raises ``answer`` if it is a fault."""
        if self.holds_back(record):
            return
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            _record_refusal(record, command, answer)

    def answer(self) -> BatchAnswer:
        if self.soon:
            look_again_soon(self.queue, self.soon)
        return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in self.failed]}

    def _fail(self, record: Record, fault: Exception) -> None:
        self.failed.append(record)
        self.broken_groups.add(record["attributes"]["MessageGroupId"])
        if isinstance(fault, DeliverSoon):
            self.soon.append(record)
        count_fault("MessageFailed", fault)
        logger.warning(
            "message will be delivered again",
            message_id=record["messageId"],
            fault=type(fault).__name__,
            detail=str(fault) if isinstance(fault, LockstepError) else None,
        )


def _read[C: (ReserveStock, ConfirmStock, ReleaseStock, RefundPayment)](
    model: type[C], record: Record
) -> C:
    logger.set_correlation_id(None)
    command = model.read(record["body"])
    logger.set_correlation_id(command.correlation_id)
    return command


def _has_time(context: LambdaContext) -> bool:
    """A function that is cut off fails its whole batch, the messages that were decided too."""
    return context.get_remaining_time_in_millis() >= MESSAGE_SECONDS * 1000


def _record_refusal(record: Record, command: Command, code: StrEnum) -> None:
    message_id = record["attributes"].get("MessageDeduplicationId") or record["messageId"]
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
