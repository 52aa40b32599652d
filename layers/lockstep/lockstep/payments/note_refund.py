"""What a report that money went back does, given its order and its payment, both locked.

The channel tells a trade's total, and of which refund this is the news. So a report first completes
that refund, if it is one of ours, by its number. What the total then has more than we know went
back in the merchant's console, unless another refund of ours is in flight: then only its end can
tell the two apart. A refund of ours that is done by an answer without a total may have come before
the report or after it: then only the channel can tell how much the refund is that it names.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from lockstep.alipay.model import TradeReport
from lockstep.db.transaction import Tx
from lockstep.observability import count
from lockstep.orders.model import LockedOrder, TradedOrder
from lockstep.payments import refund_store, refundable_store, store
from lockstep.payments.end_refund import complete, went_back
from lockstep.payments.model import ACTOR, Payment, Result, Settled
from lockstep.payments.refund_model import Refund, RefundState, of_number

REFUND_AMONG_OURS: Final = "REFUND_AMONG_OURS"
_TOLD: Final = "told by the channel"


def note_refund(
    tx: Tx, report: TradeReport, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """Money went back, by our wish or in the merchant's console. Never a payment.

    Effect: refunds that are DONE, by as much as the total is more than what was known: totals come
    in any order, and a smaller one is no news. Repeat: no change.
    """
    if payment is None:
        return Settled(Result.QUERY_DUE, "REFUND_OF_UNKNOWN_PAYMENT")
    total = report.refund_fee
    if not total:
        return Settled(Result.QUERY_DUE, "REFUND_WITHOUT_AMOUNT")
    refunds = refund_store.read_refunds(tx, payment.id)
    named = of_number(refunds, report.out_biz_no)
    news = _news(report, total, payment, refunds, named)
    if news is None:
        return Settled(Result.QUERY_DUE, REFUND_AMONG_OURS)
    if max(total, payment.refunded_amount + news) > payment.amount:
        count("TradeConflict")
        return Settled(Result.CONFLICT, "REFUNDED_MORE_THAN_PAID")
    if news:
        payment = _book_named(tx, order, payment, report.out_biz_no or "", named, news)
    if report.is_finished:
        store.mark_finished(tx, payment.id, report.gmt_close)
    others = [refund for refund in refunds if refund is not named]
    named_amount = news if named is None else named.amount
    number = None if named_amount else report.out_biz_no
    if book_total(tx, order, payment, others, total, named_amount=named_amount, number=number):
        return Settled(Result.REFUND_RECORDED)
    return Settled(Result.QUERY_DUE, "REFUND_IN_FLIGHT")


def book_total(
    tx: Tx,
    order: LockedOrder | None,
    payment: Payment,
    others: Sequence[Refund],
    total: Decimal,
    *,
    named_amount: Decimal,
    number: str | None = None,
) -> bool:
    """Book what ``total``, no more than was paid, has more than all refunds that are known.

    ``others`` are all but the refund that it was told with, whose ``named_amount`` is booked.
    Effect: a refund, DONE, of ``number``, or of the total where that is taken or missing. False,
    and nothing booked: while another refund is in flight, nobody can tell the two apart.
    """
    excess = total - payment.refunded_amount
    in_flight = [refund for refund in others if refund.is_in_flight]
    if excess > 0 and in_flight:
        _hurry(tx, in_flight)
        return False
    if excess > 0:
        _book(tx, order, payment, number or f"X{int(total * 100)}", excess)
    if excess > 0 or not _has_unplaced(payment, others, named_amount):
        refundable_store.mark_told(tx, payment.id, total)
    return True


def _book_named(
    tx: Tx,
    order: LockedOrder | None,
    payment: Payment,
    number: str,
    named: Refund | None,
    amount: Decimal,
) -> Payment:
    """Book the refund that a report names: ours, or one that the channel was asked about."""
    if named is not None:
        return complete(tx, order, payment, named)
    return _book(tx, order, payment, number, amount)


def _book(
    tx: Tx, order: LockedOrder | None, payment: Payment, number: str, amount: Decimal
) -> Payment:
    """Book a refund that was not ours."""
    refund_store.insert_done(tx, payment.id, number, amount, ACTOR, _TOLD)
    return went_back(tx, order, payment, number, amount)


def _news(
    report: TradeReport,
    total: Decimal,
    payment: Payment,
    refunds: Sequence[Refund],
    named: Refund | None,
) -> Decimal | None:
    """By how much the refund that is named is more than what is known, apart from the total; None:
    the channel must be asked."""
    if total <= payment.told_amount:
        return Decimal()  # a later total was told first, and with it came all before it
    if named is not None:
        return Decimal() if named.state is RefundState.DONE else named.amount
    if report.out_biz_no is None or total >= payment.amount:
        return Decimal()
    if _has_unplaced(payment, refunds, Decimal()):
        return report.named_amount
    return Decimal()


def _has_unplaced(payment: Payment, others: Sequence[Refund], named_amount: Decimal) -> bool:
    """Whether refunds of ours are done that no total is known to have in it."""
    is_ours = any(r.state is RefundState.DONE and r.requested_by != ACTOR for r in others)
    return is_ours and payment.refunded_amount - named_amount > payment.told_amount


def _hurry(tx: Tx, in_flight: Sequence[Refund]) -> None:
    """Have the channel asked about them now. One that is being called ends by itself."""
    for refund in in_flight:
        if refund.state is RefundState.UNKNOWN:
            refund_store.defer(tx, refund.id, 0)
