"""What is asked of the channel about one attempt: a conversation without a database.

    query ── paid, or closed, or not known: that is the answer
      └ unpaid, and it is to be closed: close ── done: closed
                                          └ "not waiting for payment": query once more

Apart from the transactions before and after it, so that no lock is ever held while it lasts, and so
that several can be held at once. An answer that nobody signed is no answer: NotKnown.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from lockstep.alipay.answers import (
    TRADE_NOT_EXIST,
    TRADE_STATUS_ERROR,
    Done,
    NotExecuted,
    Outcome,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Paid, closed or finished: whatever it is, it is not waiting.
NOT_WAITING: Final = frozenset(
    {TRADE_STATUS_ERROR, "ACQ.REASON_TRADE_STATUS_INVALID", "ACQ.REASON_ILLEGAL_STATUS"}
)


@dataclass(frozen=True, slots=True)
class Question:
    """An attempt that the caller may ask about, and nobody else for a while.

    ``may_still_appear``: a trade that the channel does not know yet can still be paid, and that
    matters. ``asks``: how often it was asked before.
    """

    attempt_id: int
    order_id: int
    out_trade_no: str
    asks: int
    is_closing: bool
    may_still_appear: bool


@dataclass(frozen=True, slots=True)
class Paid:
    """By somebody, at some time; it may have gone back since."""

    trade: Trade


@dataclass(frozen=True, slots=True)
class ClosedByChannel:
    """Unpaid, and nobody can pay it any more."""

    trade: Trade


@dataclass(frozen=True, slots=True)
class ClosedByUs:
    """The same, at our wish."""


@dataclass(frozen=True, slots=True)
class NeverBegun:
    """It never came to a trade, and none is waited for any more. Until its time is over the link
    can be paid all the same: nothing at the channel could be closed."""


@dataclass(frozen=True, slots=True)
class Unpaid:
    """So far."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    why: str


type Answer = Paid | ClosedByChannel | ClosedByUs | NeverBegun | Unpaid | NotKnown


def converse(channel: "Gateway", question: Question, *, within_seconds: int) -> Answer:
    """Ask, and have it closed where the question says so. Takes no longer than it may."""
    talk = _Talk(channel, question, within_seconds)
    answer = talk.query()
    return talk.close() if question.is_closing and isinstance(answer, Unpaid) else answer


class _Talk:
    """A conversation and its clock: each call may take what the ones before it left."""

    def __init__(self, channel: "Gateway", question: Question, within_seconds: int) -> None:
        self._channel = channel
        self._question = question
        self._deadline = time.monotonic() + within_seconds

    def query(self) -> Answer:
        if (left := self._deadline - time.monotonic()) <= 0:
            return NotKnown("no time left to ask")
        found = self._channel.query(out_trade_no=self._question.out_trade_no, timeout_seconds=left)
        match found:
            case Done(trade):
                return _read(trade, self._question)
            case Refused(code) if code == TRADE_NOT_EXIST:
                return Unpaid()
            case _:
                return _no_answer(found)

    def close(self) -> Answer:
        if (left := self._deadline - time.monotonic()) <= 0:
            return NotKnown("no time left to close it")
        closed = self._channel.close(self._question.out_trade_no, timeout_seconds=left)
        match closed:
            case Done():
                return ClosedByUs()
            case Refused(code) if code in NOT_WAITING:
                again = self.query()
                return NotKnown(f"{code}, and yet unpaid") if isinstance(again, Unpaid) else again
            case Refused(code) if code == TRADE_NOT_EXIST:
                return Unpaid() if self._question.may_still_appear else NeverBegun()
            case _:
                return _no_answer(closed)


def _read(trade: Trade, question: Question) -> Answer:
    if trade.out_trade_no != question.out_trade_no:
        return NotKnown("the answer is about another trade")
    if not trade.is_settled:
        return NotKnown("paid by the buyer, not yet ours")
    match trade.status:
        case TradeStatus.WAIT_BUYER_PAY:
            return Unpaid()
        case TradeStatus.TRADE_SUCCESS | TradeStatus.TRADE_FINISHED:
            return Paid(trade)
        case TradeStatus.TRADE_CLOSED:
            return ClosedByChannel(trade) if trade.paid_at is None else Paid(trade)
        case _:
            assert_never(trade.status)


def _no_answer(outcome: Outcome[Trade] | Outcome[None]) -> NotKnown:
    match outcome:
        case Refused(code) | NotExecuted(code):
            return NotKnown(code)
        case Unknown(why):
            return NotKnown(why)
        case Done():
            raise AssertionError("an answer is no lack of one")
        case _:
            assert_never(outcome)
