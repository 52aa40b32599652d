"""The command that a payment stages goes out once the payment is durable, and not before.

The queue here is a stand-in that looks around whenever it is called: through another session, so
that it sees what is committed, and at the engine's list of open transactions.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lockstep.errors import InvariantBroken
from lockstep.payments import store
from tests.support.builders import a_sku, assert_at_rest
from tests.support.engine import held
from tests.support.notices import FAILURE, SUCCESS, order_row, the_order
from tests.support.reading import SIGNER as ALIPAY

QUEUE_URL = "http://sqs.invalid/confirm.fifo"


@pytest.fixture(autouse=True)
def order_id(database, monkeypatch) -> int:
    """Order O1 of 9.90, one of SKU 1001 held; Alipay's key, app and payee configured."""
    ALIPAY.configure(monkeypatch)
    a_sku(database)
    return the_order(database)


class Queue:
    """SQS, as far as the outbox asks for it; ``seen`` is what `look` saw during each send."""

    def __init__(self, look: Callable[[], Any]) -> None:
        self._look = look
        self.seen: list[Any] = []
        self.sent: list[dict[str, str]] = []

    def send_message(self, **message: str) -> None:
        self.seen.append(self._look())
        self.sent.append(message)


def test_a_command_is_sent_once_its_order_is_seen_to_be_paid(database, order_id, monkeypatch):
    monkeypatch.setenv("CONFIRM_QUEUE_URL", QUEUE_URL)

    def look() -> tuple[object, object, object]:
        return order_row(database)[0], database.count("outbox", sent_at=None), held(database)

    queue = Queue(look)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: queue)
    assert ALIPAY.notify() == SUCCESS
    assert queue.seen == [("PAID", 1, (0, 0))]
    row = database.one("SELECT * FROM outbox")
    [message] = queue.sent
    body = json.loads(message.pop("MessageBody"))
    reservation_id = database.value("SELECT reservation_id FROM oms_order")
    assert message == {
        "QueueUrl": QUEUE_URL,
        "MessageGroupId": reservation_id,
        "MessageDeduplicationId": row["message_id"],
    }
    assert body == json.loads(row["payload"])
    assert body == {
        "v": 1,
        "type": "ConfirmStock",
        "reservation_id": reservation_id,
        "order_id": order_id,
        "correlation_id": "request-of-a-test",
    }
    assert (row["attempts"], row["sent_at"] is None) == (1, False)


def test_a_queue_that_is_down_leaves_the_command_in_the_outbox(database, monkeypatch):
    monkeypatch.setenv("CONFIRM_QUEUE_URL", QUEUE_URL)

    def down() -> None:
        raise ConnectionError("the queue is down")

    queue = Queue(down)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: queue)
    assert ALIPAY.notify() == SUCCESS
    row = database.one("SELECT sent_at, attempts FROM outbox")
    assert (row["sent_at"], row["attempts"]) == (None, 0)
    assert order_row(database)[0] == "PAID"
    assert_at_rest(database)


def test_what_is_rolled_back_is_not_sent(database, monkeypatch):
    monkeypatch.setenv("CONFIRM_QUEUE_URL", QUEUE_URL)
    queue = Queue(lambda: None)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: queue)

    def broken(*_: object) -> None:
        raise InvariantBroken("after the command was staged")

    with monkeypatch.context() as fate:
        fate.setattr(store, "insert_payment", broken)
        assert ALIPAY.notify() == FAILURE
    assert queue.sent == []
    assert database.count("outbox") == 0
    assert ALIPAY.notify() == SUCCESS
    assert len(queue.sent) == 1
