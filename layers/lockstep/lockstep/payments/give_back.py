"""Give money back that waits for a person: it fits no order, or the channel would not refund it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from lockstep.db.transaction import Tx, in_transaction
from lockstep.payments import refund_store, refundable_store, store
from lockstep.payments.ask_refund import RefundTooLarge
from lockstep.payments.model import (
    PROVIDER,
    Payment,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
)
from lockstep.payments.owe_refund import owe_anew, stage_try
from lockstep.payments.refund_model import Refund, RefundablePayment, RefundState

_BY_A_PERSON = "operator:"
_WAITING = frozenset({PaymentState.UNMATCHED, PaymentState.REFUND_FAILED})


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The payment, and the refund that an operator asked for, both as they are now."""

    payment: RefundablePayment
    refund: Refund


type GiveBackOutcome = GivenBack | RefundTooLarge | PaymentNotWaiting | PaymentNotFound


def give_back(
    trade_no: str, operator: str, reason: str, amount: Decimal | None = None
) -> GiveBackOutcome:
    """Have the channel asked, for the first time or again, to give a payment back.

    ``amount`` is for money of which a part went back unknown to us: a new refund, no more than we
    know to be left; when it is done and something is left still, a person must see to that again.

    Guard: UNMATCHED, or REFUND_FAILED. Effect: UNMATCHED becomes REFUND_PENDING with a refund that
    is DUE; REFUND_FAILED becomes REFUNDING, and the refund that failed is DUE again, with its
    number and amount, if that still is all that is left, or else a new one for the rest. Lock
    order: payment. Repeat: the same refund. Raises TryAgain.
    """
    return in_transaction(
        partial(
            _give_back,
            trade_no=trade_no,
            operator=_BY_A_PERSON + operator,
            reason=reason,
            amount=amount,
        )
    )


def _give_back(
    tx: Tx, trade_no: str, operator: str, reason: str, amount: Decimal | None
) -> GiveBackOutcome:
    payment, _ = store.lock_payment(tx, PROVIDER, trade_no)
    if payment is None:
        return PaymentNotFound()
    if payment.state not in _WAITING:
        return _as_it_is(tx, payment.id)
    rest = payment.amount - payment.refunded_amount
    if amount is not None and amount > rest:
        return RefundTooLarge(rest)
    if payment.state is PaymentState.UNMATCHED:
        refundable_store.give_unmatched_back(tx, payment.id)
    else:
        refundable_store.mark_payment_refunding(tx, payment.id)
    refunds = refund_store.read_refunds(tx, payment.id)
    if amount is None:
        _ask_for_the_rest(tx, payment, refunds, rest, operator, reason)
    else:
        owe_anew(tx, payment, refunds, amount, reason, requested_by=operator)
    return _as_it_is(tx, payment.id)


def _ask_for_the_rest(
    tx: Tx,
    payment: Payment,
    refunds: Sequence[Refund],
    rest: Decimal,
    operator: str,
    reason: str,
) -> None:
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
