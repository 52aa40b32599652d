"""Give money back that waits for a person: it fits no order, or the channel would not refund it."""

from dataclasses import dataclass
from functools import partial

from lockstep.db.transaction import Tx, in_transaction
from lockstep.payments import refund_store, refundable_store, store
from lockstep.payments.model import (
    PROVIDER,
    Payment,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
)
from lockstep.payments.owe_refund import owe_anew, owe_the_rest, stage_try
from lockstep.payments.refund_model import Refund, RefundablePayment, RefundState

_BY_A_PERSON = "operator:"


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The payment, and the refund that an operator asked for, both as they are now."""

    payment: RefundablePayment
    refund: Refund


type GiveBackOutcome = GivenBack | PaymentNotWaiting | PaymentNotFound


def give_back(trade_no: str, operator: str, reason: str) -> GiveBackOutcome:
    """Have the channel asked, for the first time or again, to give a payment back.

    Guard: UNMATCHED, or REFUND_FAILED. Effect: UNMATCHED becomes REFUND_PENDING with a refund that
    is DUE; REFUND_FAILED becomes REFUNDING, and the refund that failed is DUE again, with its
    number and amount, if that still is all that is left, or else a new one for the rest. Lock
    order: payment. Repeat: the same refund. Raises TryAgain.
    """
    return in_transaction(
        partial(_give_back, trade_no=trade_no, operator=_BY_A_PERSON + operator, reason=reason)
    )


def _give_back(tx: Tx, trade_no: str, operator: str, reason: str) -> GiveBackOutcome:
    payment, _ = store.lock_payment(tx, PROVIDER, trade_no)
    if payment is None:
        return PaymentNotFound()
    match payment.state:
        case PaymentState.UNMATCHED:
            refundable_store.give_unmatched_back(tx, payment.id)
            owe_the_rest(tx, payment, reason, requested_by=operator)
        case PaymentState.REFUND_FAILED:
            refundable_store.mark_payment_refunding(tx, payment.id)
            _ask_again(tx, payment, operator, reason)
        case _:
            pass
    return _as_it_is(tx, payment.id)


def _ask_again(tx: Tx, payment: Payment, operator: str, reason: str) -> None:
    rest = payment.amount - payment.refunded_amount
    refunds = refund_store.read_refunds(tx, payment.id)
    for refund in reversed(refunds):
        if refund.state is RefundState.FAILED and refund.amount == rest:
            refund_store.ask_again(tx, refund.id, operator)
            stage_try(tx, refund.id, payment.id)
            return
    owe_anew(tx, payment, refunds, rest, reason, requested_by=operator)


def _as_it_is(tx: Tx, payment_id: int) -> GiveBackOutcome:
    payment = refundable_store.lock_refundable(tx, payment_id)
    if payment is None:
        return PaymentNotFound()
    asked = [
        refund
        for refund in refund_store.read_refunds(tx, payment_id)
        if refund.requested_by.startswith(_BY_A_PERSON)
    ]
    if payment.state is PaymentState.APPLIED or not asked:
        return PaymentNotWaiting(payment.state)
    return GivenBack(payment, asked[-1])
