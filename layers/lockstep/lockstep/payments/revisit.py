"""Decide stored notices again that were not final: from our own books, or by what the channel says.

    claim (a lease, committed) -> ask (no transaction is open) -> conclude (inbox -> order -> ...)

Whatever way a payment becomes known, the rows end as if its notices had come in their order: a
refund that was told before its payment is a paid order of which a part went back.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from lockstep.alipay.answers import Done, Outcome, RefundFound, Trade
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.db.transaction import Tx, in_transaction
from lockstep.observability import count, logger
from lockstep.orders import store as orders
from lockstep.payments import revisit_store, store
from lockstep.payments.attach import settle_known
from lockstep.payments.decide import decide, finish, hear
from lockstep.payments.model import PROVIDER, NoticeState, PaymentState, Result
from lockstep.payments.note_refund import REFUND_AMONG_OURS
from lockstep.payments.revisit_store import StoredNotice

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Longer than any call may take. A notice that is locked for longer than a second comes again next
# minute; the others shall have their turn.
LEASE_SECONDS: Final = 60
PATIENCE_SECONDS: Final = 1

# After any other the notice waits on.
FINAL_RESULTS: Final = frozenset(Result) - {Result.QUERY_DUE, Result.UNMATCHED, Result.CONFLICT}


class Ask(StrEnum):
    """What the channel must say before a notice can be decided."""

    NOTHING = "NOTHING"  # our own books may know by now
    TRADE = "TRADE"
    REFUND = "REFUND"


@dataclass(frozen=True, slots=True)
class Question:
    """A claimed notice. ``is_last``: if it stays open now, it is left to a person."""

    notice_id: int
    notice: TradeNotice
    ask: Ask
    is_last: bool


type Answer = Outcome[Trade] | Outcome[RefundFound] | None


def claim_notice(notice_id: int) -> Question | None:
    """Take a due notice for LEASE_SECONDS; None if it is not due, or somebody else took it.

    Guard: next_ask_at has come. Effect: asks + 1, and the lease. Lock order: inbox.
    """
    return in_transaction(partial(_claim, notice_id=notice_id), within_seconds=PATIENCE_SECONDS)


def _claim(tx: Tx, notice_id: int) -> Question | None:
    if not revisit_store.lease_notice(tx, notice_id, LEASE_SECONDS):
        return None
    stored = revisit_store.read_stored_notice(tx, notice_id)
    return Question(notice_id, stored.notice, _what_to_ask(stored), stored.is_last)


def _what_to_ask(stored: StoredNotice) -> Ask:
    notice = stored.notice
    if stored.state is not NoticeState.QUERY_DUE:
        return Ask.NOTHING
    if not stored.is_payment_known or notice.kind is NoticeKind.UNPAID_CLOSE:
        return Ask.TRADE
    if notice.kind is NoticeKind.REFUND and not notice.refund_fee:
        return Ask.REFUND if notice.out_biz_no else Ask.TRADE
    return Ask.REFUND if stored.reason == REFUND_AMONG_OURS else Ask.NOTHING


def ask(connect: Callable[[], "Gateway"], question: Question) -> Answer:
    """Ask the channel what ``question`` needs. No database: many may run at once."""
    notice = question.notice
    match question.ask:
        case Ask.NOTHING:
            return None
        case Ask.TRADE:
            return connect().query(trade_no=notice.trade_no)
        case Ask.REFUND:
            assert notice.out_biz_no is not None  # noqa: S101 - or it would not be asked for
            return connect().query_refund(
                trade_no=notice.trade_no, out_request_no=notice.out_biz_no
            )
        case _:
            assert_never(question.ask)


def conclude(question: Question, answer: Answer) -> Result | None:
    """Decide the notice again with what is known now; None if somebody did meanwhile.

    Guard: it is not DONE. Effect: what its trade's notices would have done in their order; where
    nothing is known still, it comes again: after 1, 2, 4 … 60 minutes, for a day, and then it
    stays for a person. Lock order: inbox, order, attempt, payment. Repeat: no change.
    """
    work = partial(_conclude, question=question, answer=answer)
    result = in_transaction(work, within_seconds=PATIENCE_SECONDS)
    if result is not None:
        count("Revisited", result)
    return result


def _conclude(tx: Tx, question: Question, answer: Answer) -> Result | None:
    stored = revisit_store.lock_stored_notice(tx, question.notice_id)
    if stored is None or stored is NoticeState.DONE:
        return None
    result = _decide_again(tx, question, answer, stored)
    if question.is_last and result not in FINAL_RESULTS:
        count("NoticeLeftToAPerson")
        logger.warning("notice stays open", notice_id=question.notice_id, result=result)
    return result


def _decide_again(tx: Tx, question: Question, answer: Answer, stored: NoticeState) -> Result:
    notice, heard = question.notice, None
    named_amount: Decimal | None = None
    match answer:
        case Done(Trade() as trade) if _is_of(trade, notice):
            heard = hear(tx, trade)
        case Done(RefundFound(is_done=True, amount=Decimal() as amount)):
            notice, named_amount = _with_amount(tx, notice, amount), amount
    if notice.kind is NoticeKind.UNPAID_CLOSE and heard is not None:
        # It spoke against the books; what the channel says now stands in its place.
        finish(tx, question.notice_id, heard, stored)
        return heard.result
    _match_money(tx, notice)
    result = decide(tx, notice, question.notice_id, stored, named_amount)
    if result in FINAL_RESULTS and _has_no_order(tx, notice):
        # No other notice may wait for the order of money that the channel told of.
        store.finish_notice(tx, question.notice_id, NoticeState.UNMATCHED, "NO_SUCH_ORDER")
        return Result.UNMATCHED
    return result


def _is_of(trade: Trade, notice: TradeNotice) -> bool:
    return (trade.trade_no, trade.out_trade_no) == (notice.trade_no, notice.out_trade_no)


def _with_amount(tx: Tx, notice: TradeNotice, amount: Decimal) -> TradeNotice:
    """``notice`` with a sum if it told none: what is known, and this refund."""
    if notice.refund_fee:
        return notice
    orders.lock_order_of_trade(tx, notice.out_trade_no, PROVIDER, notice.trade_no)
    payment, _ = store.lock_payment(tx, PROVIDER, notice.trade_no)
    if payment is None:
        return notice
    if revisit_store.read_refund_done(tx, payment.id, notice.out_biz_no) is not None:
        return replace(notice, refund_fee=payment.refunded_amount)
    return replace(notice, refund_fee=payment.refunded_amount + amount)


def _match_money(tx: Tx, notice: TradeNotice) -> None:
    """Give money that was without an order to the one that is there now, before what is told of
    it; a payment's own notice does that itself."""
    if notice.kind is NoticeKind.PAYMENT:
        return
    order = orders.lock_order_of_trade(tx, notice.out_trade_no, PROVIDER, notice.trade_no)
    payment, _ = store.lock_payment(tx, PROVIDER, notice.trade_no)
    if order is not None and payment is not None and payment.state is PaymentState.UNMATCHED:
        settle_known(tx, order, payment, told_by=notice.notify_id)


def _has_no_order(tx: Tx, notice: TradeNotice) -> bool:
    payment, _ = store.lock_payment(tx, PROVIDER, notice.trade_no)
    return payment is not None and payment.state is PaymentState.UNMATCHED
