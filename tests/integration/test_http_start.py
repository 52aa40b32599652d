"""POST /orders/{order_no}/payments on a real database: every status and code."""

import pytest

from functions import start_payment
from lockstep import settings
from lockstep.alipay import gateway
from lockstep.alipay.answers import Done
from tests.support.api import ask
from tests.support.builders import a_sku, an_attempt, an_order
from tests.support.channel import NOTIFY_URL, ScriptedChannel
from tests.support.http_events import post_payment, send


@pytest.fixture
def channel(monkeypatch):
    channel = ScriptedChannel(precreate=Done("https://qr.example.com/1"))
    monkeypatch.setattr(gateway, "connect", channel)
    return channel


@pytest.fixture
def order(database, channel):
    a_sku(database)
    return an_order()


def ends_at(order) -> str:
    return str(order.expires_at.strftime("%Y-%m-%dT%H:%M:%S.000Z"))


@pytest.mark.parametrize("product", ["page", "wap"])
def test_a_page_is_linked_to_and_the_same_again(order, product):
    first = ask(post_payment(order.order_no, {"product": product}))
    assert first.status == 201
    assert first.document == {
        "out_trade_no": order.order_no,
        "pay_url": f"https://pay.example.com/{product}/{order.order_no}",
        "amount": "9.90",
        "expires_at": ends_at(order),
    }
    again = ask(post_payment(order.order_no, {"product": product}))
    assert (again.status, again.document) == (200, first.document)


def test_a_code_is_made_to_be_scanned(order):
    answer = ask(post_payment(order.order_no, {"product": "qr"}))
    assert answer.status == 201
    assert answer.document == {
        "out_trade_no": order.order_no,
        "qr_code": "https://qr.example.com/1",
        "amount": "9.90",
        "expires_at": ends_at(order),
    }


def test_notices_come_below_the_address_that_was_asked(order, channel):
    ask(post_payment(order.order_no))
    assert channel.said[0]["notify_url"] == NOTIFY_URL == "https://api.example.com/alipay/notify"


def test_a_stage_with_a_name_is_part_of_that_address(order, channel):
    event = post_payment(order.order_no)
    event["requestContext"]["stage"] = "prod"
    event["rawPath"] = f"/prod{event['rawPath']}"
    assert send(start_payment.handler, event).status == 201
    assert channel.said[0]["notify_url"] == "https://api.example.com/prod/alipay/notify"


def test_an_address_that_was_given_is_taken_as_it_is(order, channel, monkeypatch):
    monkeypatch.setenv("ALIPAY_NOTIFY_URL", "https://shop.example.com/paid")
    monkeypatch.setenv("ALIPAY_RETURN_URL", "https://shop.example.com/thanks")
    settings.alipay_notify_url.cache_clear()
    settings.alipay_return_url.cache_clear()
    ask(post_payment(order.order_no))
    assert channel.said[0]["notify_url"] == "https://shop.example.com/paid"
    assert channel.said[0]["return_url"] == "https://shop.example.com/thanks"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"product": "cash"}, "BODY_INVALID"),
        ({"product": "PAGE"}, "BODY_INVALID"),
        ({"product": None}, "BODY_INVALID"),
        ({}, "BODY_INVALID"),
        ([], "BODY_INVALID"),
        ({"product": "page", "amount": "0.01"}, "BODY_INVALID"),
        ('{"product":"page","product":"wap"}', "BODY_INVALID"),
        ("product=page", "BODY_UNREADABLE"),
        (b"\xff", "BODY_UNREADABLE"),
        ("", "BODY_UNREADABLE"),
    ],
)
def test_another_body_is_refused_and_leaves_nothing(database, order, body, code):
    answer = ask(post_payment(order.order_no, body))
    assert (answer.status, answer.code) == (422 if code == "BODY_INVALID" else 400, code)
    assert database.count("oms_payment_attempt") == 0


def test_an_order_of_somebody_else_is_not_found(database, order):
    hidden = ask(post_payment(order.order_no, member=7))
    assert (hidden.status, hidden.code) == (404, "ORDER_NOT_FOUND")
    assert hidden.text == ask(post_payment("202610240136005000421234")).text
    assert ask(post_payment("no-number")).code == "ORDER_NOT_FOUND"


def test_a_closing_order_says_in_which_state_it_is(database, order):
    an_attempt(database, order, state="CLOSING")
    answer = ask(post_payment(order.order_no))
    assert (answer.status, answer.code) == (409, "ORDER_NOT_PAYABLE")
    assert answer.document["order_status"] == "PENDING_PAYMENT"


def test_stock_that_is_not_held_and_time_that_is_over_have_their_names(database, order):
    database.execute("UPDATE ims_reservation SET state = 'RELEASED'")
    refused = ask(post_payment(order.order_no))
    assert (refused.status, refused.code) == (409, "STOCK_NOT_HELD")
    database.execute("UPDATE ims_reservation SET state = 'RESERVED'")
    database.execute("UPDATE oms_order SET expires_at = NOW(3)")
    refused = ask(post_payment(order.order_no))
    assert (refused.status, refused.code) == (409, "ORDER_EXPIRED")


def test_a_channel_that_makes_no_code_is_a_reason_to_come_back(order, monkeypatch):
    monkeypatch.setattr(gateway, "connect", ScriptedChannel())
    answer = ask(post_payment(order.order_no, {"product": "qr"}))
    assert (answer.status, answer.code) == (503, "TRY_AGAIN")
    assert int(answer.headers["retry-after"]) >= 1
