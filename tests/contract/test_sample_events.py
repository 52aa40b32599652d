"""Each sample event is what its function reads: shape only, no database.

The samples are written once and kept: what was delivered in an older form must be read for ever.
"""

import base64
import json
from decimal import Decimal

import pytest

from infra.local.paths import ROOT
from lockstep.alipay.form import body_bytes
from lockstep.alipay.keys import load_public_key
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.alipay.notice import verify_and_parse
from lockstep.api.operator_requests import (
    read_attach,
    read_give_back,
    read_operator,
    read_refund_order,
)
from lockstep.api.requests import read_member_id, read_orders_query, read_place_order
from lockstep.messaging.contracts import ConfirmStock, RefundPayment, ReleaseStock, ReserveStock
from lockstep.payments.give_back import GiveBack
from tests.support import template
from tests.support.notices import APP_ID, SELLER_ID
from tests.support.samples import (
    ALIPAY_PUBLIC_KEY,
    EVENTS,
    SAMPLES,
    function_of,
    of_function,
    sample,
)

HTTP = [name for name in SAMPLES if "routeKey" in sample(name)]
BATCHES = [name for name in SAMPLES if "Records" in sample(name)]
SCHEDULED = [name for name in SAMPLES if name not in {*HTTP, *BATCHES}]
COMMANDS: dict[str, type[ReserveStock] | type[ConfirmStock] | type[ReleaseStock]] = {
    "reserve_stock": ReserveStock,
    "confirm_stock": ConfirmStock,
    "release_stock": ReleaseStock,
}


def test_every_function_has_a_sample_and_every_sample_a_function():
    functions = {path.stem for path in (ROOT / "functions").glob("*.py")}
    assert {function_of(name) for name in SAMPLES} == functions


def test_every_route_has_a_sample_and_every_sample_a_route():
    routes = {
        (name, f"{method} {path}")
        for name, function in template.functions().items()
        for method, path in function.routes
    }
    assert {(function_of(name), sample(name)["routeKey"]) for name in HTTP} == routes


@pytest.mark.parametrize("name", HTTP)
def test_a_request_is_one_of_payload_format_two(name):
    event = sample(name)
    http = event["requestContext"]["http"]
    method, path = event["routeKey"].split(" ")
    assert event["version"] == "2.0"
    assert (http["method"], http["path"]) == (method, event["rawPath"])
    assert path.format(**event.get("pathParameters", {})) == event["rawPath"]
    assert event["headers"] == {key.lower(): value for key, value in event["headers"].items()}
    if "body" in event:
        sent = event["body"].encode()
        body = base64.b64decode(sent, validate=True) if event["isBase64Encoded"] else sent
        assert int(event["headers"]["content-length"]) == len(body)


@pytest.mark.parametrize("name", of_function("operate_payments"))
def test_an_operators_request_names_its_operator(name):
    assert read_operator(sample(name)) == "alice"


def test_a_refund_that_an_operator_asks_for_is_read():
    asked = read_refund_order(sample("operate_payments-refund_order"), "202610240136005000421234")
    assert (asked.amount, asked.reason) == (Decimal("3.00"), "one came broken")
    assert (asked.idempotency_key, asked.restock) == ("ticket-77", {1001: 1})
    trade_no = "2026102422001400000000000042"
    given = read_give_back(sample("operate_payments-give_back"), trade_no)
    assert given == GiveBack(trade_no, "alice", "nobody claims it")
    number, operator, body = read_attach(sample("operate_payments-attach"), trade_no)
    assert (number, operator) == (trade_no, "alice")
    assert (body.order_no, body.reason) == ("202610240136005000421234", "the buyer wrote to us")


NOT_OF_MEMBERS = {"alipay_notify", "operate_payments"}


@pytest.mark.parametrize("name", [n for n in HTTP if function_of(n) not in NOT_OF_MEMBERS])
def test_a_members_request_names_its_member(name):
    assert read_member_id(sample(name)) == 42


@pytest.mark.parametrize("name", of_function("create_order"))
def test_an_order_is_read(name):
    command = read_place_order(sample(name))
    assert command.idempotency_key == "cart-7-2026-10-24"
    assert command.lines[1001] == 2


def test_an_order_in_base64_is_read_to_its_last_character():
    command = read_place_order(sample("create_order-base64"))
    assert command.lines == {1001: 2, 1002: 1}
    assert command.expected_amount == Decimal("29.70")
    assert command.note == "请按两次门铃 🔔"


def test_a_query_is_read():
    query = read_orders_query(sample("query_orders-list"))
    assert (query.status, query.before, query.limit) == ("PENDING_PAYMENT", None, 20)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("alipay_notify", NoticeKind.PAYMENT),
        ("alipay_notify-refund", NoticeKind.REFUND),
    ],
)
def test_a_notice_in_base64_verifies(name, kind):
    event = sample(name)
    assert event["isBase64Encoded"] is True
    body = body_bytes(event["body"], is_base64=True)
    keys = [load_public_key(ALIPAY_PUBLIC_KEY)]
    notice = verify_and_parse(body, keys, APP_ID, frozenset({SELLER_ID}))
    assert isinstance(notice, TradeNotice)
    assert (notice.kind, notice.total_amount) == (kind, Decimal("19.80"))


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_one_of_a_fifo_queue(name):
    event = sample(name)
    assert 1 <= len(event["Records"]) <= 10
    for record in event["Records"]:
        queue = function_of(name).partition("_")[0]
        assert record["eventSourceARN"].endswith(f"-{queue}.fifo")
        assert {"MessageGroupId", "MessageDeduplicationId", "SequenceNumber"} <= record[
            "attributes"
        ].keys()


def test_a_schedule_or_a_person_hands_over_nothing():
    asked = {name: sample(name) for name in SCHEDULED}
    assert asked == {"relay_outbox": {}, "sweep_expired": {}, "migrate": {}}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_batch_holds_commands_each_in_the_group_of_its_reservation(name):
    for record in sample(name)["Records"]:
        command = COMMANDS[name].model_validate_json(record["body"])
        assert record["attributes"]["MessageGroupId"] == command.reservation_id


def test_a_try_of_a_refund_is_in_the_group_of_its_payment():
    [record] = sample("refund_payment")["Records"]
    assert RefundPayment.read(record["body"]).refund_id == 1
    assert record["attributes"]["MessageGroupId"].isdigit()


def test_no_sample_is_left_out_of_the_folder():
    known = {"messages", "schemas", "alipay_notify.public_key"} | {p.name for p in SAMPLES.values()}
    assert {path.name for path in EVENTS.iterdir()} == known
    for path in SAMPLES.values():
        text = path.read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
