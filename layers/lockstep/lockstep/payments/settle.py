"""What a report of the channel does, given its order and its payment, both locked by the caller."""

from dataclasses import replace
from decimal import Decimal
from typing import Final, assert_never

from lockstep.alipay.model import NoticeKind, TradeReport
from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.observability import count
from lockstep.orders.close import close
from lockstep.orders.model import CloseReason, OrderStatus, TradedOrder
from lockstep.orders.pay import confirm_hold, pay
from lockstep.orders.refund import record_refund
from lockstep.orders.reinstate import line_up_again, may_be_reinstated
from lockstep.payments import attempt_store, read_store, store
from lockstep.payments.ledger_store import book_payment
from lockstep.payments.model import (
    ACTOR,
    PROVIDER,
    Payment,
    PaymentState,
    RefundReason,
    Result,
    Settled,
)
from lockstep.payments.note_refund import note_refund
from lockstep.payments.owe_refund import owe_the_rest

CLOSED_THOUGH_PAID: Final = "CLOSED_THOUGH_PAID"

# Money whose refund is still ahead: the channel will not do it once its window is over.
_TO_GO_BACK: Final = frozenset(
    {
        PaymentState.REFUND_PENDING,
        PaymentState.REFUNDING,
        PaymentState.REINSTATE_PENDING,
        PaymentState.UNMATCHED,
    }
)
_UNPAID: Final = frozenset({OrderStatus.PENDING_PAYMENT, OrderStatus.PAYMENT_PROCESSING})


def settle(
    tx: Tx,
    report: TradeReport,
    order: TradedOrder | None,
    payment: Payment | None,
    actor: str = ACTOR,
) -> Settled:
    """Decide one report. ``order`` is None if no order has its out_trade_no, ``payment`` if its
    trade is not known. ``actor`` is who brings the money, for the trail."""
    if payment is not None and _contradicts(report, order, payment):
        count("TradeConflict")
        return Settled(Result.CONFLICT, "TRADE_BOUND_OTHERWISE")
    match report.kind:
        case NoticeKind.PAYMENT:
            return _take_money(tx, report, order, payment, actor)
        case NoticeKind.REFUND:
            return note_refund(tx, report, order, payment)
        case NoticeKind.FINISHED:
            return _note_finished(tx, report, payment)
        case NoticeKind.UNPAID_CLOSE:
            return _note_unpaid_close(tx, report, order, payment)
        case NoticeKind.OTHER:
            return Settled(Result.NOTED)
        case _:
            assert_never(report.kind)


def _contradicts(report: TradeReport, order: TradedOrder | None, payment: Payment) -> bool:
    """One trade has one amount and one order, for ever."""
    if payment.amount != report.total_amount:
        return True
    return payment.order_id is not None and (order is None or order.id != payment.order_id)


def _take_money(
    tx: Tx,
    report: TradeReport,
    order: TradedOrder | None,
    payment: Payment | None,
    actor: str,
) -> Settled:
    if payment is not None and payment.state is not PaymentState.UNMATCHED:
        confirm_again(tx, report.trade_no)
        return Settled(Result.REPLAYED)
    if order is None:
        if payment is None:
            _insert(tx, report, None, PaymentState.UNMATCHED, None)
        count("MoneyUnmatched")
        return Settled(Result.UNMATCHED, "NO_SUCH_ORDER")
    state, reason = _pay_or_keep(tx, report, order, actor)
    if order.has_attempt:
        attempt_store.mark_attempt_paid(tx, report.out_trade_no)
    taken = _record(tx, report, order, payment, state, reason)
    if reason is not None:
        owe_the_rest(tx, taken, reason)
    elif taken.refunded_amount and state is PaymentState.APPLIED:
        # A part: in whole, it would be REFUNDED.
        record_refund(tx, order, taken.refunded_amount, ACTOR, report.evidence)
    if report.is_finished:
        store.mark_finished(tx, taken.id, report.gmt_close)
    return Settled(Result(state), reason)


def _record(
    tx: Tx,
    report: TradeReport,
    order: TradedOrder,
    payment: Payment | None,
    state: PaymentState,
    reason: RefundReason | None,
) -> Payment:
    """The payment, new or matched to its order at last."""
    if payment is None:
        return _insert(tx, report, order.id, state, reason)
    if not store.match_payment(tx, payment.id, order.id, state, reason):
        raise InvariantBroken(f"payment {payment.id} was matched though it is locked")
    return replace(payment, order_id=order.id, state=state)


def _insert(
    tx: Tx,
    report: TradeReport,
    order_id: int | None,
    state: PaymentState,
    reason: RefundReason | None,
) -> Payment:
    """Write the payment down, and in the ledger that its money came."""
    payment_id = store.insert_payment(tx, PROVIDER, report, order_id, state, reason)
    book_payment(tx, order_id, payment_id, PROVIDER, report.trade_no, report.total_amount)
    nothing = Decimal("0.00")
    return Payment(
        payment_id, report.trade_no, order_id, report.total_amount, state, nothing, nothing
    )


def _pay_or_keep(
    tx: Tx, report: TradeReport, order: TradedOrder, actor: str
) -> tuple[PaymentState, RefundReason | None]:
    """What the money is from now on, and why it must go back if it must."""
    if report.total_amount != order.pay_amount:
        count("AmountMismatch")
        return PaymentState.REFUND_PENDING, RefundReason.AMOUNT_MISMATCH
    if pay(tx, order, report.total_amount, actor, report.evidence):
        count("OrderPaid")
        return PaymentState.APPLIED, None
    if may_be_reinstated(order, report.gmt_payment):
        line_up_again(tx, order)
        return PaymentState.REINSTATE_PENDING, None
    match order.status:
        case OrderStatus.RESERVING:
            reason = RefundReason.NOT_PAYABLE
        case OrderStatus.CLOSED:
            reason = RefundReason.LATE_PAYMENT
        case _:
            reason = RefundReason.SECOND_PAYMENT
    count("MoneyToRefund")
    return PaymentState.REFUND_PENDING, reason


def confirm_again(tx: Tx, trade_no: str) -> None:
    """Stage the confirm that a repeated payment notice shows to be missing, if it still is."""
    unconfirmed = read_store.read_unconfirmed_hold(tx, PROVIDER, trade_no)
    if unconfirmed is not None:
        confirm_hold(tx, *unconfirmed)


def _note_finished(tx: Tx, report: TradeReport, payment: Payment | None) -> Settled:
    """The refund window is over: months after a payment, or at once for a product without
    refunds."""
    if payment is None:
        return Settled(Result.QUERY_DUE, "FINISHED_UNKNOWN_PAYMENT")
    newly = store.mark_finished(tx, payment.id, report.gmt_close)
    if newly and (payment.state in _TO_GO_BACK or read_store.has_open_refund(tx, payment.id)):
        count("RefundWindowOver")
    return Settled(Result.NOTED)


def _note_unpaid_close(
    tx: Tx, report: TradeReport, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """The channel closed an attempt: the order follows, unless another may still be paid or we
    asked."""
    if payment is not None:
        count("ClosedThoughPaid")
        return Settled(Result.QUERY_DUE, CLOSED_THOUGH_PAID)
    if order is None:
        return Settled(Result.UNMATCHED, "NO_SUCH_ORDER")
    if order.has_attempt and not attempt_store.close_open_attempt(tx, report.out_trade_no):
        attempt_store.close_asked_attempt(tx, report.out_trade_no)
        return Settled(Result.NOTED)
    reason = CloseReason.CANCELLED if order.cancel_requested_at else CloseReason.GATEWAY_CLOSED
    if order.status in _UNPAID and close(tx, order, reason, ACTOR):
        return Settled(Result.ORDER_CLOSED)
    return Settled(Result.NOTED)
