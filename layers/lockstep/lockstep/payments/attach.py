"""Give money that fits no order to the order that a person names."""

from functools import partial

from lockstep.alipay.model import NoticeKind, TradeReport
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.observability import logger
from lockstep.orders import store as orders
from lockstep.orders.model import OrderNotFound, TradedOrder
from lockstep.payments import revisit_store, store
from lockstep.payments.model import (
    ACTOR,
    PROVIDER,
    Attached,
    AttachOutcome,
    OrderTakesNone,
    Payment,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
    Settled,
)
from lockstep.payments.settle import settle


def attach(trade_no: str, order_no: str, actor: str, reason: str) -> AttachOutcome:
    """Make an UNMATCHED payment that order's, and settle it as if its notice came now.

    Guard: UNMATCHED, and the order takes it: money that would only go back stays where it is, and
    a person who wants that says so (`give_back`). Effect: the order PAID, or REINSTATE_PENDING;
    what waits in the inbox for this trade is decided at the next sweep. Lock order: inbox, order,
    payment. Repeat: Attached(repeated=True). ``actor`` and ``reason`` are kept with the order's
    event, and in the log.
    """
    outcome = in_transaction(
        partial(_attach, trade_no=trade_no, order_no=order_no, actor=actor, reason=reason)
    )
    logger.info(
        "payment attached by hand",
        trade_no=trade_no,
        order_no=order_no,
        actor=actor,
        reason=reason,
        outcome=type(outcome).__name__,
    )
    return outcome


def _attach(tx: Tx, trade_no: str, order_no: str, actor: str, reason: str) -> AttachOutcome:
    revisit_store.wake_notices(tx, PROVIDER, trade_no)  # first: the inbox goes before the order
    order = orders.lock_order_of_trade(tx, order_no)
    payment, _ = store.lock_payment(tx, PROVIDER, trade_no)
    if payment is None:
        raise RollBack(PaymentNotFound())
    if order is None:
        raise RollBack(OrderNotFound())
    if payment.order_id == order.id:
        return Attached(payment.state, repeated=True)
    if payment.state is not PaymentState.UNMATCHED:
        raise RollBack(PaymentNotWaiting(payment.state))
    settled = settle_known(tx, order, payment, f"{actor}: {reason}", actor)
    state = PaymentState(settled.result)
    if state is PaymentState.REFUND_PENDING:  # a slip of the pen must not give a sale away
        raise RollBack(OrderTakesNone(order.status, settled.reason))
    return Attached(state, repeated=False)


def settle_known(
    tx: Tx, order: TradedOrder, payment: Payment, told_by: str, actor: str = ACTOR
) -> Settled:
    """Settle an UNMATCHED payment with ``order``, both locked, by what was said when it came."""
    receipt = revisit_store.read_receipt(tx, payment.id)
    report = TradeReport(
        kind=NoticeKind.PAYMENT,
        out_trade_no=receipt.out_trade_no,
        trade_no=payment.trade_no,
        total_amount=payment.amount,
        refund_fee=None,
        out_biz_no=None,
        gmt_payment=receipt.gateway_paid_at,
        gmt_close=receipt.finished_at,
        is_finished=receipt.finished_at is not None,
        told_by=told_by,
    )
    return settle(tx, report, order, payment, actor)
