"""The sweep asks the channel: about pages whose time is over, about those that nobody told of, and
about what a crash left half-way."""

from datetime import timedelta
from decimal import Decimal

import pytest

from functions import sweep_expired
from lockstep.alipay import gateway
from lockstep.alipay.answers import Done, NotExecuted, TradeStatus
from lockstep.alipay.model import NoticeKind
from lockstep.errors import SettingMissing
from lockstep.orders.model import Order
from lockstep.payments import ask as asking
from lockstep.payments.accept import accept
from lockstep.payments.conversation import ClosedByUs, Paid, Question, Unpaid
from lockstep.payments.model import Result, Started
from lockstep.upkeep import ask_due, store
from tests.support.builders import (
    a_sku,
    a_trade_notice,
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
from tests.support.lambda_context import Context
from tests.support.pages import age, state, trail

TTL = 1800


def unlimited() -> bool:
    return True


@pytest.fixture
def order(database):
    """With a payment page that was opened at once."""
    a_sku(database)
    order = an_order()
    start(order.order_no)
    return order


# --- the end of its time -------------------------------------------------------------------------


def test_an_order_with_a_page_ends_a_minute_after_its_time_and_not_before(database, order):
    age(database, TTL + 58)
    channel = unpaid()
    sweep(unlimited, channel)
    assert "close" not in [method for method, _ in channel.calls]
    assert state(database) == ("PENDING_PAYMENT", None, "OPEN", True)
    age(database, 2)
    swept = sweep(unlimited, channel)
    assert (swept.asked, swept.orders_closed, swept.failed) == (1, 1, [])
    assert channel.calls[-2:] == [("query", order.order_no), ("close", order.order_no)]
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)
    assert trail(database) == [("CLOSED", "system:sweep_expired", "EXPIRED")]
    assert swept.left == {"orders": 0, "holds": 0}
    assert_at_rest(database)
    assert database.stock(1001) == (10, 0)


@pytest.mark.parametrize(
    ("query", "close"),
    [
        (waiting, Done(None)),
        (NOT_EXIST, Done(None)),
        (NOT_EXIST, NOT_EXIST),  # nobody ever scanned it, and now nobody can
        (closed, LOST),  # the channel closed it by itself
    ],
)
def test_whatever_shows_that_nothing_was_paid_ends_it(database, order, query, close):
    age(database, TTL + 60)
    assert sweep(unlimited, ScriptedChannel(query=query, close=close)).orders_closed == 1
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)
    assert_at_rest(database)


@pytest.mark.parametrize(("query", "close"), [([paid], LOST), ([waiting, paid], NOT_WAITING)])
def test_what_was_paid_is_paid_however_late_it_is_told(database, order, query, close):
    age(database, TTL + 60)
    said = [one(order.order_no) for one in query]
    swept = sweep(unlimited, ScriptedChannel(query=said, close=close))
    assert (swept.asked, swept.orders_closed) == (1, 0)
    assert state(database) == ("PAID", None, "PAID", False)
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_a_page_whose_number_was_paid_before_it_was_opened_does_not_keep_its_order_open(database):
    a_sku(database)
    order = an_order()
    trade = a_trade(order.order_no, TradeStatus.TRADE_SUCCESS, amount="9.91")
    told = {"trade_no": trade.trade_no, "total_amount": trade.total_amount}
    assert accept(a_trade_notice(order, **told)) is Result.REFUND_PENDING
    start(order.order_no)
    age(database, TTL + 60)
    swept = sweep(unlimited, ScriptedChannel(query=Done(trade)))
    assert (swept.asked, swept.orders_closed) == (1, 1)
    assert state(database) == ("CLOSED", "EXPIRED", "PAID", False)
    assert_at_rest(database)


def test_while_the_channel_says_nothing_the_order_keeps_its_hold_and_is_asked_ever_less_often(
    database, order
):
    age(database, TTL + 60)
    channel, pauses = ScriptedChannel(), []
    for asked in range(1, 8):
        assert sweep(unlimited, channel).asked == 1
        assert len(channel.calls) == asked
        pause = database.value(
            "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), next_ask_at) FROM oms_payment_attempt"
        )
        pauses.append(round(pause / 60_000_000))
        assert sweep(unlimited, channel).asked == 0
        age(database, pauses[-1] * 60)
    assert pauses == [1, 2, 4, 8, 15, 15, 15]
    assert state(database) == ("PAYMENT_PROCESSING", None, "CLOSING", True)
    assert trail(database) == [("PAYMENT_PROCESSING", "system:sweep_expired", "ANSWER_UNKNOWN")]
    deliver_outbox(database)
    assert database.stock(1001) == (10, 1)
    assert sweep(unlimited, unpaid()).orders_closed == 1
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)
    assert_at_rest(database)


def test_an_order_with_several_pages_ends_with_the_last_of_them(database, order):
    start(order.order_no, "wap")
    age(database, TTL + 60)
    channel = ScriptedChannel(query=lambda no: LOST if "_" in no else waiting(no), close=Done(None))
    swept = sweep(unlimited, channel)
    assert (swept.asked, swept.orders_closed) == (2, 0)
    assert database.value("SELECT status FROM oms_order") == "PAYMENT_PROCESSING"
    age(database, 60)
    assert sweep(unlimited, unpaid()).orders_closed == 1
    assert_at_rest(database)


def test_an_order_that_its_member_gave_up_before_its_time_was_over_is_cancelled(database, order):
    cancel(42, order.order_no)
    age(database, TTL + 60)
    sweep(unlimited, unpaid())
    assert state(database)[:2] == ("CLOSED", "CANCELLED")


def test_a_payment_at_the_end_pays_while_the_order_is_open(database, order):
    age(database, TTL + 60)
    sweep(unlimited)
    assert state(database)[0] == "PAYMENT_PROCESSING"
    assert accept(a_trade_notice(order)) is Result.APPLIED
    assert state(database) == ("PAID", None, "PAID", False)
    assert sweep(unlimited, unpaid()).asked == 0
    assert_at_rest(database)


# --- what nobody told ----------------------------------------------------------------------------


def test_a_payment_that_no_notice_told_is_found_after_a_minute(database, order):
    channel = ScriptedChannel(query=paid)
    assert sweep(unlimited, channel).asked == 0
    age(database, 60)
    assert sweep(unlimited, channel).asked == 1
    assert state(database) == ("PAID", None, "PAID", False)
    assert trail(database) == [("PAID", "alipay", "PAID")]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE to_status = 'PAID'")
    assert '"told_by": "query"' in evidence
    assert_at_rest(database)


@pytest.mark.parametrize("answer", [waiting, NOT_EXIST, LOST, NotExecuted("40005", False)])
def test_a_page_that_is_open_is_only_looked_at_and_ever_less_often(database, order, answer):
    channel, asked_at, passed = ScriptedChannel(query=answer, close=Done(None)), [], 0
    while passed < TTL + 30:
        age(database, 30)
        passed += 30
        if sweep(unlimited, channel).asked:
            asked_at.append(passed // 60)
    assert asked_at == [1, 2, 4, 8, 16]
    assert {method for method, _ in channel.calls} == {"query"}
    assert state(database) == ("PENDING_PAYMENT", None, "OPEN", True)
    # The last pause ends with the order's time.
    due = database.value(
        "SELECT TIMESTAMPDIFF(SECOND, expires_at, next_ask_at) FROM oms_payment_attempt"
    )
    assert due == 60


def test_a_page_that_the_channel_closed_by_itself_closes_its_order(database, order):
    age(database, 60)
    assert sweep(unlimited, ScriptedChannel(query=closed)).orders_closed == 1
    assert state(database) == ("CLOSED", "GATEWAY_CLOSED", "CLOSED", False)
    assert trail(database) == [("CLOSED", "alipay", "GATEWAY_CLOSED")]
    assert_at_rest(database)


def test_the_other_page_of_a_paid_order_is_closed_before_it_can_be_paid_too(database, order):
    start(order.order_no, "wap")
    assert accept(a_trade_notice(order)) is Result.APPLIED
    age(database, 60)
    channel = unpaid()
    assert sweep(unlimited, channel).asked == 1
    assert channel.calls == [("query", f"{order.order_no}_2"), ("close", f"{order.order_no}_2")]
    assert database.count("oms_payment_attempt", state="CLOSED") == 1
    assert trail(database) == [("PAID", "alipay", "PAID")]
    assert_at_rest(database)


def test_a_page_that_may_still_be_scanned_stays_known_after_its_order_was_paid(database, order):
    """A trade that does not exist cannot be closed. It is asked about until none can appear."""
    start(order.order_no, "wap")
    accept(a_trade_notice(order))
    age(database, 60)
    channel = ScriptedChannel(query=NOT_EXIST, close=NOT_EXIST)
    sweep(unlimited, channel)
    assert database.count("oms_payment_attempt", state="CLOSING") == 1
    age(database, TTL)
    sweep(unlimited, channel)
    assert database.count("oms_payment_attempt", state="CLOSED") == 1
    assert database.value("SELECT status FROM oms_order") == "PAID"


def test_a_page_whose_number_was_paid_before_it_was_opened_is_used_up(database):
    """By a link of the shop's own, and with a wrong sum: the page can never be paid."""
    a_sku(database)
    order = an_order()
    trade_no = f"trade-{order.order_no}"
    accept(a_trade_notice(order, trade_no=trade_no, total_amount=Decimal("0.01")))
    start(order.order_no)
    age(database, 60)
    sweep(unlimited, ScriptedChannel(query=lambda no: paid(no, "0.01")))
    assert state(database) == ("PENDING_PAYMENT", None, "PAID", False)
    again = start(order.order_no)
    assert isinstance(again, Started)
    assert again.attempt.out_trade_no == f"{order.order_no}_2"


@pytest.mark.parametrize("answer", [paid, closed])
def test_a_page_of_a_trade_that_contradicts_our_books_does_not_keep_its_order_open(
    database, order, answer
):
    """The trade is known with another sum; the page is over all the same."""
    other = an_order(member_id=7)
    accept(a_trade_notice(other, trade_no=f"trade-{order.order_no}"))
    age(database, TTL + 60)
    sweep(unlimited, ScriptedChannel(query=answer, close=NOT_WAITING))
    row = database.one("SELECT state, next_ask_at FROM oms_payment_attempt")
    assert (row["state"] in {"PAID", "CLOSED"}, row["next_ask_at"]) == (True, None)
    assert database.value("SELECT status FROM oms_order WHERE id = %s", (order.id,)) == "CLOSED"


def test_a_second_payment_that_nobody_told_goes_back(database, order):
    start(order.order_no, "wap")
    accept(a_trade_notice(order))
    age(database, 60)
    sweep(unlimited, ScriptedChannel(query=paid))
    payments = database.rows("SELECT state, reason FROM oms_order_payment ORDER BY id")
    assert [tuple(row.values()) for row in payments] == [
        ("APPLIED", None),
        ("REFUND_PENDING", "SECOND_PAYMENT"),
    ]
    assert_at_rest(database)


# --- crashes -------------------------------------------------------------------------------------


def test_an_attempt_that_was_claimed_by_a_process_that_died_is_asked_about_after_its_lease(
    database, order
):
    age(database, TTL + 60)
    attempt_id = database.value("SELECT id FROM oms_payment_attempt")
    assert isinstance(asking.claim(attempt_id, order.id, "died"), Question)
    assert state(database) == ("PENDING_PAYMENT", None, "CLOSING", True)
    assert sweep(unlimited, unpaid()).asked == 0
    age(database, 31)
    assert sweep(unlimited, unpaid()).orders_closed == 1
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)
    assert_at_rest(database)


def test_what_the_channel_told_of_a_close_before_its_answer_was_concluded_is_finished(
    database, order
):
    age(database, TTL + 60)
    attempt_id = database.value("SELECT id FROM oms_payment_attempt")
    question = asking.claim(attempt_id, order.id, "died")
    assert isinstance(question, Question)
    assert accept(a_trade_notice(order, kind=NoticeKind.UNPAID_CLOSE)) is Result.NOTED
    assert state(database) == ("PENDING_PAYMENT", None, "CLOSED", True)
    age(database, 31)
    swept = sweep(unlimited, ScriptedChannel(query=closed))
    assert (swept.asked, swept.orders_closed) == (1, 1)
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)


def test_an_order_does_not_wait_for_the_next_question_once_the_channel_told_of_the_close(
    database, order
):
    age(database, TTL + 60)
    sweep(unlimited)
    database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3) + INTERVAL 15 MINUTE")
    accept(a_trade_notice(order, kind=NoticeKind.UNPAID_CLOSE))
    age(database, 31)
    assert sweep(unlimited, ScriptedChannel(query=closed)).orders_closed == 1
    assert state(database) == ("CLOSED", "EXPIRED", "CLOSED", False)


def test_an_answer_that_is_concluded_twice_changes_nothing_the_second_time(database, order):
    age(database, TTL + 60)
    attempt_id = database.value("SELECT id FROM oms_payment_attempt")
    question = asking.claim(attempt_id, order.id, "one")
    assert isinstance(question, Question)
    tables = ("oms_order", "oms_order_event", "oms_payment_attempt", "oms_order_payment", "outbox")
    for answer in (Paid(paid(order.order_no).value), ClosedByUs(), Unpaid()):
        first = asking.conclude(question, answer, "one")
        assert (first.status, first.has_closed) == ("PAID", False)
        deliver_outbox(database)
        before = database.dump(tables)
        asking.conclude(question, answer, "two")
        assert database.dump(tables) == before


# --- how far it goes -----------------------------------------------------------------------------


def some_orders(database: Database, how_many: int) -> list[Order]:
    a_sku(database, stock=how_many)
    orders = [an_order(member_id=n) for n in range(1, how_many + 1)]
    for order in orders:
        start(order.order_no, member_id=order.member_id)
    return orders


def test_it_goes_past_full_pages_and_past_rows_that_fail(database, monkeypatch):
    monkeypatch.setattr(store, "PAGE_SIZE", 3)
    orders = some_orders(database, 10)
    database.execute("DELETE FROM oms_order WHERE id = %s", (orders[4].id,))
    age(database, TTL + 60)
    swept = sweep(unlimited, unpaid())
    assert (swept.asked, swept.orders_closed) == (9, 9)
    assert swept.failed == [f"{orders[4].order_no}: InvariantBroken"]
    again = sweep(unlimited, unpaid())
    assert (again.asked, again.failed) == (0, swept.failed)


def test_an_answer_that_cannot_be_concluded_is_reported_and_asked_for_again(
    database, order, monkeypatch
):
    age(database, TTL + 60)
    database.execute("UPDATE oms_payment_attempt SET out_trade_no = 'other'")
    fault = ScriptedChannel(query=lambda _: paid("other", "0.00"))
    swept = sweep(unlimited, fault)
    assert (swept.asked, swept.failed) == (0, ["other: InvariantBroken"])
    age(database, 31)
    assert sweep(unlimited, unpaid()).orders_closed == 1


def test_it_stops_when_time_is_short_and_concludes_what_it_began(database, monkeypatch):
    some_orders(database, 6)
    age(database, TTL + 60)
    monkeypatch.setattr(ask_due, "PARALLEL_MAX", 2)
    moments = iter([True] * 14 + [False] * 100)
    swept = sweep(lambda: next(moments), unpaid())
    assert 0 < swept.asked < 6
    assert swept.asked == swept.orders_closed == database.count("oms_order", status="CLOSED")
    assert database.count("oms_payment_attempt", state="CLOSING") == 0
    assert sweep(unlimited, unpaid()).asked == 6 - swept.asked
    assert_at_rest(database)


def test_the_channel_is_not_even_connected_to_where_nothing_is_due(database, order):
    def connect() -> ScriptedChannel:
        raise AssertionError("nobody is to be asked")

    assert sweep(unlimited, connect).asked == 0


def test_a_missing_setting_fails_each_question_and_nothing_else(database, order):
    def connect() -> ScriptedChannel:
        raise SettingMissing("ALIPAY_PRIVATE_KEY")

    age(database, TTL + 60)
    an_order(member_id=7)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) WHERE member_id = 7")
    swept = sweep(unlimited, connect)
    assert swept.orders_closed == 1
    assert swept.failed == [f"{order.order_no}: SettingMissing"]
    assert state(database)[2:] == ("OPEN", True)


def test_the_function_asks_by_its_gateway(database, order, monkeypatch):
    monkeypatch.setattr(gateway, "connect", unpaid())
    age(database, TTL + 60)
    swept = sweep_expired.handler({}, Context(milliseconds=50_000))
    assert (swept["asked"], swept["orders_closed"]) == (1, 1)


def test_the_reserve_that_the_sweep_keeps_covers_a_conversation():
    patience = timedelta(seconds=ask_due.CONVERSATION_SECONDS + 2 * asking.PATIENCE_SECONDS)
    assert patience < timedelta(seconds=15)


# --- what a page's question is --------------------------------------------------------------------

CLOSED = "prev_status = 'PENDING_PAYMENT', status = 'CLOSED', close_reason = 'EXPIRED'"


@pytest.mark.parametrize(
    ("of_order", "of_page", "is_closing", "may_still_appear"),
    [
        ("note = NULL", "OPEN", False, True),
        ("cancel_requested_at = NOW(3)", "OPEN", True, False),
        (CLOSED, "OPEN", True, True),
        (f"{CLOSED}, cancel_requested_at = NOW(3)", "OPEN", True, True),
        ("note = NULL", "CLOSED", True, False),
    ],
)
def test_a_page_is_closed_and_waited_for_as_its_order_says(
    database, order, of_order, of_page, is_closing, may_still_appear
):
    database.execute(f"UPDATE oms_order SET {of_order}")  # noqa: S608
    database.execute(
        "UPDATE oms_payment_attempt SET state = %s, next_ask_at = NOW(3) - INTERVAL 1 SECOND",
        (of_page,),
    )
    attempt_id = database.value("SELECT id FROM oms_payment_attempt")
    question = asking.claim(attempt_id, order.id, "test")
    assert isinstance(question, Question)
    assert (question.is_closing, question.may_still_appear) == (is_closing, may_still_appear)
