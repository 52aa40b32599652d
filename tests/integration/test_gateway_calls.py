"""What the gateway is asked, word for word, and what its answers become.

Method: a real HTTP server that checks and makes signatures by code written apart from the client.
"""

import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from infra.local import alipay_sign
from lockstep.alipay.answers import (
    Done,
    RefundFound,
    RefundReply,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)
from lockstep.alipay.gateway import connect
from lockstep.errors import SettingMissing
from tests.support.database import forget_settings
from tests.support.gateway_server import APP_ID, a_gateway, alipay_key, app_key, running
from tests.support.reading import full_width

EXPIRES_AT = datetime(2026, 10, 24, 16, 29, 59, 999999, tzinfo=UTC)
ORDER: dict[str, Any] = {
    "out_trade_no": "O1",
    "amount": Decimal("9.9"),
    "subject": "Order O1",
    "expires_at": EXPIRES_AT,
    "notify_url": "https://shop.example/alipay/notify",
}
PAID = {
    "trade_no": "T1",
    "out_trade_no": "O1",
    "trade_status": "TRADE_SUCCESS",
    "total_amount": "9.90",
    "send_pay_date": "2026-10-24 10:00:05",
}
TRADE = Trade(
    trade_no="T1",
    out_trade_no="O1",
    status=TradeStatus.TRADE_SUCCESS,
    total_amount=Decimal("9.90"),
    paid_at=datetime(2026, 10, 24, 2, 0, 5, tzinfo=UTC),
    is_settled=True,
)


@pytest.fixture
def server():
    with running() as server:
        yield server


def params_of(url):
    return dict(parse_qsl(urlsplit(url).query, strict_parsing=True))


# --- what is asked --------------------------------------------------------------------------------


def test_a_call_is_one_signed_post_with_its_charset_in_the_address(server):
    server.gateway().query(out_trade_no="O1")
    [asked] = server.asked
    assert (asked.verb, asked.path, asked.query) == ("POST", "/gateway.do", {"charset": "utf-8"})
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded;charset=utf-8"
    params = asked.params
    assert params.keys() == {
        *("app_id", "method", "format", "charset", "sign_type", "sign"),
        *("timestamp", "version", "biz_content"),
    }
    assert (params["app_id"], params["format"], params["version"]) == (APP_ID, "JSON", "1.0")
    assert (params["method"], params["sign_type"]) == ("alipay.trade.query", "RSA2")
    assert alipay_sign.is_request_signed(params, app_key().public_key())
    for name in params:
        assert not alipay_sign.is_request_signed(
            params | {name: f"{params[name]}x"}, app_key().public_key()
        )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Shanghai", "no/such zone"])
def test_times_are_beijings_wherever_it_runs(server, monkeypatch, zone):
    """P24: no zone of the machine, and none of its zone files, has a say."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        before = alipay_sign.beijing_text(datetime.now(UTC))
        server.gateway().precreate(**ORDER)
        after = alipay_sign.beijing_text(datetime.now(UTC))
        [asked] = server.asked
        assert before <= asked.params["timestamp"] <= after
        assert asked.content["time_expire"] == "2026-10-25 00:29:59"
        server.answers(**PAID)
        assert server.gateway().query(out_trade_no="O1") == Done(TRADE)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("product", "method", "product_code"),
    [
        ("page", "alipay.trade.page.pay", "FAST_INSTANT_TRADE_PAY"),
        ("wap", "alipay.trade.wap.pay", "QUICK_WAP_WAY"),
    ],
)
@pytest.mark.parametrize("return_url", [None, "https://shop.example/paid?order=O1"])
def test_a_page_is_a_signed_address_and_no_call(product, method, product_code, return_url):
    gateway = a_gateway("https://gateway.example/gateway.do")
    url = gateway.page_url(product, **ORDER, return_url=return_url)
    assert url.startswith("https://gateway.example/gateway.do?")
    params = params_of(url)
    assert alipay_sign.is_request_signed(params, app_key().public_key())
    assert params["method"] == method
    assert params["notify_url"] == "https://shop.example/alipay/notify"
    assert params.get("return_url") == return_url
    assert json.loads(params["biz_content"]) == {
        "out_trade_no": "O1",
        "total_amount": "9.90",
        "subject": "Order O1",
        "time_expire": "2026-10-25 00:29:59",
        "product_code": product_code,
    }


@pytest.mark.parametrize(
    ("subject", "sent"),
    [
        ("Tea & honey / 2 = 1", "Tea honey 2 1"),
        ("墨水 “黑”", "墨水 “黑”"),
        (" a\n\tb\x00c\u200b ", "a bc"),
        ("/=&", "O1"),
        ("", "O1"),
        ("\ud800", "O1"),
        ("字" * 300, "字" * 256),
        ("a" * 255 + " b", "a" * 255),
    ],
)
def test_a_subject_is_what_alipay_takes(subject, sent):
    url = a_gateway("https://gateway.example/").page_url(
        "page", **ORDER | {"subject": subject}, return_url=None
    )
    params = params_of(url)
    assert json.loads(params["biz_content"])["subject"] == sent
    assert alipay_sign.is_request_signed(params, app_key().public_key())


def test_with_certificates_their_serial_numbers_are_sent_and_signed(server):
    gateway = server.gateway(certificates=("a" * 32, f"{'b' * 32}_{'c' * 32}"))
    server.answers(**PAID, alipay_cert_sn="d" * 32)
    assert gateway.query(out_trade_no="O1") == Done(TRADE)
    for params in (
        server.asked[0].params,
        params_of(gateway.page_url("page", **ORDER, return_url=None)),
    ):
        assert params["app_cert_sn"] == "a" * 32
        assert params["alipay_root_cert_sn"] == f"{'b' * 32}_{'c' * 32}"
        assert alipay_sign.is_request_signed(params, app_key().public_key())


@pytest.mark.parametrize(
    ("call", "method", "content"),
    [
        (
            lambda g: g.precreate(**ORDER),
            "alipay.trade.precreate",
            {
                "out_trade_no": "O1",
                "total_amount": "9.90",
                "subject": "Order O1",
                "time_expire": "2026-10-25 00:29:59",
                "product_code": "FACE_TO_FACE_PAYMENT",
            },
        ),
        (lambda g: g.query(trade_no="T1"), "alipay.trade.query", {"trade_no": "T1"}),
        (
            lambda g: g.query(out_trade_no="O1", trade_no="T1"),
            "alipay.trade.query",
            {"out_trade_no": "O1", "trade_no": "T1"},
        ),
        (lambda g: g.close("O1"), "alipay.trade.close", {"out_trade_no": "O1"}),
        (
            lambda g: g.refund(
                trade_no="T1", out_request_no="R1", amount=Decimal(3), reason="买重了"
            ),
            "alipay.trade.refund",
            {
                "trade_no": "T1",
                "out_request_no": "R1",
                "refund_amount": "3.00",
                "refund_reason": "买重了",
            },
        ),
        (
            lambda g: g.query_refund(trade_no="T1", out_request_no="R1"),
            "alipay.trade.fastpay.refund.query",
            {"trade_no": "T1", "out_request_no": "R1"},
        ),
        (
            lambda g: g.bill(date(2026, 10, 24)),
            "alipay.data.dataservice.bill.downloadurl.query",
            {"bill_type": "trade", "bill_date": "2026-10-24"},
        ),
        (
            lambda g: g.bill(date(2026, 10, 24), "signcustomer"),
            "alipay.data.dataservice.bill.downloadurl.query",
            {"bill_type": "signcustomer", "bill_date": "2026-10-24"},
        ),
    ],
)
def test_each_call_asks_for_exactly_what_it_is_about(server, call, method, content):
    call(server.gateway())
    [asked] = server.asked
    assert asked.params["method"] == method
    assert asked.content == content
    assert alipay_sign.is_request_signed(asked.params, app_key().public_key())


# --- what is answered -----------------------------------------------------------------------------


def test_a_trade_is_read(server):
    server.answers(**PAID, buyer_user_id="2088…", receipt_amount="9.00")
    assert server.gateway().query(out_trade_no="O1") == Done(TRADE)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"total_amount": 19}, {"total_amount": Decimal("19.00")}),
        ({"total_amount": 9.9}, {"total_amount": Decimal("9.90")}),
        ({"trade_status": "WAIT_BUYER_PAY"}, {"status": TradeStatus.WAIT_BUYER_PAY}),
        ({"trade_status": "TRADE_CLOSED"}, {"status": TradeStatus.TRADE_CLOSED}),
        ({"trade_status": "TRADE_FINISHED"}, {"status": TradeStatus.TRADE_FINISHED}),
        ({"send_pay_date": None}, {"paid_at": None}),
        ({"send_pay_date": ""}, {"paid_at": None}),
        ({"additional_status": "SELLER_NOT_RECEIVED"}, {"is_settled": False}),
        ({"additional_status": "SOMETHING_NEW"}, {"is_settled": False}),
        ({"additional_status": ""}, {"is_settled": True}),
        ({"credit_pay_mode": "creditAdvanceV2"}, {"is_settled": False}),
        ({"credit_pay_mode": "somethingNew"}, {"is_settled": False}),
    ],
)
def test_what_a_trade_can_say(server, changes, expected):
    server.answers(**PAID | changes)
    outcome = server.gateway().query(out_trade_no="O1")
    assert isinstance(outcome, Done)
    assert {name: getattr(outcome.value, name) for name in expected} == expected


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in ("trade_no", "out_trade_no", "trade_status", "total_amount")),
        {"trade_status": "TRADE_PENDING"},
        {"trade_status": 1},
        *(
            {"total_amount": text}
            for text in ("NaN", "1e1", "9.900", "-1", " 9.90", full_width("9.90"))
        ),
        {"send_pay_date": "yesterday"},
        {"send_pay_date": "2026-02-30 10:00:00"},
        {"send_pay_date": "0001-01-01 00:00:00"},
        {"trade_no": "T 1"},
        {"trade_no": "1" * 65},
        {"out_trade_no": "O2"},  # a genuine answer to another question
    ],
)
def test_a_signed_trade_that_makes_no_sense_is_unknown(server, changes):
    server.answers(**PAID | changes)
    assert isinstance(server.gateway().query(out_trade_no="O1"), Unknown)


def test_an_answer_about_another_trade_or_refund_is_unknown(server):
    gateway = server.gateway()
    server.answers(**PAID)
    assert isinstance(gateway.query(trade_no="T2"), Unknown)
    server.answers(out_trade_no="O2", trade_no="T1")
    assert isinstance(gateway.close("O1"), Unknown)
    refund = {"trade_no": "T1", "out_request_no": "R1"}
    server.answers(trade_no="T2", fund_change="Y", refund_fee="3.00")
    asked = gateway.refund(**refund, amount=Decimal(3), reason="")
    assert isinstance(asked, Unknown)
    server.answers(trade_no="T1", out_request_no="R2", refund_status="REFUND_SUCCESS")
    assert isinstance(gateway.query_refund(**refund), Unknown)


def test_closing_says_no_more_than_that_it_is_done(server):
    server.answers(out_trade_no="O1", trade_no="T1")
    assert server.gateway().close("O1") == Done(None)
    server.answers()
    assert server.gateway().close("O1") == Done(None)


@pytest.mark.parametrize("text", ["https://qr.alipay.com/bax03206ug0kulveltqc80a8"])
def test_a_qr_code_is_read_through_its_escaped_slashes(server, text):
    server.answers(out_trade_no="O1", qr_code=text)
    assert server.gateway().precreate(**ORDER) == Done(text)


@pytest.mark.parametrize("text", [None, "", "javascript:alert(1)", "https://", "https://q r"])
def test_a_qr_code_that_is_no_address_is_unknown(server, text):
    server.answers(out_trade_no="O1", qr_code=text)
    assert isinstance(server.gateway().precreate(**ORDER), Unknown)


@pytest.mark.parametrize(
    ("fields", "reply"),
    [
        ({"fund_change": "Y", "refund_fee": "3.00"}, RefundReply(True, Decimal("3.00"))),
        ({"fund_change": "N", "refund_fee": "3.00"}, RefundReply(False, Decimal("3.00"))),
        ({"refund_fee": 3.5}, RefundReply(False, Decimal("3.50"))),
        ({"fund_change": "y"}, RefundReply(False, None)),
        ({}, RefundReply(False, None)),
    ],
)
def test_only_a_changed_fund_shows_that_a_refund_moved_money(server, fields, reply):
    """P23: 10000 with fund_change=N is neither success nor failure."""
    server.answers(**fields)
    outcome = server.gateway().refund(
        trade_no="T1", out_request_no="R1", amount=Decimal(3), reason="late"
    )
    assert outcome == Done(reply)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {"refund_status": "REFUND_SUCCESS", "refund_amount": "3.00"},
            RefundFound(True, Decimal("3.00")),
        ),
        ({"refund_status": "REFUND_SUCCESS"}, RefundFound(True, None)),
        ({"refund_amount": "3.00"}, RefundFound(True, Decimal("3.00"))),
        ({"refund_status": "REFUND_PROCESSING", "refund_amount": "3.00"}, RefundFound(False, None)),
        ({"refund_status": "REFUND_FAIL"}, RefundFound(False, None)),
        ({}, RefundFound(False, None)),
    ],
)
def test_a_refund_is_found_by_its_status_or_of_old_by_its_amount(server, fields, found):
    server.answers(**fields)
    outcome = server.gateway().query_refund(trade_no="T1", out_request_no="R1")
    assert outcome == Done(found)


def test_what_alipay_does_not_know_is_refused_by_name(server):
    server.answers(code="40004", sub_code="ACQ.TRADE_NOT_EXIST", msg="Business Failed")
    assert server.gateway().query(out_trade_no="O1") == Refused("ACQ.TRADE_NOT_EXIST")


@pytest.mark.parametrize("order", ["old first", "new first"])
def test_two_keys_are_taken_while_alipays_key_is_changed(server, order):
    new = alipay_sign.new_key()
    keys = (alipay_key(), new) if order == "old first" else (new, alipay_key())
    server.answers(**PAID)
    assert server.gateway(public_keys=keys).query(out_trade_no="O1") == Done(TRADE)
    assert isinstance(server.gateway(public_keys=(new,)).query(out_trade_no="O1"), Unknown)


def test_it_connects_once_by_the_settings(server, monkeypatch):
    for name, value in {
        "ALIPAY_APP_ID": APP_ID,
        "ALIPAY_GATEWAY_URL": server.url,
        "ALIPAY_PUBLIC_KEY": ",".join(
            map(alipay_sign.public_key_base64, (alipay_sign.new_key(), alipay_key()))
        ),
        "ALIPAY_PRIVATE_KEY": alipay_sign.private_key_pem(app_key()).decode(),
    }.items():
        monkeypatch.setenv(name, value)
    forget_settings()
    connect.cache_clear()
    try:
        gateway = connect()
        assert connect() is gateway
        server.answers(**PAID)
        assert gateway.query(out_trade_no="O1") == Done(TRADE)
    finally:
        forget_settings()
        connect.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("ALIPAY_PRIVATE_KEY", "no key", ValueError),
        ("ALIPAY_PUBLIC_KEY", "no key", ValueError),
        ("ALIPAY_PUBLIC_KEY", "", SettingMissing),
    ],
)
def test_a_key_that_is_none_is_said_when_it_connects(monkeypatch, name, value, fault):
    monkeypatch.setenv("ALIPAY_APP_ID", APP_ID)
    monkeypatch.setenv("ALIPAY_GATEWAY_URL", "http://127.0.0.1:1/")
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", alipay_sign.public_key_base64(alipay_key()))
    monkeypatch.setenv("ALIPAY_PRIVATE_KEY", alipay_sign.private_key_pem(app_key()).decode())
    monkeypatch.setenv(name, value)
    forget_settings()
    connect.cache_clear()
    try:
        with pytest.raises(fault):
            connect()
    finally:
        forget_settings()
