"""consume_together(): a batch is decided as one, and each message is answered for itself."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from lockstep import observability
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory.model import Refusal
from lockstep.messaging import store, visibility
from lockstep.messaging.consumer import Answer, DeliverAgain, DeliverSoon, consume_together
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import correlation_id
from tests.support import queues
from tests.support.batches import a_record, batch, failed_ids, record_of
from tests.support.lambda_context import Context

CODE = Refusal.RESERVATION_ALREADY_RELEASED


def a_command(group: str, order_id: int = 1) -> ReserveStock:
    return ReserveStock(
        reservation_id=f"{group}-1", order_id=order_id, correlation_id=f"of {order_id}"
    )


def records_of(*commands: ReserveStock) -> list[dict[str, Any]]:
    """Messages m1, m2, …"""
    return [record_of(f"m{n}", command) for n, command in enumerate(commands, 1)]


def consume_with(
    decide: Callable[[Sequence[ReserveStock]], Sequence[Answer]],
    *records: dict[str, Any],
    context: Context | None = None,
) -> list[str]:
    return failed_ids(
        consume_together(
            batch(*records), context or Context(), ReserveStock, lambda these, _: decide(these)
        )
    )


def answering(*answers: Answer) -> Callable[[Sequence[ReserveStock]], Sequence[Answer]]:
    return lambda _: answers


@pytest.fixture
def counted(monkeypatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(
        observability.metrics, "add_metric", lambda name, unit, value: names.extend([name] * value)
    )
    return names


# --- what is answered -----------------------------------------------------------------------------


def test_all_messages_are_given_to_one_decision_in_their_order():
    given: list[list[int]] = []

    def decide(commands: Sequence[ReserveStock]) -> list[Answer]:
        given.append([command.order_id for command in commands])
        return [None] * len(commands)

    assert consume_with(decide, *records_of(a_command("A", 3), a_command("B", 1))) == []
    assert given == [[3, 1]]


@pytest.mark.parametrize("fault", [DeliverAgain, TryAgain, InvariantBroken, KeyError])
def test_each_message_is_answered_by_its_own_answer(fault):
    records = records_of(a_command("A"), a_command("B"), a_command("C"))
    assert consume_with(answering(None, fault("no"), None), *records) == ["m2"]


@pytest.mark.parametrize("fault", [TryAgain, InvariantBroken, KeyError])
def test_a_decision_that_fails_makes_all_messages_come_again(fault, counted):
    def decide(_: Sequence[ReserveStock]) -> Sequence[Answer]:
        raise fault("no")

    assert consume_with(decide, *records_of(a_command("A"), a_command("B"))) == ["m1", "m2"]
    assert counted.count("MessageFailed") == 2
    assert counted.count("InvariantBroken") == (2 if fault is InvariantBroken else 0)


@pytest.mark.parametrize("answers", [(None,), (None, None, None)])
def test_an_answer_too_few_or_too_many_is_a_fault_of_the_code(answers):
    with pytest.raises(ValueError, match="zip"):
        consume_with(answering(*answers), *records_of(a_command("A"), a_command("B")))


def test_a_batch_of_nothing_that_can_be_read_is_not_decided():
    def decide(_: Sequence[ReserveStock]) -> Sequence[Answer]:
        raise AssertionError("there is nothing to decide")

    assert consume_with(decide, a_record("m1", "no json", group="A")) == ["m1"]


def test_refusals_are_acknowledged_and_recorded_each_for_its_message(database, counted):
    records = records_of(a_command("A"), a_command("B"), a_command("A"))
    assert consume_with(answering(CODE, None, CODE), *records) == []
    rows = database.rows("SELECT message_id, reservation_id, code FROM message_refusal ORDER BY 1")
    assert rows == [
        {"message_id": f"dedup-m{n}", "reservation_id": "A-1", "code": CODE} for n in (1, 3)
    ]
    assert counted.count("MessageRefused") == 2


def test_a_refusal_that_cannot_be_recorded_fails_its_message_alone(monkeypatch):
    def fail(*_: object) -> None:
        raise TryAgain("the database is away")

    monkeypatch.setattr("lockstep.messaging.consumer.in_one_statement", fail)
    records = records_of(a_command("A"), a_command("B"))
    assert consume_with(answering(CODE, None), *records) == ["m1"]


# --- groups ---------------------------------------------------------------------------------------


def test_a_failure_makes_the_later_messages_of_its_group_fail_and_no_other(database):
    records = records_of(*[a_command(group) for group in "ABABA"])
    answers = (None, None, TryAgain("no"), None, CODE)
    assert consume_with(answering(*answers), *records) == ["m3", "m5"]
    assert database.count("message_refusal") == 0


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        json.dumps({"v": 2, "type": "ReserveStock", "reservation_id": "A-1", "order_id": 1}),
        json.dumps({"v": 1, "type": "ConfirmStock", "reservation_id": "A-1", "order_id": 1}),
        json.dumps({"v": 1, "type": "ReserveStock", "reservation_id": "A", "order_id": 1}),
    ],
)
def test_a_body_that_does_not_parse_fails_and_what_came_before_it_in_its_group_does_not(body):
    first, later, other = records_of(a_command("A"), a_command("A"), a_command("B"))
    bad = a_record("bad", body, group="A-1")
    decided: list[int] = []

    def decide(commands: Sequence[ReserveStock]) -> list[Answer]:
        decided.append(len(commands))
        return [None] * len(commands)

    assert consume_with(decide, first, bad, later, other) == ["bad", "m2"]
    assert decided == [3]


# --- time -----------------------------------------------------------------------------------------


def test_a_batch_without_time_is_handed_back_as_it_came():
    records = records_of(a_command("A"), a_command("B"))
    short = Context(milliseconds=7_999)
    assert consume_with(answering(), *records, context=short) == ["m1", "m2"]
    assert consume_with(answering(None, None), *records, context=Context(milliseconds=8_010)) == []


def test_the_decision_can_ask_whether_there_is_time_for_more():
    context = Context(milliseconds=8_010)
    seen: list[bool] = []

    def decide(_: Sequence[ReserveStock], has_time: Callable[[], bool]) -> list[Answer]:
        seen.append(has_time())
        context.milliseconds = 7_999
        seen.append(has_time())
        return [None]

    consume_together(batch(*records_of(a_command("A"))), context, ReserveStock, decide)
    assert seen == [True, False]


# --- what is logged -------------------------------------------------------------------------------


def test_each_message_is_settled_under_its_own_correlation_id(database, monkeypatch):
    seen: list[str] = []
    record = store.insert_refusal

    def insert(*arguments: Any) -> None:
        seen.append(correlation_id())
        record(*arguments)

    monkeypatch.setattr(store, "insert_refusal", insert)
    consume_with(answering(CODE, CODE), *records_of(a_command("A", 1), a_command("B", 2)))
    assert seen == ["of 1", "of 2"]


def test_what_cannot_be_read_is_told_by_its_own_fault(caplog):
    assert consume_with(answering(), a_record("m1", "no json", group="A-1")) == ["m1"]
    [told] = caplog.records
    assert (vars(told)["message_id"], vars(told)["fault"]) == ("m1", "ValidationError")


# --- soon -----------------------------------------------------------------------------------------


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with queues.of_an_account(monkeypatch) as client:
        yield client


class Hurrying:
    """An SQS that notes what shall come again soon, and fails where it is told to."""

    def __init__(self, *, answer: Any = None, fault: Exception | None = None) -> None:
        self.calls: list[list[tuple[str, int]]] = []
        self.queues: set[str] = set()
        self.is_sound = True
        self._answer, self._fault = answer or {"Successful": []}, fault

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        self.calls.append([(e["ReceiptHandle"], e["VisibilityTimeout"]) for e in Entries])
        self.queues.add(QueueUrl)
        self.is_sound &= len({entry["Id"] for entry in Entries}) == len(Entries)
        if self._fault is not None:
            raise self._fault
        return self._answer


@pytest.fixture
def hurrying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Hurrying]:
    def use(**how: Any) -> Hurrying:
        client = Hurrying(**how)
        monkeypatch.setenv("RESERVE_QUEUE_URL", "the queue of holds")
        monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: client)
        return client

    return use


def soon() -> DeliverSoon:
    return DeliverSoon("somebody is at it")


def test_what_somebody_else_is_at_comes_again_soon_and_a_fault_does_not(hurrying):
    client = hurrying()
    records = records_of(a_command("A"), a_command("B"), a_command("C"), a_command("D"))
    assert consume_with(answering(soon(), None, TryAgain("no"), soon()), *records) == [
        "m1",
        "m3",
        "m4",
    ]
    seconds = visibility.SOON_SECONDS
    assert client.calls == [[("handle-m1", seconds), ("handle-m4", seconds)]]


def test_the_later_messages_of_its_group_come_as_soon_or_they_would_keep_it_back(hurrying):
    client = hurrying()
    records = records_of(a_command("A"), a_command("B"), a_command("A"), a_command("B"))
    answers = (soon(), TryAgain("no"), None, None)
    assert consume_with(answering(*answers), *records) == ["m1", "m2", "m3", "m4"]
    assert [handle for handle, _ in client.calls[0]] == ["handle-m1", "handle-m3"]


def test_more_than_one_call_takes_are_hurried_in_several(hurrying):
    client = hurrying()
    records = records_of(*[a_command(f"G{n}") for n in range(23)])
    consume_with(answering(*[soon() for _ in records]), *records)
    assert [len(call) for call in client.calls] == [10, 10, 3]
    assert (client.queues, client.is_sound) == ({"the queue of holds"}, True)


def test_nothing_is_asked_of_sqs_where_nothing_shall_come_soon(hurrying):
    client = hurrying()
    consume_with(answering(None, TryAgain("no")), *records_of(a_command("A"), a_command("B")))
    assert client.calls == []


def test_a_queue_that_does_not_answer_fails_nobody(hurrying, counted):
    hurrying(fault=ConnectionError("the queue does not answer"))
    assert consume_with(answering(soon()), *records_of(a_command("A"))) == ["m1"]
    assert counted.count("VisibilityNotChanged") == 1


def test_messages_that_the_queue_refuses_to_hurry_are_counted(hurrying, counted):
    hurrying(answer={"Successful": [{"Id": "0"}], "Failed": [{"Id": "1"}, {"Id": "2"}]})
    records = records_of(a_command("A"), a_command("B"), a_command("C"))
    assert consume_with(answering(soon(), soon(), soon()), *records) == ["m1", "m2", "m3"]
    assert counted.count("VisibilityNotChanged") == 2


def test_a_function_that_does_not_know_its_queue_leaves_the_time_out_as_it_is(
    hurrying, monkeypatch
):
    client = hurrying()
    monkeypatch.delenv("RESERVE_QUEUE_URL")
    assert consume_with(answering(soon()), *records_of(a_command("A"))) == ["m1"]
    assert client.calls == []


def test_sqs_itself_takes_the_shorter_time(sqs, monkeypatch):
    """By the receipt handles that it gave out: it delivers them again, and the others not yet."""
    url = sqs.get_queue_url(QueueName="reserve.fifo")["QueueUrl"]
    for group in "AB":
        command = a_command(group)
        sqs.send_message(
            QueueUrl=url,
            MessageBody=command.model_dump_json(),
            MessageGroupId=command.reservation_id,
            MessageDeduplicationId=group,
        )
    monkeypatch.setattr(visibility, "SOON_SECONDS", 0)
    received = queues.receive(sqs, "reserve")
    records = [
        a_record(m["MessageId"], m["Body"], group=m["Attributes"]["MessageGroupId"])
        | {"receiptHandle": m["ReceiptHandle"]}
        for m in received
    ]
    failed = consume_with(answering(soon(), TryAgain("no")), *records)
    assert failed == [m["MessageId"] for m in received]
    assert [m["MessageId"] for m in queues.receive(sqs, "reserve")] == failed[:1]
