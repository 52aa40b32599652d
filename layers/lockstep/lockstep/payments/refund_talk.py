"""One question to the channel about a refund, and what its answer means. No database.

Only two things show that money went back: ``fund_change=Y``, and the refund found done. What is
neither that nor a definite no may have happened, so it is asked about, 10 s later at least, before
it is tried again: with the same number and the same amount, under which the channel refunds once.
A refusal that is not in the tables below is treated so too, and goes to a person if the refund is
not found: to try again might be what it warns of, and to give up at once might hide a refund.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from lockstep.alipay.answers import (
    TRADE_NOT_EXIST,
    TRADE_STATUS_ERROR,
    Done,
    NotExecuted,
    RefundFound,
    RefundReply,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)

if TYPE_CHECKING:
    from lockstep.alipay.answers import Outcome
    from lockstep.alipay.gateway import Gateway

# With the claim and the conclusion, a second each and one more for a lock, it fits MESSAGE_SECONDS.
CALL_SECONDS: Final = 4
# Asked earlier, the channel may not know yet.
ASK_AFTER_SECONDS: Final = 10
_WAIT_SECONDS_MAX: Final = 3600
_SHORT_SECONDS: Final = 900
_SHORT_SECONDS_MAX: Final = 4 * 3600

BALANCE_SHORT: Final = "ACQ.SELLER_BALANCE_NOT_ENOUGH"
WINDOW_OVER: Final = "ACQ.TRADE_HAS_FINISHED"
AMOUNT_DIFFERS: Final = "REFUND_AMOUNT_DIFFERS"
# It may have been done all the same, and if not, the next try may be.
_PASSING: Final = frozenset({"ACQ.SYSTEM_ERROR", "ACQ.REFUND_CHARGE_ERROR"})
# It was not done; the trade says whether it ever can be.
_OF_THE_TRADE: Final = frozenset({TRADE_NOT_EXIST, TRADE_STATUS_ERROR})
_FOR_GOOD: Final = frozenset(
    {
        WINDOW_OVER,
        "ACQ.TRADE_NOT_ALLOW_REFUND",
        "ACQ.REASON_TRADE_BEEN_FREEZEN",
        "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL",
        "ACQ.REASON_TRADE_REFUND_FEE_ERR",
        "ACQ.REFUND_FEE_ERROR",
    }
)


class Question(StrEnum):
    REFUND = "REFUND"  # do it
    WAS_IT_DONE = "WAS_IT_DONE"
    IS_IT_PAID = "IS_IT_PAID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A claimed try. ``tries`` counts the claims of its refund, this one among them; ``code`` is
    what the channel said last."""

    refund_id: int
    tries: int
    question: Question
    trade_no: str
    out_request_no: str
    amount: Decimal
    reason: str
    code: str | None


# What a try comes to.


@dataclass(frozen=True, slots=True)
class WentBack:
    """The money is on its way to the buyer. ``total``: what of the trade has gone back by now."""

    total: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """Ask about it in so many seconds."""

    code: str | None
    seconds: int


@dataclass(frozen=True, slots=True)
class NotYet:
    """It was not done. Try the same again in so many seconds."""

    code: str | None
    seconds: int
    is_our_fault: bool = False


@dataclass(frozen=True, slots=True)
class Never:
    """It was not done, or not so, and a person must see to it. ``total``: what of the trade has
    gone back by now, where that is what stands in the way."""

    code: str
    total: Decimal | None = None


type Verdict = WentBack | Unclear | NotYet | Never


def question_about(code: str | None) -> Question:
    """What to ask of a refund that is UNKNOWN, with what the channel said last."""
    return Question.IS_IT_PAID if code in _OF_THE_TRADE else Question.WAS_IT_DONE


def ask(gateway: "Gateway", task: Task) -> Verdict:
    """Ask the one question of ``task``, and say what the answer means."""
    match task.question:
        case Question.REFUND:
            return _of_refund(
                task,
                gateway.refund(
                    trade_no=task.trade_no,
                    out_request_no=task.out_request_no,
                    amount=task.amount,
                    reason=task.reason,
                    timeout_seconds=CALL_SECONDS,
                ),
            )
        case Question.WAS_IT_DONE:
            return _of_query(
                task,
                gateway.query_refund(
                    trade_no=task.trade_no,
                    out_request_no=task.out_request_no,
                    timeout_seconds=CALL_SECONDS,
                ),
            )
        case Question.IS_IT_PAID:
            found = gateway.query(trade_no=task.trade_no, timeout_seconds=CALL_SECONDS)
            return _of_trade(task, found)
        case _:
            assert_never(task.question)


def _of_refund(task: Task, outcome: "Outcome[RefundReply]") -> Verdict:
    match outcome:
        case Done(reply):
            return (
                WentBack(reply.refunded) if reply.fund_changed else Unclear(None, ASK_AFTER_SECONDS)
            )
        case Unknown():
            return Unclear(None, _pause(task))
        case NotExecuted(code, is_our_fault):
            return NotYet(code, _pause(task), is_our_fault)
        case Refused(code):
            return _of_refusal(task, code)
        case _:
            assert_never(outcome)


def _of_refusal(task: Task, code: str) -> Verdict:
    if code == BALANCE_SHORT:
        return NotYet(code, _pause(task, _SHORT_SECONDS, _SHORT_SECONDS_MAX))
    if code in _FOR_GOOD:
        return Never(code)
    return Unclear(code, ASK_AFTER_SECONDS)


def _of_query(task: Task, outcome: "Outcome[RefundFound]") -> Verdict:
    match outcome:
        case Done(found) if found.is_done:
            if found.amount in {None, task.amount}:
                return WentBack()
            return Never(AMOUNT_DIFFERS)
        case Done():
            if task.code is None or task.code in _PASSING:
                return NotYet(task.code, _pause(task) if task.code else 0)
            return Never(task.code)
        case Refused(code) if code in _OF_THE_TRADE:
            return Unclear(code, ASK_AFTER_SECONDS)
        case Refused() | NotExecuted() | Unknown():
            return Unclear(task.code, _pause(task))
        case _:
            assert_never(outcome)


def _of_trade(task: Task, outcome: "Outcome[Trade]") -> Verdict:
    """Its refund was refused, because the trade is not there or not in the state for it."""
    match outcome:
        case Done(trade) if trade.status is TradeStatus.TRADE_SUCCESS:
            return NotYet(task.code, _pause(task))
        case Done(trade) if trade.is_all_back:
            return Never(task.code or TRADE_STATUS_ERROR, trade.total_amount)
        case Done():
            return Never(task.code or TRADE_NOT_EXIST)
        case Refused(code) if code == TRADE_NOT_EXIST:
            return Never(task.code or code)
        case Refused() | NotExecuted() | Unknown():
            return Unclear(task.code, _pause(task))
        case _:
            assert_never(outcome)


def _pause(task: Task, seconds: int = ASK_AFTER_SECONDS, most: int = _WAIT_SECONDS_MAX) -> int:
    """Twice as long with each try."""
    return min(seconds << min(task.tries - 1, 16), most)
