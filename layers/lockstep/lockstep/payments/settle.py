"""What a verified notice does, given its order and its payment, both locked by the caller."""

from dataclasses import dataclass
from typing import Final, assert_never

from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.observability import count
from lockstep.orders.close import close
from lockstep.orders.model import CloseReason, OrderStatus, TradedOrder
from lockstep.orders.pay import confirm_hold, pay
from lockstep.orders.refund import record_refund
from lockstep.payments import read_store, store
from lockstep.payments.model import Payment, PaymentState, RefundReason, Result

PROVIDER: Final = "alipay"
ACTOR: Final = "alipay"

_UNPAID: Final = frozenset({OrderStatus.PENDING_PAYMENT, OrderStatus.PAYMENT_PROCESSING})


@dataclass(frozen=True, slots=True)
class Settled:
    """``reason`` is kept in the inbox; None where the result says it all."""

    result: Result
    reason: str | None = None


def settle(
    tx: Tx, notice: TradeNotice, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """Decide one notice. ``order`` is None if no order has its out_trade_no, ``payment`` if its
    trade is not known."""
    if payment is not None and _contradicts(notice, order, payment):
        count("TradeConflict")
        return Settled(Result.CONFLICT, "TRADE_BOUND_OTHERWISE")
    match notice.kind:
        case NoticeKind.PAYMENT:
            return _take_money(tx, notice, order, payment)
        case NoticeKind.REFUND:
            return _note_refund(tx, notice, order, payment)
        case NoticeKind.FINISHED:
            return _note_finished(tx, notice, payment)
        case NoticeKind.UNPAID_CLOSE:
            return _note_unpaid_close(tx, notice, order, payment)
        case NoticeKind.OTHER:
            return Settled(Result.NOTED)
        case _:
            assert_never(notice.kind)


def _contradicts(notice: TradeNotice, order: TradedOrder | None, payment: Payment) -> bool:
    """One trade has one amount and one order, for ever."""
    if payment.amount != notice.total_amount:
        return True
    return payment.order_id is not None and (order is None or order.id != payment.order_id)


def _take_money(
    tx: Tx, notice: TradeNotice, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    if payment is not None and payment.state is not PaymentState.UNMATCHED:
        confirm_again(tx, notice.trade_no)
        return Settled(Result.REPLAYED)
    if order is None:
        if payment is None:
            store.insert_payment(tx, PROVIDER, notice, None, PaymentState.UNMATCHED, None)
        count("MoneyUnmatched")
        return Settled(Result.UNMATCHED, "NO_SUCH_ORDER")
    reason = _pay_or_reason(tx, notice, order)
    state = PaymentState.REFUND_PENDING if reason else PaymentState.APPLIED
    if order.has_attempt:
        store.mark_attempt_paid(tx, notice.out_trade_no)
    if payment is None:
        store.insert_payment(tx, PROVIDER, notice, order.id, state, reason)
    else:
        if not store.match_payment(tx, payment.id, order.id, state, reason):
            raise InvariantBroken(f"payment {payment.id} was matched though it is locked")
        if payment.refunded_amount and reason is None:  # a part: in whole, it would be REFUNDED
            record_refund(tx, order, payment.refunded_amount, ACTOR, _evidence(notice))
    return Settled(Result.REFUND_PENDING if reason else Result.APPLIED, reason)


def _pay_or_reason(tx: Tx, notice: TradeNotice, order: TradedOrder) -> RefundReason | None:
    """None if the money paid the order, else why it must go back."""
    if notice.total_amount != order.pay_amount:
        count("AmountMismatch")
        return RefundReason.AMOUNT_MISMATCH
    if pay(tx, order, notice.total_amount, ACTOR, _evidence(notice)):
        count("OrderPaid")
        return None
    match order.status:
        case OrderStatus.RESERVING:
            reason = RefundReason.NOT_PAYABLE
        case OrderStatus.CLOSED:
            reason = RefundReason.LATE_PAYMENT
        case _:
            reason = RefundReason.SECOND_PAYMENT
    count("MoneyToRefund")
    return reason


def confirm_again(tx: Tx, trade_no: str) -> None:
    """Stage the confirm that a repeated payment notice shows to be missing, if it still is."""
    unconfirmed = read_store.read_unconfirmed_hold(tx, PROVIDER, trade_no)
    if unconfirmed is not None:
        confirm_hold(tx, *unconfirmed)


def _note_refund(
    tx: Tx, notice: TradeNotice, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """Money went back, by our wish or in the merchant's console. Never a payment."""
    if payment is None:
        return Settled(Result.QUERY_DUE, "REFUND_OF_UNKNOWN_PAYMENT")
    if not notice.refund_fee:
        return Settled(Result.QUERY_DUE, "REFUND_WITHOUT_AMOUNT")
    if notice.refund_fee > payment.amount:
        count("TradeConflict")
        return Settled(Result.CONFLICT, "REFUNDED_MORE_THAN_PAID")
    store.raise_refunded_amount(tx, payment.id, notice.refund_fee)
    if payment.state is PaymentState.APPLIED and order is not None:
        record_refund(tx, order, notice.refund_fee, ACTOR, _evidence(notice))
    else:
        store.mark_payment_refunded(tx, payment.id)
    if notice.is_finished:
        store.mark_finished(tx, payment.id, notice.gmt_close)
    return Settled(Result.REFUND_RECORDED)


def _note_finished(tx: Tx, notice: TradeNotice, payment: Payment | None) -> Settled:
    """The refund window is over: months after a payment, or at once for a product without
    refunds."""
    if payment is None:
        return Settled(Result.QUERY_DUE, "FINISHED_UNKNOWN_PAYMENT")
    store.mark_finished(tx, payment.id, notice.gmt_close)
    return Settled(Result.NOTED)


def _note_unpaid_close(
    tx: Tx, notice: TradeNotice, order: TradedOrder | None, payment: Payment | None
) -> Settled:
    """The channel closed an attempt: the order follows, unless another may still be paid or we
    asked."""
    if payment is not None:
        return Settled(Result.QUERY_DUE, "CLOSED_THOUGH_PAID")
    if order is None:
        return Settled(Result.UNMATCHED, "NO_SUCH_ORDER")
    if order.has_attempt:
        asked_for = store.close_asked_attempt(tx, notice.out_trade_no)
        if asked_for or not store.close_open_attempt(tx, notice.out_trade_no):
            return Settled(Result.NOTED)
    reason = CloseReason.CANCELLED if order.cancel_requested_at else CloseReason.GATEWAY_CLOSED
    if order.status in _UNPAID and close(tx, order, reason, ACTOR):
        return Settled(Result.ORDER_CLOSED)
    return Settled(Result.NOTED)


def _evidence(notice: TradeNotice) -> dict[str, str]:
    return {"trade_no": notice.trade_no, "notify_id": notice.notify_id}
