"""The cashier's pages and the control routes, over HTTP, without a browser."""

import json
import re
import urllib.error
import urllib.request
from datetime import timedelta
from decimal import Decimal
from urllib.parse import quote, urlencode

import pytest

from infra.local.alipay_gateway.cashier_words import CHINESE, ENGLISH
from infra.local.alipay_gateway.shapes import Request
from tests.support.local_alipay import FakeClock, local_alipay

HOSTILE = "<script>alert(1)</script>\" '&"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def alipay(clock):
    with local_alipay(clock=clock) as alipay:
        yield alipay


def ask(alipay, clock, number="O1", subject="Two pens", **more):
    alipay.service.books.ask(
        Request(
            out_trade_no=number,
            amount=Decimal("9.90"),
            subject=subject,
            product="alipay.trade.page.pay",
            expires_at=clock() + timedelta(minutes=30),
            **more,
        )
    )


def exchange(url, body=None, method=None, **headers):
    """(status, text), redirects followed."""
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        reply = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as other:
        reply = other
    with reply:
        return reply.status, reply.read().decode()


def page(alipay, number="O1", lang="en", **headers):
    url = f"{alipay.service.cashier_url}/{quote(number, safe='')}"
    return exchange(f"{url}?lang={lang}" if lang else url, **headers)


def press(alipay, action, number="O1", lang="en", **fields):
    url = f"{alipay.service.cashier_url}/{quote(number, safe='')}?lang={lang}"
    return exchange(url, urlencode({"action": action, **fields}).encode())


def control(alipay, path, document=None, method=None):
    body = None if document is None else json.dumps(document).encode()
    status, text = exchange(f"{alipay.service.control_url}{path}", body, method)
    return status, json.loads(text)


def amounts(alipay, number="O1"):
    trades = alipay.service.books.trades(number)
    return [str(trade.amount) for trade in trades if trade.paid_at is not None]


# --- the cashier ---------------------------------------------------------------------------------


def test_a_buyer_sees_what_is_to_be_paid_and_pays(alipay, clock):
    ask(alipay, clock)
    status, text = page(alipay)
    assert status == 200
    for shown in ("¥9.90", "Two pens", "O1", "30:00", "waits for payment"):
        assert shown in text
    status, text = press(alipay, "pay")
    assert (status, amounts(alipay)) == (200, ["9.90"])
    assert 'role="status">paid<' in text
    assert 'id="pay"' not in text


def test_the_list_leads_to_each_order(alipay, clock):
    assert ENGLISH["none"] in page(alipay, "")[1]
    ask(alipay, clock, "O1")
    ask(alipay, clock, "O2")
    text = page(alipay, "")[1]
    assert re.findall(r'href="(/cashier/O\d)', text) == ["/cashier/O2", "/cashier/O1"]


def test_it_speaks_the_readers_language(alipay, clock):
    ask(alipay, clock)
    accepted = {"Accept-Language": "zh-CN,zh;q=0.9"}
    text = page(alipay, lang=None, **accepted)[1]
    assert CHINESE["pay"] in text
    assert 'lang="zh"' in text
    assert ENGLISH["tools"] in page(alipay, **accepted)[1], "asked for, it wins"
    assert ENGLISH["tools"] in page(alipay, lang="fr")[1]
    assert CHINESE.keys() == ENGLISH.keys()


@pytest.mark.parametrize("number", ["O1", "a/b", HOSTILE])
def test_what_others_chose_is_only_shown(alipay, clock, number):
    ask(alipay, clock, number, HOSTILE)
    for text in (page(alipay, number)[1], press(alipay, "pay", number)[1], page(alipay, "")[1]):
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot; &#x27;&amp;" in text
    assert amounts(alipay, number) == ["9.90"]


def test_nothing_comes_from_elsewhere(alipay, clock):
    ask(alipay, clock)
    assert re.findall(r"https?://|//[a-z]", page(alipay)[1]) == []


def test_pressed_twice_it_is_paid_once(alipay, clock):
    ask(alipay, clock)
    press(alipay, "pay")
    status, text = press(alipay, "pay")
    assert (status, amounts(alipay)) == (409, ["9.90"])
    assert "ACQ.TRADE_HAS_SUCCESS" in text


def test_after_its_time_alipay_lets_nobody_pay_but_money_can_come(alipay, clock):
    ask(alipay, clock)
    assert 'id="late"' not in page(alipay)[1]
    clock.go(minutes=30)
    text = page(alipay)[1]
    assert 'id="pay"' not in text
    assert 'role="status">closed<' in text
    assert press(alipay, "pay")[0] == 409
    assert press(alipay, "late")[0] == 200
    assert amounts(alipay) == ["9.90"]


def test_never_opened_in_its_time_it_can_be_paid_late_too(alipay, clock):
    ask(alipay, clock)
    clock.go(minutes=30)
    assert press(alipay, "pay")[0] == 409
    assert 'id="late"' in page(alipay)[1]
    assert press(alipay, "late")[0] == 200
    assert amounts(alipay) == ["9.90"]


def test_two_tabs_pay_twice(alipay, clock):
    ask(alipay, clock)
    page(alipay)
    text = press(alipay, "twice")[1]
    trades = alipay.service.books.trades("O1")
    assert [trade.status for trade in trades] == ["TRADE_SUCCESS"] * 2
    assert all(trade.trade_no in text for trade in trades)
    press(alipay, "twice")
    assert amounts(alipay) == ["9.90"] * 3, "once paid, one more is twice"


def test_another_sum_can_be_paid(alipay, clock):
    ask(alipay, clock)
    page(alipay)
    assert press(alipay, "wrong", amount=" 0.01 ")[0] == 200
    assert amounts(alipay) == ["0.01"]
    status, text = press(alipay, "wrong", amount="a lot")
    assert status == 400
    assert ENGLISH["invalid"] in text


@pytest.mark.parametrize("action", ["pay", "twice", "late", "wrong", "explode", ""])
def test_an_unknown_order_is_no_order(alipay, action):
    assert page(alipay, "O9")[0] == 404
    assert press(alipay, action, "O9", amount="1.00")[0] == 404
    assert amounts(alipay, "O9") == []


def test_what_went_back_is_shown(alipay, clock):
    trade = alipay.pay("O1", "9.90")
    alipay.service.books.refund(trade, Decimal("9.90"), "R1")
    assert ENGLISH["refunded"] in page(alipay)[1]


# --- control -------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", ["9.90", 9.9, 3])
def test_anything_can_be_paid(alipay, amount):
    status, paid = control(alipay, "/pay", {"out_trade_no": "O-unknown", "amount": amount})
    assert status == 200
    [trade] = control(alipay, "/trades?out_trade_no=O-unknown")[1]["trades"]
    assert trade["trade_no"] == paid["trade_no"]
    assert Decimal(trade["amount"]) == Decimal(str(amount))
    assert trade["status"] == "TRADE_SUCCESS"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"out_trade_no": "O1"}, "AMOUNT_INVALID"),
        ({"out_trade_no": "O1", "amount": "0"}, "AMOUNT_INVALID"),
        ({"out_trade_no": "O1", "amount": "1.001"}, "AMOUNT_INVALID"),
        ({"out_trade_no": "O1", "amount": True}, "AMOUNT_INVALID"),
        ({"out_trade_no": "", "amount": "1"}, "OUT_TRADE_NO_INVALID"),
        ({"out_trade_no": 7, "amount": "1"}, "OUT_TRADE_NO_INVALID"),
        ({"out_trade_no": "a\nb", "amount": "1"}, "OUT_TRADE_NO_INVALID"),
        ({"amount": "1"}, "OUT_TRADE_NO_INVALID"),
        ([], "BODY_INVALID"),
    ],
)
def test_what_makes_no_sense_is_named(alipay, document, code):
    assert control(alipay, "/pay", document) == (400, {"code": code})


def test_what_cannot_be_read_is_named(alipay):
    status, text = exchange(f"{alipay.service.control_url}/pay", b"{")
    assert (status, json.loads(text)) == (400, {"code": "BODY_UNREADABLE"})
    assert control(alipay, "/elsewhere") == (404, {"code": "ROUTE_NOT_FOUND"})


def test_the_merchants_console_refunds(alipay):
    trade = alipay.pay("O1", "9.90")
    asked = {"trade_no": trade.trade_no, "amount": "3.00"}
    status, made = control(alipay, "/refund", asked)
    assert status == 200
    [refund] = control(alipay, "/refunds")[1]["refunds"]
    assert refund["out_request_no"] == made["out_request_no"]
    assert (refund["out_trade_no"], refund["amount"]) == ("O1", "3.00")
    too_much = control(alipay, "/refund", asked | {"amount": "9.00"})
    assert too_much == (409, {"code": "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL"})
    assert control(alipay, "/refund", asked | {"trade_no": "T9"})[0] == 409


def test_a_trade_is_finished_or_closed_by_alipay_itself(alipay, clock):
    paid = alipay.pay("O1", "9.90")
    status, trade = control(alipay, "/finish", {"trade_no": paid.trade_no})
    assert (status, trade["status"]) == (200, "TRADE_FINISHED")
    ask(alipay, clock, "O2")
    page(alipay, "O2")
    status, trade = control(alipay, "/close", {"out_trade_no": "O2"})
    assert (status, trade["status"]) == (200, "TRADE_CLOSED")


def test_the_balance_is_set_and_taken_away(alipay, clock):
    trade = alipay.pay("O1", "9.90")
    asked = {"trade_no": trade.trade_no, "amount": "1.00"}
    assert control(alipay, "/balance", {"amount": "0"})[0] == 200
    assert control(alipay, "/refund", asked) == (409, {"code": "ACQ.SELLER_BALANCE_NOT_ENOUGH"})
    assert control(alipay, "/balance", {"amount": None})[0] == 200
    assert control(alipay, "/refund", asked)[0] == 200
    assert control(alipay, "/balance", {"amount": "-1"}) == (400, {"code": "AMOUNT_INVALID"})


def test_faults_are_set_shown_and_cleared(alipay):
    rule = {"method": "alipay.trade.refund", "action": "delay", "seconds": 2, "count": 3}
    assert control(alipay, "/faults", rule) == (200, {"id": 1})
    [shown] = control(alipay, "/faults")[1]["rules"]
    assert shown == rule | {"id": 1, "out_trade_no": None}
    rates = {"notice": {"never": 0.5}}
    assert control(alipay, "/faults", {"seed": 7, "rates": rates}) == (200, {"seed": 7})
    # JSON's decimals are kept as they are written: as rates they must count all the same.
    assert control(alipay, "/pay", {"out_trade_no": "O9", "amount": 9.90})[0] == 200
    assert control(alipay, "/faults", method="DELETE") == (200, {})
    assert control(alipay, "/faults")[1]["rules"] == []
    assert control(alipay, "/faults/release", {}) == (200, {"released": 0})


@pytest.mark.parametrize(
    "document",
    [
        {"method": "alipay.trade.query", "action": "explode"},
        {"method": "alipay.trade.query", "action": "delay", "seconds": "long"},
        {"seed": 7},
        {"seed": 7, "rates": {"notice": "always"}},
        {"seed": "x", "rates": {}},
    ],
)
def test_a_fault_that_makes_no_sense_is_named(alipay, document):
    assert control(alipay, "/faults", document) == (400, {"code": "FAULT_INVALID"})


def test_the_seller_says_where_it_is_and_how_much_is_on_its_way(alipay):
    alipay.faults.add("notice", "hold")
    alipay.pay("O1", "9.90")
    assert control(alipay, "/notices") == (200, {"waiting": 1})
    url = "http://127.0.0.1:9/alipay/notify"
    assert control(alipay, "/merchant", {"notify_url": url}) == (200, {})
    assert control(alipay, "/bills", {"ready": "today"}) == (200, {})
    assert alipay.service.bills.is_today_ready
