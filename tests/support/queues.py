"""The queues of an account that exists only in the test, and an SQS that refuses some entries."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from lockstep.messaging import sqs as sqs_client

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

NAMES = ("reserve", "confirm", "release", "refund")
GONE = "https://sqs.eu-west-1.amazonaws.com/123456789012/gone.fifo"


@contextmanager
def of_an_account(monkeypatch: pytest.MonkeyPatch) -> "Iterator[SQSClient]":
    """FIFO queues as the template makes them; the product's settings and client find them."""
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(name, value)
    forget_client = sqs_client.client.cache_clear
    forget_client()
    with mock_aws():
        client = boto3.client("sqs")
        for queue in NAMES:
            attributes = {"FifoQueue": "true", "DeduplicationScope": "messageGroup"}
            attributes["FifoThroughputLimit"] = "perMessageGroupId"
            made = client.create_queue(QueueName=f"{queue}.fifo", Attributes=attributes)  # type: ignore[arg-type]
            monkeypatch.setenv(f"{queue.upper()}_QUEUE_URL", made["QueueUrl"])
        yield client
    forget_client()


def receive(sqs: "SQSClient", queue: str = "release") -> "list[MessageTypeDef]":
    """At most ten messages, which stay in the queue."""
    url = sqs.get_queue_url(QueueName=f"{queue}.fifo")["QueueUrl"]
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
    )
    return answer.get("Messages", [])


def drain(sqs: "SQSClient", queue: str = "release") -> "list[MessageTypeDef]":
    """Every message of a queue, taken out."""
    url = sqs.get_queue_url(QueueName=f"{queue}.fifo")["QueueUrl"]
    drained: list[MessageTypeDef] = []
    while messages := receive(sqs, queue):
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        drained += messages
    return drained


class Refusing:
    """The account's SQS, which fails each entry of a call that ``refuses`` says yes to."""

    def __init__(self, sqs: "SQSClient", refuses: Callable[[str], bool]) -> None:
        self._sqs = sqs
        self._refuses = refuses
        self.calls: list[list[str]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        self.calls.append([entry["MessageBody"] for entry in Entries])
        taken = [entry for entry in Entries if not self._refuses(entry["MessageBody"])]
        reply: Any = {"Successful": []}
        if taken:
            reply = self._sqs.send_message_batch(QueueUrl=QueueUrl, Entries=taken)
        refused = [entry for entry in Entries if entry not in taken]
        return {
            "Successful": reply["Successful"],
            "Failed": [
                {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError"}
                for entry in refused
            ],
        }
