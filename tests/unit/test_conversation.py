"""What a conversation with the channel comes to: every outcome of every call."""

from types import SimpleNamespace

import pytest

from lockstep.alipay.answers import Done, NotExecuted, Refused, TradeStatus, Unknown
from lockstep.alipay.model import NoticeKind
from lockstep.alipay.told import reports_of
from lockstep.payments import conversation
from lockstep.payments.conversation import (
    ClosedByChannel,
    ClosedByUs,
    NeverBegun,
    NotKnown,
    Paid,
    Question,
    Unpaid,
    converse,
)
from tests.support.channel import LOST, NOT_EXIST, PAID_AT, ScriptedChannel, a_trade

NO = "202611300100000000420001"
WAITING = Done(a_trade(NO))
SUCCESS = Done(a_trade(NO, TradeStatus.TRADE_SUCCESS))
FINISHED = Done(a_trade(NO, TradeStatus.TRADE_FINISHED))
CLOSED = Done(a_trade(NO, TradeStatus.TRADE_CLOSED))
REFUNDED = Done(a_trade(NO, TradeStatus.TRADE_CLOSED, was_paid=True))
ELSEWHERE = Done(a_trade(f"{NO}_2", TradeStatus.TRADE_SUCCESS))
UNFUNDED = Done(a_trade(NO, TradeStatus.TRADE_SUCCESS, is_settled=False))
BUSY = NotExecuted("40005", is_our_fault=False)
DOWN = Refused("ACQ.SYSTEM_ERROR")
STATUS_ERRORS = (
    "ACQ.TRADE_STATUS_ERROR",
    "ACQ.REASON_TRADE_STATUS_INVALID",
    "ACQ.REASON_ILLEGAL_STATUS",
)


def ask(channel, *, is_closing=False, may_still_appear=True, within_seconds=8):
    question = Question(1, 1, NO, 0, is_closing=is_closing, may_still_appear=may_still_appear)
    return converse(channel, question, within_seconds=within_seconds)


def methods(channel) -> list[str]:
    return [method for method, _ in channel.calls]


@pytest.mark.parametrize("is_closing", [False, True])
@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (SUCCESS, Paid(SUCCESS.value)),
        (FINISHED, Paid(FINISHED.value)),
        (REFUNDED, Paid(REFUNDED.value)),
        (CLOSED, ClosedByChannel(CLOSED.value)),
        (UNFUNDED, NotKnown("paid by the buyer, not yet ours")),
        (ELSEWHERE, NotKnown("the answer is about another trade")),
        (LOST, NotKnown("the answer was lost")),
        (BUSY, NotKnown("40005")),
        (DOWN, NotKnown("ACQ.SYSTEM_ERROR")),
    ],
)
def test_an_answer_that_is_one_ends_the_conversation_and_nothing_is_closed(
    query, answer, is_closing
):
    channel = ScriptedChannel(query=query, close=Done(None))
    assert ask(channel, is_closing=is_closing) == answer
    assert methods(channel) == ["query"]


@pytest.mark.parametrize("query", [WAITING, NOT_EXIST])
def test_what_is_unpaid_is_left_alone_where_nobody_wants_it_closed(query):
    channel = ScriptedChannel(query=query, close=Done(None))
    assert ask(channel) == Unpaid()
    assert methods(channel) == ["query"]


@pytest.mark.parametrize("may_still_appear", [False, True])
@pytest.mark.parametrize("query", [WAITING, NOT_EXIST])
@pytest.mark.parametrize(
    ("close", "answer"),
    [
        (Done(None), ClosedByUs()),  # after NOT_EXIST: somebody scanned it in between
        (LOST, NotKnown("the answer was lost")),
        (BUSY, NotKnown("40005")),
        (DOWN, NotKnown("ACQ.SYSTEM_ERROR")),
    ],
)
def test_what_is_unpaid_and_to_be_closed_is_closed(query, close, answer, may_still_appear):
    channel = ScriptedChannel(query=query, close=close)
    assert ask(channel, is_closing=True, may_still_appear=may_still_appear) == answer
    assert methods(channel) == ["query", "close"]


@pytest.mark.parametrize("query", [WAITING, NOT_EXIST])
@pytest.mark.parametrize(("may_still_appear", "answer"), [(True, Unpaid()), (False, NeverBegun())])
def test_a_trade_that_does_not_exist_is_closed_for_good_only_once_none_can_appear(
    query, may_still_appear, answer
):
    channel = ScriptedChannel(query=query, close=NOT_EXIST)
    assert ask(channel, is_closing=True, may_still_appear=may_still_appear) == answer
    assert methods(channel) == ["query", "close"]


@pytest.mark.parametrize("code", STATUS_ERRORS)
@pytest.mark.parametrize(
    ("again", "answer"),
    [
        (SUCCESS, Paid(SUCCESS.value)),
        (FINISHED, Paid(FINISHED.value)),
        (REFUNDED, Paid(REFUNDED.value)),
        (CLOSED, ClosedByChannel(CLOSED.value)),
        (UNFUNDED, NotKnown("paid by the buyer, not yet ours")),
        (LOST, NotKnown("the answer was lost")),
        (BUSY, NotKnown("40005")),
    ],
)
def test_a_trade_that_is_not_waiting_any_more_is_asked_about_once_more(code, again, answer):
    channel = ScriptedChannel(query=[WAITING, again], close=Refused(code))
    assert ask(channel, is_closing=True) == answer
    assert methods(channel) == ["query", "close", "query"]


@pytest.mark.parametrize("code", STATUS_ERRORS)
@pytest.mark.parametrize("again", [WAITING, NOT_EXIST])
def test_a_channel_that_contradicts_itself_is_not_believed(code, again):
    channel = ScriptedChannel(query=[WAITING, again], close=Refused(code))
    answer = ask(channel, is_closing=True, may_still_appear=False)
    assert answer == NotKnown(f"{code}, and yet unpaid")


def test_each_call_may_take_what_the_ones_before_it_left(monkeypatch):
    clock = iter([100.0, 100.0, 103.0, 107.5, 108.0])
    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    channel = ScriptedChannel(query=[WAITING, SUCCESS], close=Refused(STATUS_ERRORS[0]))
    assert ask(channel, is_closing=True) == Paid(SUCCESS.value)
    assert channel.timeouts == [8.0, 5.0, 0.5]


@pytest.mark.parametrize(
    ("moments", "why", "calls"),
    [
        ([100.0, 108.0], "no time left to ask", []),
        ([100.0, 100.0, 108.0], "no time left to close it", ["query"]),
        ([100.0, 100.0, 101.0, 108.0], "no time left to ask", ["query", "close"]),
    ],
)
def test_no_call_begins_after_the_end(monkeypatch, moments, why, calls):
    clock = iter(moments)
    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    channel = ScriptedChannel(query=[WAITING, SUCCESS], close=Refused(STATUS_ERRORS[0]))
    assert ask(channel, is_closing=True) == NotKnown(why)
    assert methods(channel) == calls


def test_it_is_asked_by_the_number_that_we_gave_it():
    channel = ScriptedChannel(query=WAITING, close=Done(None))
    ask(channel, is_closing=True)
    assert channel.calls == [("query", NO), ("close", NO)]


# --- what a trade tells --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (WAITING, []),
        (SUCCESS, [NoticeKind.PAYMENT]),
        (FINISHED, [NoticeKind.PAYMENT, NoticeKind.FINISHED]),
        (CLOSED, [NoticeKind.UNPAID_CLOSE]),
        (REFUNDED, [NoticeKind.PAYMENT, NoticeKind.REFUND]),
    ],
)
def test_a_trade_tells_what_its_notices_would_have_told_in_their_order(found, kinds):
    reports = reports_of(found.value)
    assert [report.kind for report in reports] == kinds
    for report in reports:
        assert (report.out_trade_no, report.trade_no) == (NO, f"trade-{NO}")
        assert (report.total_amount, report.told_by) == (found.value.total_amount, "query")
        assert report.gmt_payment == found.value.paid_at


def test_of_a_trade_that_closed_though_paid_all_has_gone_back():
    _, refund = reports_of(REFUNDED.value)
    assert refund.refund_fee == REFUNDED.value.total_amount
    assert refund.gmt_payment == PAID_AT


def test_a_finished_trade_takes_no_refund_any_more():
    assert [report.is_finished for report in reports_of(FINISHED.value)] == [False, True]
    assert [report.is_finished for report in reports_of(SUCCESS.value)] == [False]


def test_an_unknown_outcome_says_why():
    channel = ScriptedChannel(query=Unknown("code 20000"))
    assert ask(channel) == NotKnown("code 20000")


@pytest.mark.parametrize(
    ("status", "was_paid", "is_all_back"),
    [
        (TradeStatus.TRADE_CLOSED, True, True),
        (TradeStatus.TRADE_CLOSED, False, False),
        (TradeStatus.TRADE_SUCCESS, True, False),
    ],
)
def test_a_trade_is_all_back_once_it_is_closed_though_it_was_paid(status, was_paid, is_all_back):
    assert a_trade(NO, status, was_paid=was_paid).is_all_back is is_all_back
