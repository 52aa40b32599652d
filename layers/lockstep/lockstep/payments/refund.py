"""Try a refund: claim it, ask the channel once, record what that came to.

    claim (transaction) -> question (nothing open, nothing locked) -> conclusion (transaction)

A process may die anywhere. Before the claim's commit nothing happened; after it the row is CALLING
or UNKNOWN under a lease, and whoever comes when that is over asks the channel before anything else.
Number and amount are the row's, so that no try can become a second refund.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from lockstep.db.errors import Contended
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.observability import count
from lockstep.orders import store as orders
from lockstep.orders.model import LockedOrder
from lockstep.payments import refund_store, refundable_store
from lockstep.payments.end_refund import complete, give_up
from lockstep.payments.model import Payment, PaymentState
from lockstep.payments.note_refund import book_total
from lockstep.payments.owe_refund import owe_anew
from lockstep.payments.refund_model import SYSTEM, Refund, RefundablePayment, RefundState
from lockstep.payments.refund_talk import (
    ASK_AFTER_SECONDS,
    BALANCE_SHORT,
    WINDOW_OVER,
    Never,
    NotYet,
    Question,
    Task,
    Unclear,
    Verdict,
    WentBack,
    ask,
    question_about,
)

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Longer than a try takes; a process that died under it leaves the refund to the next.
LEASE_SECONDS: Final = 60
# The channel wants them so far apart.
_APART_MS: Final = 3000
_STEP_SECONDS: Final = 1
EXCEEDS_REFUNDABLE: Final = "EXCEEDS_REFUNDABLE"


class Tried(StrEnum):
    """What a try came to."""

    DONE = "DONE"
    UNKNOWN = "UNKNOWN"
    DUE = "DUE"
    FAILED = "FAILED"
    ENDED = "ENDED"  # before: done, or given up
    NOT_DUE = "NOT_DUE"  # somebody else has it, or it is to wait
    DEFERRED = "DEFERRED"  # another refund of the trade is under way
    OVERTAKEN = "OVERTAKEN"  # somebody else concluded it, or claimed it after us


@dataclass(frozen=True, slots=True)
class _Locked:
    """A refund with all that decides about it."""

    order: LockedOrder | None
    payment: RefundablePayment
    refunds: list[Refund]
    refund: Refund


def try_refund(refund_id: int, connect: Callable[[], "Gateway"]) -> Tried:
    """Try the refund once, if it is due and nothing else of its trade is under way.

    Guard: see `_claim_call` and `_claim_query`. Effect: CALLING, then DONE, UNKNOWN, DUE or FAILED
    with what follows from it. Lock order: order, payment. Repeat: a refund that has ended stays as
    it is; one that is claimed is not tried by another before its lease is over. Raises TryAgain.
    """
    channel = connect()  # before anything is written: settings that do not work burn no lease
    claimed = in_transaction(partial(_claim, refund_id=refund_id), within_seconds=_STEP_SECONDS)
    if not isinstance(claimed, Task):
        return claimed
    verdict = ask(channel, claimed)
    _count(verdict)
    conclude = partial(_conclude, task=claimed, verdict=verdict)
    return in_transaction(conclude, within_seconds=_STEP_SECONDS)


def _lock(tx: Tx, refund_id: int) -> _Locked | None:
    place = refundable_store.read_refund_place(tx, refund_id)
    if place is None:
        return None
    payment_id, order_id = place
    order = None if order_id is None else orders.lock_order(tx, order_id)
    payment = refundable_store.lock_refundable(tx, payment_id)
    if payment.order_id != order_id:
        raise Contended("the payment found its order meanwhile")
    refunds = refund_store.read_refunds(tx, payment_id)
    return _Locked(order, payment, refunds, next(r for r in refunds if r.id == refund_id))


def _claim(tx: Tx, refund_id: int) -> Task | Tried:
    locked = _lock(tx, refund_id)
    if locked is None or not locked.refund.is_open:
        return Tried.ENDED
    if not locked.refund.is_due:
        return Tried.NOT_DUE
    if locked.refund.state is RefundState.DUE:
        return _claim_call(tx, locked)
    return _claim_query(tx, locked)


def _claim_call(tx: Tx, locked: _Locked) -> Task | Tried:
    """Guard: DUE; it can still be done; no other refund of the trade is in flight, and the last one
    was asked for 3 s ago or more."""
    payment, refund = locked.payment, locked.refund
    code = _why_never(payment, refund)
    if code is not None:
        refundable_store.mark_payment_refunding(tx, payment.id)
        _never_call(tx, locked, code)
        return Tried.FAILED
    calls = [r.called_ms_ago for r in locked.refunds if r.called_ms_ago is not None]
    others_in_flight = any(other.is_in_flight for other in locked.refunds)
    if others_in_flight or min(calls, default=_APART_MS) < _APART_MS:
        refund_store.defer(tx, refund.id, ASK_AFTER_SECONDS)
        return Tried.DEFERRED
    if not refund_store.claim_call(tx, refund.id, LEASE_SECONDS):
        return Tried.NOT_DUE
    refundable_store.mark_payment_refunding(tx, payment.id)
    return _task(locked, Question.REFUND)


def _why_never(payment: RefundablePayment, refund: Refund) -> str | None:
    """Why the channel need not be asked."""
    if payment.refunded_amount + refund.amount > payment.amount:
        return EXCEEDS_REFUNDABLE  # somebody was quicker, in the merchant's console
    return WINDOW_OVER if payment.is_finished else None


def _never_call(tx: Tx, locked: _Locked, code: str) -> None:
    """Nobody asked for the refund of money that no order took, so nobody need be asked when the
    merchant's console shrank it: what is left is owed in its place."""
    payment, refund = locked.payment, locked.refund
    is_ours = refund.requested_by == SYSTEM and payment.state is not PaymentState.APPLIED
    if code != EXCEEDS_REFUNDABLE or not is_ours:
        give_up(tx, locked.order, payment, locked.refunds, refund, code)
        return
    if refund_store.mark_failed(tx, refund.id, refund.tries, code):
        rest = payment.amount - payment.refunded_amount
        if rest:
            owe_anew(tx, payment, locked.refunds, rest, refund.reason or payment.state)


def _claim_query(tx: Tx, locked: _Locked) -> Task | Tried:
    """Guard: CALLING past its lease, or UNKNOWN; asked for 10 s ago or more."""
    refund = locked.refund
    if (refund.called_ms_ago or 0) < ASK_AFTER_SECONDS * 1000:
        refund_store.defer(tx, refund.id, ASK_AFTER_SECONDS)
        return Tried.DEFERRED
    if not refund_store.claim_query(tx, refund.id, LEASE_SECONDS):
        return Tried.NOT_DUE
    return _task(locked, question_about(refund.code))


def _task(locked: _Locked, question: Question) -> Task:
    refund = locked.refund
    return Task(
        refund_id=refund.id,
        tries=refund.tries + 1,
        question=question,
        trade_no=locked.payment.trade_no,
        out_request_no=refund.out_request_no,
        amount=refund.amount,
        reason=refund.reason or refund.out_request_no,
        code=refund.code,
    )


def _conclude(tx: Tx, task: Task, verdict: Verdict) -> Tried:
    """Record ``verdict``. That money went back is true whoever claimed the refund since; anything
    else counts only under our own claim."""
    locked = _lock(tx, task.refund_id)
    if locked is None:
        raise InvariantBroken(f"refund {task.refund_id} is gone though it was tried")
    refund = replace(locked.refund, tries=task.tries)
    match verdict:
        case WentBack(total):
            payment = complete(tx, locked.order, locked.payment, refund)
            _book_total(tx, locked, payment, total, refund.amount)
            return Tried.DONE
        case Unclear(code, seconds):
            ours = refund_store.mark_unknown(tx, refund.id, task.tries, code, seconds)
            return Tried.UNKNOWN if ours else Tried.OVERTAKEN
        case NotYet(code, seconds):
            ours = refund_store.mark_due(tx, refund.id, task.tries, code, seconds)
            return Tried.DUE if ours else Tried.OVERTAKEN
        case Never(code, total):
            known = _book_total(tx, locked, locked.payment, total, Decimal())
            ours = give_up(tx, locked.order, known, locked.refunds, refund, code)
            return Tried.FAILED if ours else Tried.OVERTAKEN
        case _:
            assert_never(verdict)


def _book_total(
    tx: Tx, locked: _Locked, payment: Payment, total: Decimal | None, ours: Decimal
) -> Payment:
    """Book what went back in the merchant's console and was told by nobody, if ``total`` shows it,
    with ``ours`` in it; the payment as it is now."""
    if total is None:
        return payment
    if total > payment.amount:
        count("TradeConflict")
        return payment
    others = [other for other in locked.refunds if other.id != locked.refund.id]
    if not book_total(tx, locked.order, payment, others, total, named_amount=ours):
        return payment
    return replace(payment, refunded_amount=max(payment.refunded_amount, total))


def _count(verdict: Verdict) -> None:
    """What somebody should look at although it is tried again."""
    match verdict:
        case NotYet(code) if code == BALANCE_SHORT:
            count("RefundBalanceShort")
        case NotYet(is_our_fault=True):
            count("RefundMisconfigured")
        case Unclear(code):
            count("RefundAnswerLost" if code is None else "RefundUnclear")
        case _:
            pass
