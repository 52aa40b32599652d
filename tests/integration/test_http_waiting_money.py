"""Money that waits for a person: it is shown, and goes back when somebody says so."""

from decimal import Decimal
from typing import Any

import pytest

from lockstep import fingerprint
from lockstep.alipay.answers import Refused
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import AskRefund, ask_refund
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried
from tests.support.api import ask
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, deliver_outbox
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.http_events import as_operator, attach, give_back, refund_order, request
from tests.support.notices import payment_state, refunded
from tests.support.reading import SIGNER as ALIPAY
from tests.support.refund_channel import LOSE_THE_ANSWER, RefundChannel, refund_rows


@pytest.fixture
def channel() -> RefundChannel:
    channel = RefundChannel()
    channel.paid()
    return channel


def listed(**query: str) -> Any:
    return ask(request("GET", "/ops/payments", claims=as_operator(), query=query)).document


@pytest.fixture
def failed(database: Database, channel: RefundChannel) -> str:
    """Late money that the channel would not refund; the number of its refund."""
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    assert accept(a_trade_notice(order, trade_no="T1")) is Result.REFUND_PENDING
    channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
    assert channel.work_off(database) == [Tried.FAILED]
    return refund_rows(database)[0][0]


def test_money_that_fits_no_order_goes_back_when_an_operator_says_so(database, channel):
    assert ALIPAY.accept() is Result.UNMATCHED
    assert refund_rows(database) == []
    answer = ask(give_back("T1"))
    assert answer.status == 200
    assert answer.document["payment"]["state"] == "REFUND_PENDING"
    assert answer.document["refund"]["amount"] == "9.90"
    assert answer.document["refund"]["requested_by"] == "operator:alice"
    assert ask(give_back("T1")).document == answer.document
    channel.work_off(database)
    after = ask(give_back("T1")).document
    assert (after["payment"]["state"], after["refund"]["state"]) == ("REFUNDED", "DONE")
    assert len(refund_rows(database)) == 1
    assert sum(channel.executed.values()) == 1
    assert ALIPAY.accept() is Result.REPLAYED
    assert_at_rest(database)


def test_of_unmatched_money_only_what_is_left_goes_back(database, channel):
    ALIPAY.accept()
    channel.console_refund("R-3.00", "3.00")
    ALIPAY.accept(**refunded("3.00"))
    assert ask(give_back("T1")).document["refund"]["amount"] == "6.90"
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert_at_rest(database)


def test_a_refund_that_failed_is_tried_again_with_its_number(database, channel, failed):
    again = ask(give_back("T1")).document
    assert (again["payment"]["state"], again["refund"]["state"]) == ("REFUNDING", "DUE")
    assert again["refund"]["out_request_no"] == failed
    assert ask(give_back("T1")).document == again
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.executed == {failed: 1}
    assert_at_rest(database)


def test_a_refund_of_another_amount_takes_another_number(database, channel, failed):
    channel.console_refund("R-3.00", "3.00")
    database.execute("UPDATE oms_order SET order_no = 'O1'")
    ALIPAY.accept(**refunded("3.00"))
    again = ask(give_back("T1")).document["refund"]
    assert again["amount"] == "6.90"
    assert again["out_request_no"] == fingerprint.of_automatic_refund("alipay", "T1", 1)
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.total() == Decimal("9.90")
    assert_at_rest(database)


@pytest.fixture
def half_known(database: Database, channel: RefundChannel) -> None:
    """Late money of which 4.00 went back in the console untold, so that 9.90 was refused."""
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    assert accept(a_trade_notice(order, trade_no="T1")) is Result.REFUND_PENDING
    channel.console_refund("R9", "4.00")
    assert channel.work_off(database) == [Tried.FAILED]
    assert payment_state(database)[0] == "REFUND_FAILED"


def test_an_operator_who_knows_how_much_is_left_says_so(database, channel, half_known):
    asked = ask(give_back("T1", amount="5.90"))
    assert asked.status == 200
    assert asked.document["payment"]["state"] == "REFUNDING"
    assert asked.document["refund"]["amount"] == "5.90"
    number = asked.document["refund"]["out_request_no"]
    assert number == fingerprint.of_asked_refund("T1", "k1")
    assert ask(give_back("T1", amount="5.90")).document == asked.document
    assert channel.work_off(database) == [Tried.DONE]
    assert payment_state(database)[0] == "REFUNDED"
    assert [row[:3] for row in refund_rows(database)[1:]] == [
        (number, Decimal("5.90"), "DONE"),
        ("X990", Decimal("4.00"), "DONE"),
    ]
    assert channel.total() == Decimal("9.90")
    assert_at_rest(database)


def test_a_part_that_is_asked_for_again_is_the_same_refund_for_ever(database, channel, half_known):
    """Without its key, a request sent again once the first is done would be a second refund."""
    asked = ask(give_back("T1", amount="2.00")).document["refund"]
    channel.faults.append(LOSE_THE_ANSWER)
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUND_FAILED"
    again = ask(give_back("T1", amount="2.00"))
    assert (again.status, again.document["refund"]) == (200, asked | {"state": "DONE"})
    assert payment_state(database)[0] == "REFUND_FAILED"
    assert ask(give_back("T1", amount="3.00")).code == "IDEMPOTENCY_KEY_REUSED"
    assert ask(give_back("T1", amount="2.00", key="")).code == "IDEMPOTENCY_KEY_INVALID"
    assert channel.work_off(database) == []
    assert channel.total() == Decimal("6.00")


def test_a_key_is_never_answered_with_another_keys_refund(database, channel, half_known):
    ask(give_back("T1", amount="2.00"))
    for amount in ("3.00", "999.00"):
        other = ask(give_back("T1", amount=amount, key="k2"))
        assert (other.status, other.code) == (409, "PAYMENT_NOT_WAITING")
    channel.faults.append(LOSE_THE_ANSWER)
    channel.work_off(database)
    assert [row[1] for row in refund_rows(database)[1:]] == [Decimal("2.00")]


def test_a_key_of_a_part_does_not_ask_for_the_rest_as_well(database, channel, half_known):
    ask(give_back("T1", amount="2.00"))
    channel.faults.append(LOSE_THE_ANSWER)
    channel.work_off(database)
    assert ask(give_back("T1")).code == "IDEMPOTENCY_KEY_REUSED"
    assert ask(give_back("T1", key="")).document["refund"]["amount"] == "7.90"


def test_a_number_that_the_channel_told_of_is_not_asked_for_again(database, channel, half_known):
    """As after a restore: the second number of the trade is back already."""
    second, third = (fingerprint.of_automatic_refund("alipay", "T1", n) for n in (1, 2))
    database.execute(
        "INSERT INTO oms_refund (payment_id, out_request_no, amount, state, requested_by, reason) "
        "SELECT id, %s, 4.00, 'DONE', 'alipay', 'told' FROM oms_order_payment",
        (second,),
    )
    database.execute("UPDATE oms_order_payment SET refunded_amount = 4.00")
    assert ask(give_back("T1")).document["refund"]["out_request_no"] == third


def test_what_is_left_after_a_part_waits_for_a_person_again(database, channel, half_known):
    """The channel's answer, which would have told of the rest, was lost."""
    ask(give_back("T1", amount="5.90"))
    channel.faults.append(LOSE_THE_ANSWER)
    assert channel.work_off(database) == [Tried.UNKNOWN, Tried.DONE]
    assert payment_state(database)[0] == "REFUND_FAILED"
    (waits,) = listed()["payments"]
    assert (waits["refunded_amount"], waits["failed_refund"]) == ("5.90", None)
    again = ask(give_back("T1", amount="4.01", key="k2"))
    assert (again.status, again.code) == (409, "REFUND_TOO_LARGE")
    assert again.document["refundable"] == "4.00"


def test_of_unmatched_money_an_operator_may_give_back_a_part(database, channel):
    ALIPAY.accept()
    assert ask(give_back("T1", amount="9.91")).code == "REFUND_TOO_LARGE"
    assert payment_state(database)[0] == "UNMATCHED"
    assert ask(give_back("T1", amount="5.90")).document["payment"]["state"] == "REFUND_PENDING"
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUND_FAILED"
    assert ask(give_back("T1", key="")).document["refund"]["amount"] == "4.00"
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.total() == Decimal("9.90")
    assert_at_rest(database)


@pytest.mark.parametrize("amount", ["0", "0.00", "-1.00", "1.001", 5])
def test_an_amount_that_is_none_is_refused(database, amount):
    ALIPAY.accept()
    answer = ask(give_back("T1", amount=amount))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert refund_rows(database) == []


@pytest.mark.parametrize("reason", ["", " ", "r" * 201])
def test_a_reason_that_is_none_is_refused(database, reason):
    ALIPAY.accept()
    answer = ask(give_back("T1", reason))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert refund_rows(database) == []


def test_it_may_fail_again_and_be_tried_again(database, channel, failed):
    for _ in range(2):
        channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
        assert ask(give_back("T1")).status == 200
        assert channel.work_off(database) == [Tried.FAILED]
        assert payment_state(database)[0] == "REFUND_FAILED"
    ask(give_back("T1"))
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"


def test_money_that_waits_for_nobody_is_left_alone(database):
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order, trade_no="T1"))
    accept(a_trade_notice(order, trade_no="T2"))
    for trade_no, state in (("T1", "APPLIED"), ("T2", "REFUND_PENDING")):
        answer = ask(give_back(trade_no))
        assert (answer.status, answer.code) == (409, "PAYMENT_NOT_WAITING")
        assert answer.document["payment_state"] == state
    assert len(refund_rows(database)) == 1


def test_money_that_paid_its_order_is_not_given_back_whatever_was_refunded(database):
    """Its refunds are the order's, though an operator asked for them too."""
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order, trade_no="T1"))
    ask_refund(AskRefund(order.order_no, "k1", "alice", "broken", Decimal("1.00")))
    answer = ask(give_back("T1"))
    assert (answer.status, answer.code) == (409, "PAYMENT_NOT_WAITING")
    assert answer.document["payment_state"] == "APPLIED"


@pytest.mark.parametrize("trade_no", ["T9", "T 1", "T" * 65])
def test_a_payment_that_is_not_there(database, trade_no):
    assert ask(give_back(trade_no)).code == "PAYMENT_NOT_FOUND"


def test_what_waits_is_listed_newest_first(database, channel, failed):
    order = an_order()
    accept(a_trade_notice(order, trade_no="T2"))
    deliver_outbox(database)
    ask(refund_order(order.order_no))
    channel.work_off(database)  # T2 is not known there
    accept(a_trade_notice(trade_no="T3"))
    accept(a_trade_notice(an_order(), trade_no="T4"))
    page = listed()
    assert page["next_cursor"] is None
    assert [(p["trade_no"], p["state"]) for p in page["payments"]] == [
        ("T3", "UNMATCHED"),
        ("T2", "APPLIED"),
        ("T1", "REFUND_FAILED"),
    ]
    newest, applied, oldest = page["payments"]
    assert (newest["order_no"], newest["failed_refund"]) == (None, None)
    assert applied["order_no"] == order.order_no
    assert applied["failed_refund"]["code"] == "ACQ.TRADE_NOT_EXIST"
    assert oldest["failed_refund"] == {
        "out_request_no": failed,
        "amount": "9.90",
        "code": "ACQ.TRADE_NOT_ALLOW_REFUND",
    }
    assert [p["trade_no"] for p in listed(state="UNMATCHED")["payments"]] == ["T3"]
    first = listed(limit="2")
    assert [p["trade_no"] for p in first["payments"]] == ["T3", "T2"]
    rest = listed(limit="2", cursor=first["next_cursor"])
    assert [p["trade_no"] for p in rest["payments"]] == ["T1"]
    assert rest["next_cursor"] is None


def test_a_refund_that_was_asked_for_anew_waits_no_more(database, channel):
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order, trade_no="T1"))
    channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
    ask(refund_order(order.order_no, key="a"))
    channel.work_off(database)
    assert len(listed()["payments"]) == 1
    ask(refund_order(order.order_no, key="b"))
    assert listed()["payments"] == []


def test_a_state_in_which_nothing_waits_is_refused(database):
    answer = ask(request("GET", "/ops/payments", claims=as_operator(), query={"state": "REFUNDED"}))
    assert (answer.status, answer.code) == (422, "QUERY_INVALID")


def test_an_order_that_takes_none_is_told_as_the_document_says(database):
    """Found by the model, in place 42 a 2001:2; cancel 42 1; pay nobody0 9.90; attach t1 1."""
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    assert ALIPAY.accept(out_trade_no="nobody", total_amount="9.91") is Result.UNMATCHED
    answer = ask(attach("T1", order.order_no))
    assert (answer.status, answer.code) == (409, "ORDER_TAKES_NONE")
    told = (answer.document["order_status"], answer.document["payment_reason"])
    assert told == ("CLOSED", "AMOUNT_MISMATCH")
