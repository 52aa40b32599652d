"""Let money that came after its order had expired revive it, or send it back."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.observability import count
from lockstep.orders import store as orders
from lockstep.orders.model import LockedOrder, OrderStatus, SoldOut
from lockstep.orders.refund import record_refund
from lockstep.orders.reinstate import take_up
from lockstep.orders.turn import take_turn_of
from lockstep.payments import refundable_store, reinstate_store
from lockstep.payments.model import (
    NothingLate,
    PaymentState,
    RefundReason,
    Reinstated,
    ReinstateOutcome,
    SentBack,
)
from lockstep.payments.owe_refund import owe_the_rest
from lockstep.payments.reinstate_store import LatePayment

ACTOR: Final = "system:reserve_stock"


def reinstate(order_id: int) -> ReinstateOutcome:
    """Settle every REINSTATE_PENDING payment of an order.

    Guard: CLOSED/EXPIRED, and its stock can be held afresh. Effect: the earliest payment APPLIED,
    the order PAID with a new hold and ConfirmStock, the old hold given back if it still was held;
    the other payments REFUND_PENDING. Where stock is gone all are. Lock order: hot turn, order,
    payments, reservation, SKUs ascending. Repeat: NothingLate. Raises TurnTaken.
    """
    outcome = in_transaction(partial(_reinstate, order_id=order_id))
    if isinstance(outcome, SoldOut):
        outcome = in_transaction(partial(_send_all_back, order_id=order_id))
    count(type(outcome).__name__)
    return outcome


def _reinstate(tx: Tx, order_id: int) -> ReinstateOutcome | SoldOut:
    take_turn_of(tx, order_id)
    order = orders.lock_order(tx, order_id)
    late = reinstate_store.read_late_payments(tx, order_id)
    if not late:
        return NothingLate()
    if order is None:
        raise InvariantBroken(f"order {order_id}, which has a payment, does not exist")
    chosen = _earliest(late)
    if chosen is None:
        return _send_back(tx, late, RefundReason.LATE_PAYMENT)
    _send_back(tx, [other for other in late if other is not chosen], RefundReason.SECOND_PAYMENT)
    _apply(tx, order, chosen)
    return Reinstated(chosen.id)


def _earliest(late: Iterable[LatePayment]) -> LatePayment | None:
    """The one that came first, of those of which something is left."""
    whole = (payment for payment in late if payment.refunded_amount < payment.amount)
    return min(whole, key=lambda payment: (payment.gateway_paid_at, payment.id), default=None)


def _apply(tx: Tx, order: LockedOrder, payment: LatePayment) -> None:
    _settle(tx, payment, PaymentState.APPLIED, None)
    evidence = {
        "trade_no": payment.trade_no,
        "gateway_paid_at": payment.gateway_paid_at.isoformat(),
    }
    if take_up(tx, order, payment.amount, ACTOR, evidence) is not None:
        raise RollBack(SoldOut())
    if payment.refunded_amount:
        now_paid = replace(order, status=OrderStatus.PAID)
        record_refund(tx, now_paid, payment.refunded_amount, ACTOR, evidence)


def _send_all_back(tx: Tx, order_id: int) -> ReinstateOutcome:
    orders.lock_order(tx, order_id)
    late = reinstate_store.read_late_payments(tx, order_id)
    return _send_back(tx, late, RefundReason.LATE_PAYMENT) if late else NothingLate()


def _send_back(tx: Tx, late: Sequence[LatePayment], reason: RefundReason) -> SentBack:
    for payment in late:
        _settle(tx, payment, PaymentState.REFUND_PENDING, reason)
        count("MoneyToRefund")
        if not owe_the_rest(tx, payment, reason):  # all of it went back while it waited
            refundable_store.mark_payment_refunded(tx, payment.id)
    return SentBack(len(late))


def _settle(tx: Tx, payment: LatePayment, state: PaymentState, reason: RefundReason | None) -> None:
    if not reinstate_store.settle_late_payment(tx, payment.id, state, reason):
        raise InvariantBroken(f"payment {payment.id} was settled though it is locked")
