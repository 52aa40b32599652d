"""Give money back that waits for a person: it fits no order, or the channel would not refund it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from lockstep import fingerprint
from lockstep.db.transaction import Tx, in_transaction
from lockstep.payments import refund_store, refundable_store, store
from lockstep.payments.ask_refund import RefundKeyReused, RefundTooLarge
from lockstep.payments.model import (
    PROVIDER,
    Payment,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
)
from lockstep.payments.owe_refund import owe, owe_anew, stage_try
from lockstep.payments.refund_model import Refund, RefundablePayment, RefundState, of_number

_BY_A_PERSON = "operator:"
_WAITING = frozenset({PaymentState.UNMATCHED, PaymentState.REFUND_FAILED})


@dataclass(frozen=True, slots=True)
class GiveBack:
    """POST /ops/payments/{trade_no}/refund after its body was checked. ``amount`` None: all that is
    left. An amount comes with its key: without one, a request that is sent again would be another
    refund. A key belongs to one content."""

    trade_no: str
    operator: str
    reason: str
    amount: Decimal | None = None
    idempotency_key: str = ""

    @property
    def actor(self) -> str:
        return _BY_A_PERSON + self.operator

    @property
    def out_request_no(self) -> str:
        """Of a part; what is left has the number that the trade gives."""
        return fingerprint.of_asked_refund(self.trade_no, self.idempotency_key)


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The payment, and the refund that an operator asked for, both as they are now."""

    payment: RefundablePayment
    refund: Refund


type GiveBackOutcome = (
    GivenBack | RefundTooLarge | RefundKeyReused | PaymentNotWaiting | PaymentNotFound
)


def give_back(asked: GiveBack) -> GiveBackOutcome:
    """Have the channel asked, for the first time or again, to give a payment back.

    An amount is for money of which a part went back unknown to us: a new refund, no more than we
    know to be left; when it is done and something is left still, a person must see to that again.

    Guard: UNMATCHED, or REFUND_FAILED. Effect: UNMATCHED becomes REFUND_PENDING with a refund that
    is DUE; REFUND_FAILED becomes REFUNDING, and the refund that failed is DUE again, with its
    number and amount, if that still is all that is left, or else a new one for the rest. Lock
    order: payment. Repeat: the same refund. Raises TryAgain.
    """
    return in_transaction(partial(_give_back, asked=asked))


def _give_back(tx: Tx, asked: GiveBack) -> GiveBackOutcome:
    payment, _ = store.lock_payment(tx, PROVIDER, asked.trade_no)
    if payment is None:
        return PaymentNotFound()
    refunds = refund_store.read_refunds(tx, payment.id)
    known = of_number(refunds, asked.out_request_no)
    if known is not None and known.amount != asked.amount:
        return RefundKeyReused()
    if known is not None or (asked.amount is None and payment.state not in _WAITING):
        return _as_it_is(tx, payment.id, known)
    if payment.state not in _WAITING:
        return PaymentNotWaiting(payment.state)
    rest = payment.amount - payment.refunded_amount
    if asked.amount is not None and asked.amount > rest:
        return RefundTooLarge(rest)
    if payment.state is PaymentState.UNMATCHED:
        refundable_store.give_unmatched_back(tx, payment.id)
    else:
        refundable_store.mark_payment_refunding(tx, payment.id)
    if asked.amount is None:
        _ask_for_the_rest(tx, payment, refunds, rest, asked)
    else:
        number = asked.out_request_no
        owe(tx, payment.id, number, asked.amount, requested_by=asked.actor, reason=asked.reason)
    return _as_it_is(tx, payment.id)


def _ask_for_the_rest(
    tx: Tx, payment: Payment, refunds: Sequence[Refund], rest: Decimal, asked: GiveBack
) -> None:
    for refund in reversed(refunds):
        if refund.state is RefundState.FAILED and refund.amount == rest:
            refund_store.ask_again(tx, refund.id, asked.actor)
            stage_try(tx, refund.id, payment.id)
            return
    owe_anew(tx, payment, refunds, rest, asked.reason, requested_by=asked.actor)


def _as_it_is(tx: Tx, payment_id: int, known: Refund | None = None) -> GiveBackOutcome:
    payment = refundable_store.lock_refundable(tx, payment_id)
    by_people = [
        refund
        for refund in refund_store.read_refunds(tx, payment_id)
        if refund.requested_by.startswith(_BY_A_PERSON)
    ]
    if payment.state is PaymentState.APPLIED or not by_people:
        return PaymentNotWaiting(payment.state)
    return GivenBack(payment, known or by_people[-1])
