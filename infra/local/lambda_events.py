"""What Lambda hands to a function: FIFO batches and the context.

For tests and benchmarks, which call the handlers as Lambda does.
"""

from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.messaging.contracts import StockCommand


@dataclass
class Context(LambdaContext):
    """``milliseconds`` are left; Powertools' own class says that none are. Each look takes some of
    them, so that a loop which goes on while there is time has an end."""

    milliseconds: int = 15_000
    request_id: str = "invocation-1"

    @property
    def aws_request_id(self) -> str:
        return self.request_id

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        left = self.milliseconds
        self.milliseconds -= 10
        return left


def a_record(
    message_id: str, body: str, *, group: str, dedup_id: str | None = None
) -> dict[str, Any]:
    """One record of a FIFO batch."""
    return {
        "messageId": message_id,
        "receiptHandle": f"handle-{message_id}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1795996800000",
            "SenderId": "AIDA",
            "ApproximateFirstReceiveTimestamp": "1795996800001",
            "SequenceNumber": "18849496460467696128",
            "MessageGroupId": group,
            "MessageDeduplicationId": dedup_id or f"dedup-{message_id}",
        },
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:confirm.fifo",
        "awsRegion": "eu-west-1",
    }


def record_of(message_id: str, command: StockCommand) -> dict[str, Any]:
    """A record with ``command``, in the group of its reservation as the outbox sends it."""
    return a_record(message_id, command.model_dump_json(), group=command.reservation_id)


def batch(*records: dict[str, Any]) -> dict[str, Any]:
    return {"Records": list(records)}
