"""The notify function, from the HTTP API's event to its answer and the rows behind it."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from threading import Barrier

import pytest

from functions import alipay_notify
from infra.local import alipay_sign
from lockstep.db import connection
from lockstep.payments import accept as accept_module
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import cancel
from tests.support.database import forget_settings
from tests.support.notices import (
    CONTENT_TYPE,
    FAILURE,
    SUCCESS,
    NoticeSigner,
    an_attempt,
    answer,
    books,
    closed_unpaid,
    finished,
    http_event,
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    refunded,
    refunded_in_full,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

PAID = ("PAID", None, Decimal("9.90"), Decimal("0.00"))
OPEN = ("PENDING_PAYMENT", None, Decimal("0.00"), Decimal("0.00"))


@pytest.fixture(autouse=True)
def order_id(database, monkeypatch) -> int:
    """Order O1 of 9.90, one of SKU 1001 held; Alipay's key, app and payee configured."""
    ALIPAY.configure(monkeypatch)
    a_sku(database)
    return the_order(database)


def test_either_of_two_keys_may_have_signed_while_alipays_is_changed(database, monkeypatch):
    changed = NoticeSigner(app_id=ALIPAY.app_id, seller_id=ALIPAY.seller_id)
    assert changed.notify(notify_id="N0") == FAILURE
    keys = map(alipay_sign.public_key_base64, (changed.key, ALIPAY.key))
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", ",".join(keys))
    forget_settings()
    alipay_notify._alipay_keys.cache_clear()
    assert changed.notify(notify_id="N1") == SUCCESS
    assert ALIPAY.notify(notify_id="N2") == SUCCESS
    assert NoticeSigner().notify(notify_id="N3") == FAILURE
    assert [notify_id for notify_id, _, _ in notice_rows(database)] == ["N1", "N2"]


# --- the answer, and how the body arrives --------------------------------------------------------


@pytest.mark.parametrize("is_base64", [True, False])
def test_a_payment_is_answered_with_the_seven_bytes_and_nothing_else(database, is_base64):
    answered = answer(http_event(ALIPAY.body(), is_base64=is_base64))
    assert answered == {
        "statusCode": 200,
        "headers": {"content-type": "text/plain; charset=utf-8"},
        "isBase64Encoded": False,
        "body": "success",
    }
    assert answered["body"].encode() == b"success"
    assert order_row(database) == PAID


@pytest.mark.parametrize(
    "content_type",
    [
        CONTENT_TYPE,
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded; charset=GBK",
        "application/json",
        "",
    ],
)
def test_the_media_type_is_not_asked(database, content_type):
    assert answer(http_event(ALIPAY.body(), content_type=content_type)) == SUCCESS
    assert order_row(database) == PAID


def test_the_address_adds_nothing_to_the_notice(database):
    query = "s=/pay&total_amount=0.01&sign=x"
    assert answer(http_event(ALIPAY.body(), query=query)) == SUCCESS
    assert order_row(database) == PAID


@pytest.mark.parametrize("charset", ["GBK", "gb2312", "gb18030", "utf-8", "UTF-8"])
def test_the_charset_that_was_signed_is_the_one_that_counts(database, charset):
    params = ALIPAY.base(charset=charset, subject="测试 订单")
    assert answer(http_event(ALIPAY.encode(params, charset))) == SUCCESS
    assert order_row(database) == PAID


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "foobar ", "body": ""},
        {"subject": "1 + 1 = 2 & 50% off"},
        {"subject": "100%"},
        {"body": "%20 + 测试 9.90元"},
        {"passback_params": "%7B%22id%22%3A1%7D"},
        {"buyer_logon_id": "12***@example.com", "buyer_name": "0.01元"},
        {"fund_bill_list": '[{"amount":"0.01","fundChannel":"PCREDIT"}]'},
        {"seller_id": None},
        {"a_new_parameter": "x", "alipay_cert_sn": "0" * 32},
        {"total_amount": "9.9"},
        {"total_amount": "00009.90"},
    ],
)
def test_what_was_signed_as_it_stands_is_accepted(database, changes):
    assert ALIPAY.notify(**changes) == SUCCESS
    assert order_row(database) == PAID
    assert payment_row(database)["amount"] == Decimal("9.90")


def test_a_notice_without_sign_type_is_taken_as_the_required_one(database):
    body = ALIPAY.encode(ALIPAY.base(), mangle=(b"&sign_type=RSA2", b""))
    assert answer(http_event(body)) == SUCCESS
    assert order_row(database) == PAID


@pytest.fixture
def zone(request) -> Iterator[None]:
    """The process's time zone."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Shanghai"], indirect=True)
@pytest.mark.usefixtures("zone")
def test_times_are_beijing_times_wherever_the_function_runs(database):
    ALIPAY.notify()
    at = datetime(2026, 10, 24, 2, 0, 5)  # noqa: DTZ001 - as it is stored
    assert payment_row(database)["gateway_paid_at"] == at


# --- what comes of it ----------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["N1", "N2"])
def test_two_deliveries_at_once_are_one_payment(database, order_id, monkeypatch, second):
    monkeypatch.setattr(accept_module, "WITHIN_SECONDS", 10)  # a busy machine proves nothing here
    both_ready = Barrier(2)

    def deliver(notify_id: str) -> dict[str, object]:
        event = http_event(ALIPAY.body(notify_id=notify_id))
        try:
            both_ready.wait(timeout=10)
            return answer(event)
        finally:
            connection.discard()

    with ThreadPoolExecutor(2) as alipay:
        assert list(alipay.map(deliver, ["N1", second])) == [SUCCESS, SUCCESS]
    assert order_row(database) == PAID
    assert len(trail(database, order_id)) == 1
    assert database.count("oms_order_payment") == 1
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_a_payment_that_is_finished_later_is_one_payment(database, order_id):
    assert [ALIPAY.notify(), ALIPAY.notify(**finished()), ALIPAY.notify()] == [SUCCESS] * 3
    assert database.count("oms_order_payment") == 1
    assert order_row(database) == PAID
    assert len(trail(database, order_id)) == 1
    assert_at_rest(database)


def test_a_finish_after_a_full_refund_pays_nothing(database):
    sent = [{}, refunded_in_full(), finished()]
    assert [ALIPAY.notify(**changes) for changes in sent] == [SUCCESS] * 3
    assert order_row(database)[0] == "REFUNDED"


def test_refunds_come_to_the_same_address(database):
    assert [ALIPAY.notify(), ALIPAY.notify(**refunded("3.00"))] == [SUCCESS] * 2
    assert order_row(database) == ("PAID", None, Decimal("9.90"), Decimal("3.00"))
    deliver_outbox(database)
    assert ALIPAY.notify(**refunded_in_full()) == SUCCESS
    assert order_row(database)[0] == "REFUNDED"
    assert database.stock(1001) == (9, 0)
    assert_at_rest(database)


def test_a_refund_that_comes_first_is_acknowledged_and_pays_nothing(database):
    assert ALIPAY.notify(**refunded("3.00")) == SUCCESS
    assert order_row(database) == OPEN
    assert database.count("oms_order_payment") == 0
    assert notice_rows(database)[0][1] == "QUERY_DUE"


def test_an_unpaid_close_is_told_from_a_full_refund(database):
    assert ALIPAY.notify(**closed_unpaid()) == SUCCESS
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")
    assert_at_rest(database)


def test_money_after_a_cancel_is_acknowledged_and_goes_back(database):
    cancel(42, "O1")
    assert ALIPAY.notify() == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database)[:2] == ("CLOSED", "CANCELLED")
    assert_at_rest(database)


@pytest.mark.parametrize("amount", ["0.01", "20.00"])
def test_a_wrong_amount_is_acknowledged_and_goes_back(database, amount):
    assert ALIPAY.notify(total_amount=amount) == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert order_row(database) == OPEN


def test_money_for_another_order_than_its_sum_says_pays_neither(database):
    the_order(database, "O2", {1001: 2})
    assert ALIPAY.notify(out_trade_no="O2") == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert (order_row(database), order_row(database, "O2")) == (OPEN, OPEN)


def test_pages_paid_three_times_are_all_acknowledged(database, order_id):
    for number in ("O1", "O1_2", "O1_3"):
        an_attempt(database, order_id, number)
    for n, number in enumerate(("O1", "O1_2", "O1_3")):
        answered = ALIPAY.notify(notify_id=f"N{n}", trade_no=f"T{n}", out_trade_no=number)
        assert answered == SUCCESS
    states = database.rows("SELECT state FROM oms_order_payment ORDER BY id")
    assert [row["state"] for row in states] == ["APPLIED", "REFUND_PENDING", "REFUND_PENDING"]
    assert_at_rest(database)


@pytest.mark.parametrize("status", ["WAIT_BUYER_PAY", "TRADE_UNHEARD_OF"])
def test_statuses_that_move_nothing_are_kept_and_acknowledged(database, status):
    assert ALIPAY.notify(trade_status=status) == SUCCESS
    assert notice_rows(database) == [("N1", "DONE", None)]
    assert order_row(database) == OPEN


def test_money_for_an_unknown_order_is_kept_and_asked_for_again(database):
    for _ in range(2):
        assert ALIPAY.notify(out_trade_no="O3") == FAILURE
    assert payment_state(database) == ("UNMATCHED", None)
    assert notice_rows(database) == [("N1", "UNMATCHED", "NO_SUCH_ORDER")]
    the_order(database, "O3")
    assert ALIPAY.notify(out_trade_no="O3") == SUCCESS
    assert order_row(database, "O3") == PAID


def test_a_trade_bound_otherwise_is_kept_and_asked_for_again(database):
    ALIPAY.notify()
    assert ALIPAY.notify(notify_id="N2", total_amount="9.91") == FAILURE
    assert notice_rows(database)[1] == ("N2", "CONFLICT", "TRADE_BOUND_OTHERWISE")
    assert order_row(database) == PAID


def test_every_way_to_be_paid_writes_the_same_trail(database, order_id):
    ALIPAY.notify()
    expected = books(database)["events"]
    for way in ("repeated", "by an attempt", "unmatched first", "after a wrong amount"):
        database.empty()
        a_sku(database)
        if way == "unmatched first":
            ALIPAY.notify()
        order_id = the_order(database)
        if way == "by an attempt":
            an_attempt(database, order_id, "O1")
        if way == "after a wrong amount":
            ALIPAY.notify(trade_no="T2", total_amount="0.01")
        assert ALIPAY.notify() == SUCCESS
        if way == "repeated":
            ALIPAY.notify()
        assert books(database)["events"] == expected, way
        refund = {"refund"} if way == "after a wrong amount" else set()
        assert set(staged(database)) == {"confirm"} | refund
        assert_at_rest(database)
