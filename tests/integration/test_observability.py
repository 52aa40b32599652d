"""One id from the request to the last message, a number for every outcome, and nothing personal."""

import json
import logging
import secrets
from decimal import Decimal
from io import StringIO

import pytest

from functions import alipay_notify, cancel_order, confirm_stock, create_order, release_stock
from infra.local import alipay_sign
from lockstep import settings
from lockstep.observability import logger, metrics
from tests.support.batches import a_record, batch
from tests.support.builders import a_sku
from tests.support.database import Database
from tests.support.http_events import an_order_body, post_order, request
from tests.support.lambda_context import Context
from tests.support.notices import APP_ID, SELLER_ID


@pytest.fixture(autouse=True)
def no_counts_of_others():
    metrics.clear_metrics()
    yield
    metrics.clear_metrics()


@pytest.fixture
def lines(capsys):
    """What was written since the last look: logs and metrics, each a JSON document."""
    handler = logger.registered_handler
    assert isinstance(handler, logging.StreamHandler)
    written = StringIO()
    before = handler.setStream(written)

    def read() -> list[dict[str, object]]:
        logged, counted = written.getvalue(), capsys.readouterr().out
        written.seek(0)
        written.truncate()
        return [json.loads(line) for line in (logged + counted).splitlines()]

    yield read
    handler.stream = before


def counted(documents) -> dict[str, int]:
    """Every metric of these documents with its sum."""
    found: dict[str, int] = {}
    for document in documents:
        for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
            for metric in directive["Metrics"]:
                name = metric["Name"]
                found[name] = found.get(name, 0) + int(sum(document[name]))
    return found


def with_id(event, request_id: str):
    event["requestContext"]["requestId"] = request_id
    return event


def staged(database: Database) -> dict[str, object]:
    payload: dict[str, object] = json.loads(database.value("SELECT payload FROM outbox"))
    return payload


def placed(lines) -> str:
    answer = create_order.handler(with_id(post_order(an_order_body()), "request-1"), Context())
    lines()
    return str(json.loads(answer["body"])["order"]["order_no"])


def test_a_cancels_id_goes_with_its_message_and_into_the_workers_logs(database, lines):
    a_sku(database)
    order_no = placed(lines)
    cancelling = with_id(request("POST", f"/orders/{order_no}/cancel", member=42), "request-2")
    cancel_order.handler(cancelling, Context())
    payload = staged(database)
    assert payload["correlation_id"] == "request-2"
    payload["order_id"] = 2**40  # somebody else's: refused, and logged
    lines()
    release_stock.handler(batch(a_record("m1", json.dumps(payload), group="g")), Context())
    [refused] = [line for line in lines() if line.get("message") == "command refused"]
    assert refused["correlation_id"] == "request-2"


def test_a_notices_id_goes_with_its_message(database, monkeypatch, lines):
    a_sku(database)
    order_no = placed(lines)
    event = notice(monkeypatch, order_no)
    assert alipay_notify.handler(with_id(event, "request-3"), Context())["body"] == "success"
    assert staged(database)["correlation_id"] == "request-3"


def test_an_unreadable_message_is_not_logged_under_the_id_of_the_one_before(database, lines):
    good = {
        "v": 1,
        "type": "ConfirmStock",
        "reservation_id": "O-1",
        "order_id": 1,
        "correlation_id": "request-4",
    }
    records = [a_record("m1", json.dumps(good), group="g"), a_record("m2", "{", group="h")]
    confirm_stock.handler(batch(*records), Context())
    [failed] = [
        line for line in lines() if line.get("message") == "message will be delivered again"
    ]
    assert failed.get("correlation_id") is None


def test_every_outcome_has_a_number(database, monkeypatch, lines):
    a_sku(database, stock=1)
    create_order.handler(post_order(an_order_body(), key="k1"), Context())
    create_order.handler(post_order(an_order_body(), key="k2"), Context())
    create_order.handler(post_order("{", key="k3"), Context())
    order_no = database.value("SELECT order_no FROM oms_order")
    alipay_notify.handler(notice(monkeypatch, order_no, amount="0.01"), Context())
    alipay_notify.handler(request("POST", "/alipay/notify", body="sign=AAAA&a=1"), Context())
    assert counted(lines()) == {
        "OrderPlaced": 1,
        "OrderOutOfStock": 1,
        "RefusedBodyUnreadable": 1,
        "AmountMismatch": 1,
        "NoticeRefundPending": 1,
        "NoticeRefusedSignatureInvalid": 1,
    }


def test_lock_retries_that_were_used_up_are_counted(database, monkeypatch, lines):
    a_sku(database)
    order_no = placed(lines)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT id FROM oms_order WHERE order_no = %s FOR UPDATE", (order_no,))
        event = notice(monkeypatch, order_no)
        assert alipay_notify.handler(event, Context())["body"] == "failure"
    found = counted(lines())
    assert found["NoticeFailed"] == 1


def test_a_message_that_could_not_be_sent_is_counted_and_does_not_change_the_answer(
    database, monkeypatch, lines
):
    a_sku(database)
    order_no = placed(lines)
    monkeypatch.setenv("CONFIRM_QUEUE_URL", "https://queue.example/confirm.fifo")

    def unreachable() -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr("lockstep.messaging.sqs.client", unreachable)
    event = notice(monkeypatch, order_no)
    assert alipay_notify.handler(event, Context())["body"] == "success"
    assert counted(lines())["SendAfterCommitFailed"] == 1


PERSONAL = {
    "buyer_logon_id": "mei***@shop.example",
    "buyer_id": "2088123412341234",
    "buyer_open_id": "074a1CcTG1LelxKe4xQC0zgNdId0nxi95b5lsNpazWYoCo5",
    "body": "happy birthday, Mei",
}


def test_nothing_personal_and_no_payload_is_written(database, monkeypatch, lines):
    a_sku(database)
    body = an_order_body(note="ring at number 7, Mei")
    create_order.handler(post_order(body), Context())
    order_no = database.value("SELECT order_no FROM oms_order")
    alipay_notify.handler(notice(monkeypatch, order_no, **PERSONAL), Context())
    alipay_notify.handler(notice(monkeypatch, "nobody", **PERSONAL), Context())
    confirm_stock.handler(batch(a_record("m1", "{" + secrets.token_hex(4), group="g")), Context())
    written = json.dumps(lines(), ensure_ascii=False)
    for secret in (*PERSONAL.values(), "number 7", "sign="):
        assert secret not in written


def notice(monkeypatch, order_no: str, amount: str = "9.90", **more: str):
    """A signed notice's event, and the settings that make it ours."""
    key = alipay_sign.new_key()
    monkeypatch.setenv("ALIPAY_APP_ID", APP_ID)
    monkeypatch.setenv("ALIPAY_SELLER_IDS", SELLER_ID)
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", alipay_sign.public_key_base64(key))
    settings.alipay.cache_clear()
    alipay_notify._alipay_keys.cache_clear()
    trade_no = secrets.token_hex(14)
    words = alipay_sign.payment_notice(APP_ID, SELLER_ID, order_no, trade_no, Decimal(amount))
    body = alipay_sign.form_body(words | more, key).decode()
    return request("POST", "/alipay/notify", body=body)
