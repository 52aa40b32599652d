"""Ask for a refund: its row, with number and amount for ever, and the command to try it."""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from lockstep import fingerprint
from lockstep.db.errors import DuplicateKey
from lockstep.db.transaction import Tx, in_transaction
from lockstep.messaging import outbox
from lockstep.messaging.contracts import RefundPayment
from lockstep.observability import correlation_id
from lockstep.payments import refund_store, refundable_store
from lockstep.payments.model import ACTOR, PROVIDER, Payment, PaymentState
from lockstep.payments.refund_model import SYSTEM, Refund, RefundState


def owe(
    tx: Tx,
    payment_id: int,
    out_request_no: str,
    amount: Decimal,
    *,
    requested_by: str,
    reason: str,
    request_hash: str | None = None,
) -> bool:
    """Owe ``amount`` yuan of a payment that the caller has locked, or just inserted.

    Effect: a refund, DUE now, and RefundPayment. What the channel is told, ``reason`` among it, is
    kept: under one number it must never be told anything else. Repeat: False, and no change.
    """
    try:
        refund_id = refund_store.insert_due(
            tx, payment_id, out_request_no, amount, requested_by, reason, request_hash
        )
    except DuplicateKey as asked_before:
        if asked_before.key != "uk_refund_request":
            raise
        return False
    stage_try(tx, refund_id, payment_id)
    return True


def owe_the_rest(tx: Tx, payment: Payment, reason: str, *, requested_by: str = SYSTEM) -> bool:
    """Owe what is left of money that no order took, under the number that the trade itself gives.

    Repeat: False, and no change.
    """
    out_request_no = fingerprint.of_automatic_refund(PROVIDER, payment.trade_no)
    rest = payment.amount - payment.refunded_amount
    return rest > 0 and owe(
        tx, payment.id, out_request_no, rest, requested_by=requested_by, reason=reason
    )


def owe_anew(
    tx: Tx,
    payment: Payment,
    refunds: Sequence[Refund],
    amount: Decimal,
    reason: str,
    *,
    requested_by: str = SYSTEM,
) -> bool:
    """Owe ``amount`` yuan of money that no order took, beside its ``refunds``, none of which is
    open: under the next number that the trade gives."""
    ours = sum(refund.requested_by != ACTOR for refund in refunds)
    taken = {refund.out_request_no for refund in refunds}
    # A restored database may have forgotten some, and the channel told it of them since.
    of_trade = partial(fingerprint.of_automatic_refund, PROVIDER, payment.trade_no)
    number = next(each for each in map(of_trade, itertools.count(ours)) if each not in taken)
    return owe(tx, payment.id, number, amount, requested_by=requested_by, reason=reason)


def stage_try(tx: Tx, refund_id: int, payment_id: int) -> None:
    """Stage the command that tries a refund once."""
    command = RefundPayment(refund_id=refund_id, correlation_id=correlation_id())
    outbox.stage_refund(tx, command, payment_id)


def owe_forgotten(payment_id: int, within_seconds: int) -> bool:
    """Ask for the refund of a payment that waits for one which nobody asked for.

    Guard: REFUND_PENDING, and none of its refunds is anything but DONE. Lock order: payment.
    Repeat: False. Raises TryAgain.
    """

    def work(tx: Tx) -> bool:
        payment = refundable_store.lock_refundable(tx, payment_id)
        if payment.state is not PaymentState.REFUND_PENDING:
            return False
        refunds = refund_store.read_refunds(tx, payment_id)
        if any(refund.state is not RefundState.DONE for refund in refunds):
            return False
        return owe_the_rest(tx, payment, payment.reason or payment.state)

    return in_transaction(work, within_seconds=within_seconds)
