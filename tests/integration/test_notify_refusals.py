"""What is no notice for us gets `failure`: no exception, no row, and at once."""

import base64
import time
from urllib.parse import parse_qsl, urlencode

import pytest

from functions import alipay_notify
from lockstep import settings
from tests.support.builders import a_sku
from tests.support.notices import (
    FAILURE,
    SUCCESS,
    NoticeSigner,
    answer,
    http_event,
    refunded,
    the_order,
)
from tests.support.reading import SIGNER as ALIPAY
from tests.support.reading import full_width

NUMBERS_THAT_ARE_NO_AMOUNT = [
    *("NaN", "Infinity", "-Infinity", "1e1", "9.9E0", "0x9", "1_0.00"),
    *("-9.90", "-0", "+9.90", "9.900", "10.000", "9.", ".90", "9,90", "1,009.90"),
    *(" 9.90", "9.90 ", " 9.90\n", "9.90\x00", "9 .90", full_width("9.90"), "٩.٩٠"),
    *("1234567890", "9" * 400, "9.90&total_amount=9.90", "nine"),
]


@pytest.fixture(autouse=True)
def order_id(database, monkeypatch) -> int:
    """Order O1 of 9.90, one of SKU 1001 held; Alipay's key, app and payee configured."""
    ALIPAY.configure(monkeypatch)
    a_sku(database)
    return the_order(database)


@pytest.fixture
def refused(database):
    """Send an event: it must be answered `failure` in no time, and leave nothing."""
    tables = ("oms_notice", "oms_order_payment", "oms_order", "oms_order_event", "outbox")
    before = database.dump(tables)

    def send(event: dict[str, object]) -> None:
        begun = time.monotonic()
        assert answer(event) == FAILURE
        assert time.monotonic() - begun < 5
        assert database.dump(tables) == before

    return send


# --- no form, or no whole one --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "is_base64"),
    [
        (None, False),
        (None, True),
        ("", False),
        ("", True),
        ("total_amount", False),
        ('{"trade_no":"T1"}', False),
        ("=" * 5, True),
        ("not base64!", True),
        ("dHJhZGVfbm89VDE", True),
        ("subject=\u6d4b", False),
        ("\u6d4b", True),
        ("sign=\udc80", False),
    ],
)
def test_a_body_that_is_no_form_is_refused(refused, body, is_base64):
    refused(http_event(b"") | {"body": body, "isBase64Encoded": is_base64})


def test_an_event_without_a_body_is_refused(refused):
    refused({})


def test_a_form_flagged_wrongly_is_refused(refused):
    body = ALIPAY.body()
    refused(http_event(body) | {"isBase64Encoded": False})
    refused(http_event(body, is_base64=False) | {"isBase64Encoded": True})


def test_a_form_in_raw_bytes_is_refused(refused):
    body = ALIPAY.body().replace(b"Order", "测试".encode())
    refused(http_event(b"") | {"body": base64.b64encode(body).decode(), "isBase64Encoded": True})


@pytest.mark.parametrize("is_base64", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"body": "x" * 64 * 1024},
        {"body": "x" * 1024 * 1024},
        {f"p{n}": "" for n in range(2000)},
        {f"p{n}": "x" for n in range(101)},
    ],
)
def test_a_form_beyond_every_genuine_one_is_refused_though_signed(refused, changes, is_base64):
    refused(http_event(ALIPAY.body(**changes), is_base64=is_base64))


# --- the signature -------------------------------------------------------------------------------


def resent(**changes: str | None) -> bytes:
    """The base payment with changes after it was signed."""
    params = dict(parse_qsl(ALIPAY.body().decode(), keep_blank_values=True)) | changes
    return urlencode({name: value for name, value in params.items() if value is not None}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"sign": None},
        {"sign": ""},
        {"sign": "abc"},
        {"sign": "===="},
        {"sign": "A" * 344},
        {"sign": "测试"},
        {"sign_type": "RSA"},
        {"sign_type": "rsa2"},
        {"sign_type": ""},
        {"sign_type": "MD5"},
        {"total_amount": "0.01"},
        {"total_amount": "9.9"},
        {"out_trade_no": "O2"},
        {"subject": "Order O1 "},
        {"an_unsigned_parameter": ""},
        {"gmt_payment": None},
        {"fund_bill_list": "[{&quot;amount&quot;:&quot;9.90&quot;}]"},
    ],
)
def test_what_was_not_signed_as_it_stands_is_refused(refused, changes):
    refused(http_event(resent(**changes)))


def test_a_signature_whose_plus_signs_were_lost_is_refused(refused):
    for n in range(50):
        body = ALIPAY.body(notify_id=f"N{n}")
        if b"%2B" in body:
            refused(http_event(body.replace(b"%2B", b"+")))
            return
    pytest.fail("a signature without a plus sign, fifty times")


def test_a_signature_of_another_key_is_refused(refused):
    refused(http_event(NoticeSigner().body()))


def test_any_byte_that_is_changed_is_refused(database):
    """But one: the last character of base64 holds four bits that stand for nothing."""
    body = ALIPAY.body()
    idle = body.index(b"%3D%3D", body.index(b"sign=")) - 1
    for position in range(len(body)):
        changed = bytearray(body)
        changed[position] ^= 1
        if position != idle:
            answered = answer(http_event(bytes(changed)))
            assert answered == FAILURE, changed[max(position - 20, 0) : position + 20]
    assert database.count("oms_notice") == 0
    assert answer(http_event(body)) == SUCCESS


@pytest.mark.parametrize("name", ["total_amount", "trade_no", "sign", "subject"])
def test_a_parameter_given_twice_is_refused(refused, name):
    body = ALIPAY.body()
    pairs = parse_qsl(body.decode())
    again = urlencode([(name, dict(pairs)[name])]).encode()
    refused(http_event(body + b"&" + again))
    refused(http_event(again + b"&" + body))


def test_a_parameter_hidden_in_another_is_refused_though_signed(refused):
    refused(http_event(ALIPAY.body(subject="x&refund_fee=9.90")))
    refused(http_event(ALIPAY.body(body="x&total_amount=0.01")))
    refused(http_event(ALIPAY.body(trade_no="T1&out_trade_no=O1", out_trade_no=None)))


# --- not for us ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"app_id": "2021000100000002"},
        {"app_id": ""},
        {"app_id": None},
        {"seller_id": "2088000000000002"},
        {"seller_id": "2088000000000001 "},
    ],
)
def test_a_notice_for_another_app_or_payee_is_refused(refused, changes):
    refused(http_event(ALIPAY.body(**changes)))


def test_a_notice_without_a_payee_is_refused_where_there_are_two(refused, monkeypatch):
    monkeypatch.setenv("ALIPAY_SELLER_IDS", f"{ALIPAY.seller_id},2088000000000002")
    settings.alipay.cache_clear()
    refused(http_event(ALIPAY.body(seller_id=None)))
    assert ALIPAY.notify() == SUCCESS


# --- signed, but no notice that can be acted on --------------------------------------------------


@pytest.mark.parametrize("amount", [*NUMBERS_THAT_ARE_NO_AMOUNT, "", None, "0", "0.00"])
def test_a_total_that_is_no_amount_above_nothing_is_refused(refused, amount):
    refused(http_event(ALIPAY.body(total_amount=amount)))


@pytest.mark.parametrize("fee", NUMBERS_THAT_ARE_NO_AMOUNT)
def test_a_refund_that_is_no_amount_is_refused(refused, fee):
    refused(http_event(ALIPAY.body(**(refunded("3.00") | {"refund_fee": fee}))))


IDS_THAT_ARE_NONE = [
    None,
    "",
    " ",
    "T 1",
    "T1\x00",
    "T1\n",
    "测试",
    full_width("T1"),
    "x" * 65,
    "é",
]


@pytest.mark.parametrize(
    "trade_no", [*IDS_THAT_ARE_NONE, "T1'--", "x" * 129, "T.1", full_width("1")]
)
def test_a_trade_number_that_is_none_is_refused(refused, trade_no):
    refused(http_event(ALIPAY.body(trade_no=trade_no)))


@pytest.mark.parametrize("out_trade_no", IDS_THAT_ARE_NONE)
def test_an_order_number_that_is_none_is_refused(refused, out_trade_no):
    refused(http_event(ALIPAY.body(out_trade_no=out_trade_no)))


@pytest.mark.parametrize("charset", ["utf-7", "idna", "unicode_escape", "utf_8", "latin-1", "x"])
def test_a_charset_that_alipay_does_not_use_is_refused(refused, charset):
    refused(http_event(ALIPAY.body(charset=charset)))


# --- ours to mend --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "not a key", "MIIB"])
def test_a_key_that_is_none_is_answered_failure(refused, monkeypatch, key):
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", key)
    settings.alipay.cache_clear()
    alipay_notify._alipay_keys.cache_clear()
    refused(http_event(ALIPAY.body()))
