"""start(): an attempt is committed, then the link to it is made; who may not pay gets neither."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lockstep import settings
from lockstep.alipay.answers import Done, NotExecuted, Refused
from lockstep.alipay.model import NoticeKind
from lockstep.errors import TryAgain
from lockstep.orders.model import OrderNotFound, OrderStatus
from lockstep.payments.accept import accept
from lockstep.payments.model import (
    AttemptState,
    NotPayable,
    Result,
    Started,
    StockNotHeld,
    TimeOver,
)
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order, assert_at_rest
from tests.support.channel import LOST, NOTIFY_URL, ScriptedChannel, cancel, start, sweep
from tests.support.database import Database

LEFT = "UPDATE oms_order SET expires_at = NOW(3) + INTERVAL %s SECOND"


@pytest.fixture
def order(database):
    a_sku(database)
    return an_order()


def attempts(database: Database) -> list[tuple[str, str, str]]:
    rows = database.rows("SELECT out_trade_no, product, state FROM oms_payment_attempt ORDER BY id")
    return [tuple(row.values()) for row in rows]


def no_channel() -> ScriptedChannel:
    raise AssertionError("nobody may be asked for this order")


# --- the attempt ---------------------------------------------------------------------------------


def test_the_first_attempt_has_the_orders_number_its_sum_and_its_end(database, order):
    channel = ScriptedChannel()
    outcome = start(order.order_no, "page", channel)
    assert isinstance(outcome, Started)
    assert outcome.link == f"https://pay.example.com/page/{order.order_no}"
    assert outcome.repeated is False
    ends_at = order.expires_at.replace(microsecond=0)
    assert channel.said == [
        {
            "product": "page",
            "out_trade_no": order.order_no,
            "amount": Decimal("9.90"),
            "subject": f"Order {order.order_no}",
            "expires_at": ends_at,
            "notify_url": NOTIFY_URL,
            "return_url": None,
        }
    ]
    row = database.one(
        "SELECT *, TIMESTAMPDIFF(SECOND, created_at, next_ask_at) AS asked_in "
        "FROM oms_payment_attempt"
    )
    assert (row["order_id"], row["out_trade_no"], row["product"]) == (
        order.id,
        order.order_no,
        "page",
    )
    assert (row["amount"], row["state"], row["asks"]) == (Decimal("9.90"), "OPEN", 0)
    assert row["expires_at"].replace(tzinfo=UTC) == ends_at
    assert row["asked_in"] == 60
    assert database.value("SELECT status FROM oms_order") == "PENDING_PAYMENT"


def test_it_is_committed_before_the_channel_is_called(database, order):
    seen = []

    def look() -> None:
        seen.extend(attempts(database))

    channel = ScriptedChannel(precreate=Done("q"), while_asked=look)
    outcome = start(order.order_no, "qr", channel)
    assert seen == [(order.order_no, "qr", "OPEN")]
    assert isinstance(outcome, Started)
    assert outcome.link == "q"


def test_the_subject_has_no_letter_that_the_channel_refuses(database, order):
    channel = ScriptedChannel()
    start(order.order_no, "page", channel)
    assert not re.search(r"[/=&]", channel.said[0]["subject"])


def test_the_same_product_again_is_the_same_attempt(database, order):
    first, again = start(order.order_no), start(order.order_no)
    assert isinstance(first, Started)
    assert again == Started(first.attempt, first.link, repeated=True)
    assert attempts(database) == [(order.order_no, "page", "OPEN")]


def test_each_product_has_an_attempt_of_its_own(database, order):
    channel = ScriptedChannel(precreate=Done("q"))
    for product in ("page", "wap", "qr", "wap"):
        start(order.order_no, product, channel)
    assert attempts(database) == [
        (order.order_no, "page", "OPEN"),
        (f"{order.order_no}_2", "wap", "OPEN"),
        (f"{order.order_no}_3", "qr", "OPEN"),
    ]


@pytest.mark.parametrize("state", ["CLOSED", "PAID"])
def test_an_attempt_that_is_over_is_followed_by_a_new_one(database, order, state):
    """PAID and yet payable: by a wrong sum, which goes back."""
    an_attempt(database, order, state=state)
    outcome = start(order.order_no)
    assert isinstance(outcome, Started)
    assert (outcome.attempt.out_trade_no, outcome.repeated) == (f"{order.order_no}_2", False)


def test_the_money_of_a_later_attempt_finds_the_order(database, order):
    an_attempt(database, order, state="CLOSED")
    start(order.order_no)
    notice = a_trade_notice(order, out_trade_no=f"{order.order_no}_2")
    assert accept(notice) is Result.APPLIED
    assert attempts(database)[1] == (f"{order.order_no}_2", "page", "PAID")
    assert database.value("SELECT COUNT(next_ask_at) FROM oms_payment_attempt") == 0
    assert_at_rest(database)


def test_after_a_wrong_sum_the_order_can_be_paid_by_a_new_page(database, order):
    start(order.order_no)
    wrong = a_trade_notice(order, total_amount=Decimal("0.01"))
    assert accept(wrong) is Result.REFUND_PENDING
    again = start(order.order_no)
    assert isinstance(again, Started)
    assert again.attempt.out_trade_no == f"{order.order_no}_2"


def test_a_page_with_another_sum_than_the_orders_is_never_given_out_again(database, order):
    """No operation changes what an order costs; should somebody do it by hand, the old page is
    void: its money comes back, and the next page asks for the new sum."""
    start(order.order_no)
    database.execute("UPDATE oms_order SET pay_amount = 5.00, total_amount = 5.00")
    again = start(order.order_no)
    assert isinstance(again, Started)
    assert (again.attempt.amount, again.repeated) == (Decimal("5.00"), False)
    assert accept(a_trade_notice(order)) is Result.REFUND_PENDING
    assert database.value("SELECT reason FROM oms_order_payment") == "AMOUNT_MISMATCH"


# --- who may not pay -----------------------------------------------------------------------------


def test_another_members_order_is_not_found(database, order):
    assert start(order.order_no, connect=no_channel, member_id=7) == OrderNotFound()
    assert start("20261130", connect=no_channel) == OrderNotFound()
    assert attempts(database) == []


@pytest.mark.parametrize("status", ["PAID", "REFUNDED", "CLOSED"])
def test_an_order_that_takes_no_money_is_not_payable(database, order, status):
    if status == "CLOSED":
        cancel(42, order.order_no)
    else:
        accept(a_trade_notice(order, trade_no="T1"))
    if status == "REFUNDED":
        accept(
            a_trade_notice(
                order, trade_no="T1", kind=NoticeKind.REFUND, refund_fee=order.pay_amount
            )
        )
    assert start(order.order_no, connect=no_channel) == NotPayable(OrderStatus(status))
    assert attempts(database) == []


def test_an_order_that_its_member_gave_up_is_not_payable(database, order):
    start(order.order_no)
    cancel(42, order.order_no)
    assert start(order.order_no, "wap", no_channel) == NotPayable(OrderStatus.PAYMENT_PROCESSING)
    assert len(attempts(database)) == 1


def test_nor_is_it_once_its_last_page_is_closed(database, order):
    """The order itself is closed a little later, by whoever asked the channel."""
    start(order.order_no)
    cancel(42, order.order_no)
    assert accept(a_trade_notice(order, kind=NoticeKind.UNPAID_CLOSE)) is Result.NOTED
    assert [state for _, _, state in attempts(database)] == ["CLOSED"]
    assert start(order.order_no, "wap", no_channel) == NotPayable(OrderStatus.PAYMENT_PROCESSING)


def test_an_order_that_is_about_to_be_closed_is_not_payable(database, order):
    an_attempt(database, order, state="CLOSING")
    assert start(order.order_no, "wap", no_channel) == NotPayable(OrderStatus.PENDING_PAYMENT)


def test_an_order_that_waits_in_line_is_not_payable_until_its_stock_is_held(database):
    a_sku(database, hot=True)
    order = an_order()
    assert start(order.order_no, connect=no_channel) == StockNotHeld()
    assert_at_rest(database)
    assert isinstance(start(order.order_no), Started)


@pytest.mark.parametrize("state", ["RELEASED", "CONFIRMED"])
def test_an_order_whose_hold_is_gone_is_not_payable(database, order, state):
    database.execute("UPDATE ims_reservation SET state = %s", (state,))
    assert start(order.order_no, connect=no_channel) == StockNotHeld()
    database.execute("DELETE FROM ims_reservation")
    assert start(order.order_no, connect=no_channel) == StockNotHeld()
    assert attempts(database) == []


def test_of_three_who_want_the_last_piece_only_its_holder_can_pay(database):
    a_sku(database, 2001, stock=1, hot=True)
    orders = [an_order({2001: 1}, member_id=n) for n in (1, 2, 3)]
    assert_at_rest(database)
    started = [start(each.order_no, member_id=each.member_id) for each in orders]
    assert isinstance(started[0], Started)
    assert started[1:] == [NotPayable(OrderStatus.CLOSED)] * 2


# --- time ----------------------------------------------------------------------------------------


def test_no_new_page_is_opened_with_less_than_the_margin_left(database, order):
    database.execute(LEFT, (88,))
    assert start(order.order_no, connect=no_channel) == TimeOver()
    assert attempts(database) == []
    database.execute(LEFT, (93,))
    assert isinstance(start(order.order_no), Started)


def test_a_live_page_is_linked_to_again_while_time_is_left_and_no_longer(database, order):
    start(order.order_no)
    database.execute(LEFT, (30,))
    assert isinstance(start(order.order_no), Started)
    assert start(order.order_no, "wap", no_channel) == TimeOver()
    database.execute(LEFT, (0,))
    assert start(order.order_no, connect=no_channel) == TimeOver()


def test_the_margin_is_never_above_half_of_an_orders_time(database, order, monkeypatch):
    monkeypatch.setenv("ORDER_TTL_SECONDS", "60")
    settings.order_ttl_seconds.cache_clear()
    settings.payment_margin_seconds.cache_clear()
    database.execute(LEFT, (28,))
    assert start(order.order_no) == TimeOver()
    database.execute(LEFT, (33,))
    assert isinstance(start(order.order_no), Started)


def test_an_end_is_floored_to_the_second_which_is_all_that_the_channel_knows(database, order):
    database.execute("UPDATE oms_order SET expires_at = '2099-01-01 00:00:59.999'")
    outcome = start(order.order_no)
    assert isinstance(outcome, Started)
    assert outcome.attempt.expires_at == datetime(2099, 1, 1, 0, 0, 59, tzinfo=UTC)


# --- codes to scan -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [LOST, NotExecuted("40005", is_our_fault=False)])
def test_a_code_that_was_not_made_can_be_asked_for_again_under_the_same_number(
    database, order, answer
):
    channel = ScriptedChannel(precreate=[answer, Done("q")])
    with pytest.raises(TryAgain):
        start(order.order_no, "qr", channel)
    assert attempts(database) == [(order.order_no, "qr", "OPEN")]
    outcome = start(order.order_no, "qr", channel)
    assert isinstance(outcome, Started)
    assert (outcome.link, outcome.repeated) == ("q", True)
    assert [said["out_trade_no"] for said in channel.said] == [order.order_no] * 2


def test_a_code_for_what_is_paid_already_makes_the_sweep_ask_at_once(database, order):
    channel = ScriptedChannel(precreate=Refused("ACQ.TRADE_HAS_SUCCESS"))
    outcome = start(order.order_no, "qr", channel)
    assert outcome == NotPayable(OrderStatus.PENDING_PAYMENT)
    assert sweep(lambda: True, channel).asked == 1


def test_a_code_for_what_the_channel_closed_is_followed_by_a_new_attempt(database, order):
    channel = ScriptedChannel(precreate=[Refused("ACQ.TRADE_HAS_CLOSE"), Done("q")])
    with pytest.raises(TryAgain):
        start(order.order_no, "qr", channel)
    assert attempts(database) == [(order.order_no, "qr", "CLOSED")]
    outcome = start(order.order_no, "qr", channel)
    assert isinstance(outcome, Started)
    assert outcome.attempt.out_trade_no == f"{order.order_no}_2"
    assert outcome.attempt.state is AttemptState.OPEN


def test_another_refusal_leaves_the_attempt_and_is_no_answer_to_the_member(database, order):
    channel = ScriptedChannel(precreate=Refused("ACQ.CONTEXT_INCONSISTENT"))
    with pytest.raises(TryAgain):
        start(order.order_no, "qr", channel)
    assert attempts(database) == [(order.order_no, "qr", "OPEN")]
