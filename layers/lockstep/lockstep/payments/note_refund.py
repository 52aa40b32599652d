"""What a report that money went back does, given its order and its payment, both locked."""

from lockstep.alipay.model import TradeReport
from lockstep.db.transaction import Tx
from lockstep.observability import count
from lockstep.orders.model import TradedOrder
from lockstep.orders.refund import record_refund
from lockstep.payments import store
from lockstep.payments.model import ACTOR, Payment, PaymentState, Result, Settled


def note_refund(
    tx: Tx, report: TradeReport, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """Money went back, by our wish or in the merchant's console. Never a payment."""
    if payment is None:
        return Settled(Result.QUERY_DUE, "REFUND_OF_UNKNOWN_PAYMENT")
    if not report.refund_fee:
        return Settled(Result.QUERY_DUE, "REFUND_WITHOUT_AMOUNT")
    if report.refund_fee > payment.amount:
        count("TradeConflict")
        return Settled(Result.CONFLICT, "REFUNDED_MORE_THAN_PAID")
    store.raise_refunded_amount(tx, payment.id, report.refund_fee)
    if payment.state is PaymentState.APPLIED and order is not None:
        record_refund(tx, order, report.refund_fee, ACTOR, report.evidence)
    else:
        store.mark_payment_refunded(tx, payment.id)
    if report.is_finished:
        store.mark_finished(tx, payment.id, report.gmt_close)
    return Settled(Result.REFUND_RECORDED)
