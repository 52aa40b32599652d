"""Say RefundPayment again for a refund that is due: its message was lost, or its time has come."""

from functools import partial

from lockstep.db.transaction import Tx, in_transaction
from lockstep.payments import refund_store, refundable_store
from lockstep.payments.owe_refund import stage_try
from lockstep.upkeep.refund_sweep_store import DueRefund, read_staged_refund
from lockstep.upkeep.restage import PATIENCE_SECONDS, is_due_again


def restage_refund(due: DueRefund) -> bool:
    """Stage one more try; True if this call did.

    Guard, under the payment's lock: it has not ended, its time has come, and the newest message of
    it is old enough: 60 s, then 2, 4, 8 … 60 min, counted since its last try.
    """
    return in_transaction(partial(_restage, due=due), within_seconds=PATIENCE_SECONDS)


def _restage(tx: Tx, due: DueRefund) -> bool:
    refundable_store.lock_refundable(tx, due.payment_id)
    refunds = refund_store.read_refunds(tx, due.payment_id)
    refund = next(refund for refund in refunds if refund.id == due.refund_id)
    if not (refund.is_open and refund.is_due):
        return False
    if not is_due_again(*read_staged_refund(tx, refund.id, due.payment_id)):
        return False
    stage_try(tx, refund.id, due.payment_id)
    return True
