"""consume(): each message decided alone, its group kept in order, a refusal recorded once."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pytest

from functions import confirm_stock, release_stock
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory.model import Refusal
from lockstep.inventory.release import release
from lockstep.messaging import store
from lockstep.messaging.consumer import Answer, DeliverAgain, consume, consume_together
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from tests.support.batches import a_record, batch, failed_ids, record_of
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.flows import a_notice
from tests.support.lambda_context import Context

CONTEXT = Context()


def a_command(group: str, n: int = 1) -> ConfirmStock:
    return ConfirmStock(reservation_id=f"{group}-{n}", order_id=1)


def consume_with(handle: Any, *records: dict[str, Any]) -> list[str]:
    return failed_ids(consume(batch(*records), CONTEXT, ConfirmStock, handle))


def test_a_failure_holds_back_its_own_group_and_no_other():
    """A, B (bad), A, B, C: the first three groups' first messages run, B's second waits for B."""
    ran = []

    def handle(command: ConfirmStock) -> StrEnum | None:
        ran.append((command.reservation_id, command.order_id))
        if command.order_id == 2:
            raise DeliverAgain("not yet")
        return None

    groups = [("A", 1), ("B", 2), ("A", 3), ("B", 4), ("C", 5)]
    records = [
        record_of(f"m{n}", ConfirmStock(reservation_id=f"{group}-1", order_id=n))
        for group, n in groups
    ]
    assert consume_with(handle, *records) == ["m2", "m4"]
    assert ran == [("A-1", 1), ("B-1", 2), ("A-1", 3), ("C-1", 5)]


def test_a_batch_without_a_failure_reports_none():
    assert consume_with(lambda _: None, record_of("m1", a_command("A"))) == []


@pytest.mark.parametrize("fault", [DeliverAgain, TryAgain, InvariantBroken, KeyError])
def test_a_batch_whose_every_message_failed_is_reported_and_does_not_raise(fault):
    def handle(_: ConfirmStock) -> StrEnum | None:
        raise fault("no")

    records = [record_of("m1", a_command("A")), record_of("m2", a_command("B"))]
    assert consume_with(handle, *records) == ["m1", "m2"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        '"x"',
        "null",
        json.dumps({"v": 2, "type": "ConfirmStock", "reservation_id": "B-1", "order_id": 1}),
        json.dumps({"v": 1, "type": "ReleaseStock", "reservation_id": "B-1", "order_id": 1}),
        json.dumps({"v": 1, "type": "RefundPayment", "refund_id": 1}),
        json.dumps({"v": 1, "type": "ConfirmStock", "reservation_id": "B", "order_id": 1}),
        json.dumps({"v": 1, "type": "ConfirmStock", "reservation_id": "B-1", "order_id": "1"}),
        json.dumps({"type": "ConfirmStock"}),
    ],
)
def test_a_body_that_does_not_parse_fails_for_that_message_alone(body):
    ran = []

    def handle(command: ConfirmStock) -> StrEnum | None:
        ran.append(command.reservation_id)
        return None

    records = [
        record_of("m1", a_command("A")),
        a_record("m2", body, group="B"),
        record_of("m3", a_command("C")),
    ]
    assert consume_with(handle, *records) == ["m2"]
    assert ran == ["A-1", "C-1"]


def test_a_refusal_is_acknowledged_and_recorded_once_however_often_it_comes(database):
    record = a_record("m1", a_command("A").model_dump_json(), group="A", dedup_id="d" * 32)
    for message_id in ("m1", "m1", "m2"):  # a redelivery has another message id at times
        answer = consume_with(
            lambda _: Refusal.RESERVATION_NOT_RESERVED, record | {"messageId": message_id}
        )
        assert answer == []
    row = database.one("SELECT message_id, type, reservation_id, code FROM message_refusal")
    assert row == {
        "message_id": "d" * 32,
        "type": "ConfirmStock",
        "reservation_id": "A-1",
        "code": "RESERVATION_NOT_RESERVED",
    }


def test_another_message_with_the_same_refusal_is_another_row(database):
    for n in (1, 2):
        consume_with(lambda _: Refusal.RESERVATION_NOT_RESERVED, record_of(f"m{n}", a_command("A")))
    assert database.count("message_refusal") == 2


def test_a_refusal_that_cannot_be_recorded_is_not_acknowledged(database, monkeypatch):
    def fail(*_: object) -> None:
        raise TryAgain("the database is away")

    monkeypatch.setattr(store, "insert_refusal", fail)
    records = [record_of("m1", a_command("A")), record_of("m2", a_command("B"))]
    refused = consume_with(
        lambda c: Refusal.RESERVATION_NOT_RESERVED if c.reservation_id == "A-1" else None, *records
    )
    assert refused == ["m1"]


def test_a_message_that_there_is_no_time_for_is_not_looked_at():
    ran: list[str] = []

    def handle(command: ConfirmStock) -> StrEnum | None:
        ran.append(command.reservation_id)
        return None

    event, late = batch(record_of("m1", a_command("A"))), Context(milliseconds=7_999)
    assert failed_ids(consume(event, late, ConfirmStock, handle)) == ["m1"]
    assert ran == []


def decide_together(
    answers: Mapping[str, Answer], *records: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """The messages that come again, and the reservations that were asked about."""
    asked: list[str] = []

    def decide(commands: Sequence[ConfirmStock], _: object) -> list[Answer]:
        asked.extend(command.reservation_id for command in commands)
        return [answers.get(command.reservation_id) for command in commands]

    failed = failed_ids(consume_together(batch(*records), CONTEXT, ConfirmStock, decide))
    return failed, asked


def test_a_fault_among_the_answers_fails_its_message_and_is_no_refusal(database, monkeypatch):
    recorded: list[object] = []
    monkeypatch.setattr(store, "insert_refusal", lambda *refusal: recorded.append(refusal))
    records = [record_of("m1", a_command("A")), record_of("m2", a_command("B"))]
    answers = {"A-1": DeliverAgain("not yet")}
    assert decide_together(answers, *records) == (["m1"], ["A-1", "B-1"])
    assert recorded == []


def test_decided_together_a_message_still_comes_after_the_one_before_it_in_its_group(database):
    """The first of group A is no command; what follows it there is not acknowledged before it."""
    records = [
        a_record("m1", "{", group="A"),
        a_record("m2", a_command("A").model_dump_json(), group="A"),
        record_of("m3", a_command("B")),
    ]
    answers = dict.fromkeys(("A-1", "B-1"), Refusal.RESERVATION_NOT_RESERVED)
    assert decide_together(answers, *records)[0] == ["m1", "m2"]
    assert database.value("SELECT reservation_id FROM message_refusal") == "B-1"


def hold_of(order: Order) -> str:
    assert order.reservation_id is not None
    return order.reservation_id


@pytest.fixture
def sku(database):
    return a_sku(database)


def test_the_confirm_function_sells_waits_and_refuses_each_by_its_own_order(database, sku):
    """One batch: a paid order, one paid but not held, one closed."""
    sold = an_order(member_id=1)
    accept(a_notice(database))
    lost, closed = an_order(member_id=2), an_order(member_id=3)
    release(hold_of(lost), lost.id)
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'PAID' WHERE id = %s", (lost.id,)
    )
    cancel(3, closed.order_no)
    release(hold_of(closed), closed.id)
    records = [
        record_of(f"m{n}", ConfirmStock(reservation_id=hold_of(order), order_id=order.id))
        for n, order in enumerate([sold, lost, closed], 1)
    ]
    assert failed_ids(confirm_stock.handler(batch(*records), CONTEXT)) == ["m2"]
    assert database.stock(sku) == (9, 0)
    [refusal] = database.rows("SELECT reservation_id, code FROM message_refusal")
    assert refusal == {
        "reservation_id": closed.reservation_id,
        "code": "RESERVATION_NOT_RESERVED",
    }


def test_redelivered_commands_in_any_order_have_their_effect_once(database, sku):
    order = an_order()
    cancel(42, order.order_no)
    command = ReleaseStock(reservation_id=hold_of(order), order_id=order.id)
    for n in range(3):
        event = batch(record_of(f"m{n}", command), record_of(f"r{n}", command))
        assert failed_ids(release_stock.handler(event, CONTEXT)) == []
    assert database.stock(sku) == (10, 0)
    assert database.count("message_refusal") == 0
    assert_at_rest(database)


def test_a_release_of_sold_stock_is_recorded_and_changes_nothing(database, sku):
    order = an_order()
    accept(a_notice(database))
    hold = hold_of(order)
    confirm_event = batch(record_of("c", ConfirmStock(reservation_id=hold, order_id=order.id)))
    assert failed_ids(confirm_stock.handler(confirm_event, CONTEXT)) == []
    release_event = batch(record_of("r", ReleaseStock(reservation_id=hold, order_id=order.id)))
    assert failed_ids(release_stock.handler(release_event, CONTEXT)) == []
    assert database.value("SELECT code FROM message_refusal") == "RESERVATION_CANNOT_RELEASE"
    assert database.stock(sku) == (9, 0)
    assert_at_rest(database)


def test_a_batch_that_runs_out_of_time_hands_back_what_it_did_not_look_at(database):
    a_sku(database)
    order = an_order()
    command = ReleaseStock(reservation_id=order.reservation_id or "", order_id=order.id)
    event = batch(record_of("m1", command))
    assert failed_ids(release_stock.handler(event, Context(milliseconds=7_999))) == ["m1"]
    assert database.stock(1001) == (10, 1)
    assert failed_ids(release_stock.handler(event, Context(milliseconds=8_001))) == []
    assert database.stock(1001) == (10, 0)
