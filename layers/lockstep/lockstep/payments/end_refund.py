"""What follows when a refund ends, whoever tells us: our own call, our question, or a notice.

Given the order and the payment, both locked. Whoever comes second changes nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.observability import count
from lockstep.orders import refund as orders
from lockstep.orders.model import LockedOrder, OrderStatus
from lockstep.payments import ledger_store, refund_store, refundable_store
from lockstep.payments.model import ACTOR, PROVIDER, Payment, PaymentState
from lockstep.payments.refund_model import SYSTEM, Refund


def complete[P: Payment](tx: Tx, order: LockedOrder | None, payment: P, refund: Refund) -> P:
    """``refund`` has gone back; the payment as it is now.

    Effect: DONE, the sums of payment and order, a ledger entry, and REFUNDED once nothing is left;
    where something is left of money that no order took, and nobody asked for it, REFUND_FAILED.
    Repeat: no change. Raises InvariantBroken if more went back than was paid.
    """
    if not refund_store.mark_done(tx, refund.id):
        return payment
    known = went_back(tx, order, payment, refund.out_request_no, refund.amount)
    if known.state is not PaymentState.APPLIED and known.refunded_amount < known.amount:
        others = refund_store.read_refunds(tx, known.id)
        if not any(other.is_open for other in others):
            refundable_store.mark_payment_failed(tx, known.id)
    return known


def went_back[P: Payment](
    tx: Tx, order: LockedOrder | None, payment: P, out_request_no: str, amount: Decimal
) -> P:
    """Count ``amount`` yuan, whose row has just become DONE; the payment as it is now."""
    if not refundable_store.add_refunded(tx, payment.id, amount):
        raise InvariantBroken(f"more of payment {payment.id} went back than was paid")
    ledger_store.book_refund(
        tx, payment.order_id, payment.id, PROVIDER, payment.trade_no, out_request_no, amount
    )
    refunded = payment.refunded_amount + amount
    if payment.state is PaymentState.APPLIED and order is not None:
        evidence = {"trade_no": payment.trade_no, "out_request_no": out_request_no}
        orders.record_refund(tx, order, refunded, ACTOR, evidence)
    else:
        refundable_store.mark_payment_refunded(tx, payment.id)
    return replace(payment, refunded_amount=refunded)


def give_up(
    tx: Tx,
    order: LockedOrder | None,
    payment: Payment,
    refunds: Sequence[Refund],
    refund: Refund,
    code: str,
) -> bool:
    """The channel will not do ``refund``, one of ``refunds``; a person must see to it.

    Guard: it is as it was read. Effect: FAILED; the order goes back to what it was before it was
    REFUNDING, unless the rest of it is still asked for; money that no order took is REFUND_FAILED.
    Repeat: False, and no change.
    """
    if not refund_store.mark_failed(tx, refund.id, refund.tries, code):
        return False
    count("RefundFailed")
    others = [other for other in refunds if other.id != refund.id]
    if payment.state is not PaymentState.APPLIED:
        if not any(other.is_open for other in others):
            refundable_store.mark_payment_failed(tx, payment.id)
    elif (
        order is not None and order.status is OrderStatus.REFUNDING and refundable(payment, others)
    ):
        evidence = {
            "trade_no": payment.trade_no,
            "out_request_no": refund.out_request_no,
            "code": code,
        }
        orders.give_up_refund(tx, order, SYSTEM, "REFUND_FAILED", evidence)
    return True


def refundable(payment: Payment, refunds: Sequence[Refund]) -> Decimal:
    """What of a payment is neither back nor asked for. Never less than nothing, though the
    merchant's console may have given back what was asked for here."""
    asked = sum((refund.amount for refund in refunds if refund.is_open), Decimal())
    return max(payment.amount - payment.refunded_amount - asked, Decimal())
