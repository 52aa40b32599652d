"""What a report that money went back does, given its order and its payment, both locked.

The channel tells a trade's total, and of which refund this is the news. So a report first completes
that refund, if it is one of ours, by its number. What the total then has more than we know went
back in the merchant's console, unless another refund of ours is in flight: then only its end can
tell the two apart.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from lockstep.alipay.model import TradeReport
from lockstep.db.transaction import Tx
from lockstep.observability import count
from lockstep.orders.model import TradedOrder
from lockstep.payments import refund_store, store
from lockstep.payments.end_refund import complete, went_back
from lockstep.payments.model import ACTOR, Payment, Result, Settled
from lockstep.payments.refund_model import Refund, RefundState

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
    named = next((r for r in refunds if r.out_request_no == report.out_biz_no), None)
    news = None if _is_counted(payment, refunds, total) else named
    if max(total, _sum_with(payment, news)) > payment.amount:
        count("TradeConflict")
        return Settled(Result.CONFLICT, "REFUNDED_MORE_THAN_PAID")
    if news is not None:
        payment = complete(tx, order, payment, news)
    if report.is_finished:
        store.mark_finished(tx, payment.id, report.gmt_close)
    in_flight = [r for r in refunds if r.is_in_flight and r is not named]
    excess = total - payment.refunded_amount
    if excess > 0 and in_flight:
        _hurry(tx, in_flight)
        return Settled(Result.QUERY_DUE, "REFUND_IN_FLIGHT")
    if excess > 0:
        number = _number(report.out_biz_no, named, total)
        refund_store.insert_done(tx, payment.id, number, excess, ACTOR, _TOLD)
        went_back(tx, order, payment, number, excess)
    return Settled(Result.REFUND_RECORDED)


def _is_counted(payment: Payment, refunds: Sequence[Refund], total: Decimal) -> bool:
    """A later total was told first, and with it came all that went back before."""
    was_told = any(refund.requested_by == ACTOR for refund in refunds)
    return was_told and total <= payment.refunded_amount


def _sum_with(payment: Payment, named: Refund | None) -> Decimal:
    """What will have gone back once the refund that the report names is done."""
    is_news = named is not None and named.state is not RefundState.DONE
    return payment.refunded_amount + (named.amount if named and is_news else 0)


def _hurry(tx: Tx, in_flight: Sequence[Refund]) -> None:
    """Have the channel asked about them now. One that is being called ends by itself."""
    for refund in in_flight:
        if refund.state is RefundState.UNKNOWN:
            refund_store.defer(tx, refund.id, 0)


def _number(told: str | None, named: Refund | None, total: Decimal) -> str:
    """The number of a refund that was not ours: as told, or by the total that it led to."""
    return told if told and named is None else f"X{int(total * 100)}"
