"""cancel() of an order with a payment page: the channel is asked, and its word decides."""

from decimal import Decimal

import pytest

from lockstep.alipay import gateway
from lockstep.alipay.answers import Done, NotExecuted, Refused, TradeStatus
from lockstep.orders.model import CancelRequested, Closed, NotCancellable, OrderStatus
from lockstep.payments import cancel as cancelling
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.support.api import ask
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_attempt,
    an_order,
    assert_at_rest,
    deliver_outbox,
)
from tests.support.channel import (
    LOST,
    NOT_EXIST,
    NOT_WAITING,
    ScriptedChannel,
    a_trade,
    cancel,
    closed,
    paid,
    start,
    sweep,
    unpaid,
    waiting,
)
from tests.support.database import Database
from tests.support.http_events import cancel_order
from tests.support.pages import age, state, trail

TTL = 1800


@pytest.fixture
def order(database):
    """Of one SKU, with a payment page that is open."""
    a_sku(database)
    order = an_order()
    start(order.order_no)
    return order


def minute_passes(database: Database) -> None:
    database.execute("UPDATE oms_payment_attempt SET next_ask_at = next_ask_at - INTERVAL 1 MINUTE")


# --- unpaid --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "close"),
    [
        (waiting, Done(None)),
        (NOT_EXIST, Done(None)),  # scanned in between
        (closed, LOST),  # the channel was first: nobody has to close it
    ],
)
def test_what_the_channel_says_is_unpaid_is_closed_at_once_in_the_members_name(
    database, order, query, close
):
    assert cancel(42, order.order_no, ScriptedChannel(query=query, close=close)) == Closed(
        order.id, repeated=False
    )
    assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", False)
    assert trail(database) == [("CLOSED", "member:42", "CANCELLED")]
    assert_at_rest(database)
    assert database.stock(1001) == (10, 0)


@pytest.fixture
def given_up(database, order):
    """Cancelled while nobody had scanned its page: the link can be paid until its time is over."""
    channel = ScriptedChannel(query=NOT_EXIST, close=NOT_EXIST)
    assert cancel(42, order.order_no, channel) == Closed(order.id, repeated=False)
    assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", True)
    assert sweep(lambda: True, channel).asked == 0
    return order


def test_money_by_the_link_of_a_cancelled_order_that_no_notice_told_is_found_and_goes_back(
    database, given_up
):
    age(database, TTL + 60)
    assert sweep(lambda: True, ScriptedChannel(query=paid)).asked == 1
    payment = database.one("SELECT order_id, state, reason, amount FROM oms_order_payment")
    assert tuple(payment.values()) == (
        given_up.id,
        "REFUND_PENDING",
        "LATE_PAYMENT",
        Decimal("9.90"),
    )
    assert database.count("oms_refund", state="DUE") == 1
    assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", False)
    assert sweep(lambda: True, ScriptedChannel(query=paid)).asked == 0
    assert_at_rest(database)


@pytest.mark.parametrize(
    ("query", "close"),
    [(NOT_EXIST, NOT_EXIST), (waiting, Done(None)), (closed, LOST)],
)
def test_a_link_that_nobody_paid_to_the_end_is_asked_about_once_more_and_no_more(
    database, given_up, query, close
):
    age(database, TTL + 60)
    channel = ScriptedChannel(query=query, close=close)
    assert sweep(lambda: True, channel).asked == 1
    assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", False)
    assert sweep(lambda: True, channel).asked == 0


def test_the_last_question_is_asked_until_it_is_answered(database, given_up):
    age(database, TTL + 60)
    for _ in range(2):
        assert sweep(lambda: True).asked == 1
        assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", True)
        assert sweep(lambda: True).asked == 0
        database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3)")
    assert sweep(lambda: True, ScriptedChannel(query=paid)).asked == 1
    assert database.count("oms_order_payment", state="REFUND_PENDING") == 1


def test_closing_and_the_wish_are_committed_before_the_channel_is_asked(database, order):
    seen = []

    def look() -> None:
        wished = database.value("SELECT cancel_requested_at FROM oms_order")
        seen.append((state(database), wished is not None))

    channel = ScriptedChannel(query=waiting, close=Done(None), while_asked=look)
    cancel(42, order.order_no, channel)
    assert seen == [(("PENDING_PAYMENT", None, "CLOSING", True), True)] * 2


def test_an_order_without_a_page_is_closed_without_asking(database):
    a_sku(database)
    order = an_order()
    channel = ScriptedChannel()
    assert cancel(42, order.order_no, channel) == Closed(order.id, repeated=False)
    assert channel.calls == []


@pytest.mark.parametrize("over", ["CLOSED", "PAID"])
def test_pages_that_are_over_are_not_asked_about(database, over):
    a_sku(database)
    order = an_order()
    an_attempt(database, order, state=over)
    channel = ScriptedChannel()
    assert cancel(42, order.order_no, channel) == Closed(order.id, repeated=False)
    assert channel.calls == []


def test_every_page_that_may_be_open_is_closed_one_after_the_other(database, order):
    start(order.order_no, "wap")
    channel = unpaid()
    assert cancel(42, order.order_no, channel) == Closed(order.id, repeated=False)
    first, second = order.order_no, f"{order.order_no}_2"
    assert channel.calls == [
        ("query", first),
        ("close", first),
        ("query", second),
        ("close", second),
    ]
    assert database.count("oms_payment_attempt", state="CLOSED") == 2
    assert_at_rest(database)


def test_whoever_opened_many_pages_waits_for_the_sweep(database, order):
    for n in range(2, 6):
        an_attempt(database, order, out_trade_no=f"{order.order_no}_{n}")
    channel = unpaid()
    assert cancel(42, order.order_no, channel) == CancelRequested(order.id)
    assert database.count("oms_payment_attempt", state="CLOSED") == 3
    assert database.count("oms_payment_attempt", state="CLOSING") == 2
    minute_passes(database)
    assert sweep(lambda: True, channel).orders_closed == 1
    assert trail(database) == [("CLOSED", "system:sweep_expired", "CANCELLED")]
    assert_at_rest(database)


def test_the_member_does_not_wait_for_a_page_when_the_time_for_it_is_over(
    database, order, monkeypatch
):
    monkeypatch.setattr(cancelling, "WITHIN_SECONDS", 1)
    channel = unpaid()
    assert cancel(42, order.order_no, channel) == CancelRequested(order.id)
    assert channel.calls == []
    assert state(database)[0] == "PENDING_PAYMENT"  # nothing was concluded either
    minute_passes(database)
    assert sweep(lambda: True, channel).orders_closed == 1


# --- paid ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "close"),
    [
        ([paid], LOST),
        ([waiting, paid], NOT_WAITING),  # paid between the question and the close
        ([NOT_EXIST, paid], Refused("ACQ.REASON_TRADE_STATUS_INVALID")),
    ],
)
def test_an_order_that_the_channel_says_is_paid_is_paid_and_not_cancellable(
    database, order, query, close
):
    said = [one(order.order_no) if callable(one) else one for one in query]
    channel = ScriptedChannel(query=said, close=close)
    assert cancel(42, order.order_no, channel) == NotCancellable(OrderStatus.PAID)
    assert state(database) == ("PAID", None, "PAID", False)
    payment = database.one("SELECT trade_no, amount, state FROM oms_order_payment")
    assert tuple(payment.values()) == (f"trade-{order.order_no}", Decimal("9.90"), "APPLIED")
    assert trail(database) == [("PAID", "alipay", "PAID")]
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)
    # The notice, when it comes after all, is an old story.
    late = a_trade_notice(order, trade_no=f"trade-{order.order_no}")
    assert accept(late) is Result.REPLAYED


def test_a_wrong_sum_goes_back_and_the_order_is_closed_all_the_same(database, order):
    channel = ScriptedChannel(query=paid(order.order_no, "0.01"))
    assert cancel(42, order.order_no, channel) == Closed(order.id, repeated=False)
    assert state(database) == ("CLOSED", "CANCELLED", "PAID", False)
    payment = database.one("SELECT state, reason FROM oms_order_payment")
    assert tuple(payment.values()) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert_at_rest(database)


def test_money_that_came_and_went_back_is_recorded_both_ways(database, order):
    trade = a_trade(order.order_no, TradeStatus.TRADE_CLOSED, was_paid=True)
    outcome = cancel(42, order.order_no, ScriptedChannel(query=Done(trade)))
    assert outcome == NotCancellable(OrderStatus.REFUNDED)
    payment = database.one("SELECT state, refunded_amount FROM oms_order_payment")
    assert tuple(payment.values()) == ("APPLIED", Decimal("9.90"))
    assert [to for to, _, _ in trail(database)] == ["PAID", "REFUNDING", "REFUNDED"]


def test_a_trade_that_can_not_be_refunded_any_more_is_a_payment_all_the_same(database, order):
    trade = a_trade(order.order_no, TradeStatus.TRADE_FINISHED)
    outcome = cancel(42, order.order_no, ScriptedChannel(query=Done(trade)))
    assert outcome == NotCancellable(OrderStatus.PAID)
    assert database.value("SELECT finished_at IS NOT NULL FROM oms_order_payment") == 1


def test_the_other_page_of_an_order_that_turns_out_paid_is_closed_by_the_sweep(database, order):
    start(order.order_no, "wap")
    channel = ScriptedChannel(query=lambda no: waiting(no) if "_" in no else paid(no))
    assert cancel(42, order.order_no, channel) == NotCancellable(OrderStatus.PAID)
    assert channel.calls == [("query", order.order_no)]
    minute_passes(database)
    assert sweep(lambda: True, unpaid()).asked == 1
    assert database.count("oms_payment_attempt", state="CLOSED") == 1
    assert database.value("SELECT status FROM oms_order") == "PAID"
    assert_at_rest(database)


# --- not known -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "close"),
    [
        (LOST, LOST),
        (NotExecuted("40005", is_our_fault=False), LOST),
        (Refused("ACQ.SYSTEM_ERROR"), LOST),
        (waiting, LOST),
        (waiting, NOT_WAITING),  # and waiting again: it contradicts itself
        (lambda no: Done(a_trade(no, TradeStatus.TRADE_SUCCESS, is_settled=False)), Done(None)),
    ],
)
def test_while_the_channel_says_nothing_the_wish_is_kept_and_so_is_the_hold(
    database, order, query, close
):
    channel = ScriptedChannel(query=query, close=close)
    assert cancel(42, order.order_no, channel) == CancelRequested(order.id)
    assert state(database) == ("PAYMENT_PROCESSING", None, "CLOSING", True)
    assert database.value("SELECT cancel_requested_at FROM oms_order") is not None
    assert trail(database) == [("PAYMENT_PROCESSING", "member:42", "ANSWER_UNKNOWN")]
    deliver_outbox(database)
    assert database.stock(1001) == (10, 1)


def test_a_repeat_asks_again_and_may_be_told(database, order):
    cancel(42, order.order_no)
    wished = database.value("SELECT cancel_requested_at FROM oms_order")
    assert cancel(42, order.order_no) == CancelRequested(order.id)
    assert database.value("SELECT cancel_requested_at FROM oms_order") == wished
    assert len(trail(database)) == 1
    assert cancel(42, order.order_no, unpaid()) == Closed(order.id, repeated=False)
    assert cancel(42, order.order_no, unpaid()) == Closed(order.id, repeated=True)
    assert database.count("oms_order_event", to_status="CLOSED") == 1
    assert_at_rest(database)


def test_the_sweep_finishes_what_the_member_began(database, order):
    cancel(42, order.order_no)
    assert sweep(lambda: True, unpaid()).asked == 0
    minute_passes(database)
    swept = sweep(lambda: True, unpaid())
    assert (swept.asked, swept.orders_closed, swept.failed) == (1, 1, [])
    assert state(database) == ("CLOSED", "CANCELLED", "CLOSED", False)
    assert trail(database)[-1] == ("CLOSED", "system:sweep_expired", "CANCELLED")
    assert_at_rest(database)


def test_money_that_comes_while_nothing_is_known_pays_and_the_wish_comes_to_nothing(
    database, order
):
    cancel(42, order.order_no)
    assert accept(a_trade_notice(order)) is Result.APPLIED
    assert state(database) == ("PAID", None, "PAID", False)
    assert cancel(42, order.order_no, unpaid()) == NotCancellable(OrderStatus.PAID)
    minute_passes(database)
    assert sweep(lambda: True, unpaid()).asked == 0
    assert_at_rest(database)


def test_money_that_comes_after_the_cancel_goes_back(database, order):
    """The page had not been scanned, so that the channel knew of no trade to close."""
    channel = ScriptedChannel(query=NOT_EXIST, close=NOT_EXIST)
    cancel(42, order.order_no, channel)
    assert accept(a_trade_notice(order)) is Result.REFUND_PENDING
    assert database.value("SELECT reason FROM oms_order_payment") == "LATE_PAYMENT"
    assert_at_rest(database)
    assert database.stock(1001) == (10, 0)


# --- over HTTP -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "close", "status", "code"),
    [
        (waiting, Done(None), 200, None),
        (paid, LOST, 409, "ORDER_NOT_CANCELLABLE"),
        (LOST, LOST, 202, None),
    ],
)
def test_the_member_is_told(database, order, monkeypatch, query, close, status, code):
    monkeypatch.setattr(gateway, "connect", ScriptedChannel(query=query, close=close))
    answer = ask(cancel_order(order.order_no))
    assert (answer.status, answer.code) == (status, code)
    assert ("retry-after" in answer.headers) == (status == 202)
