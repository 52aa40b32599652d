"""Give a hold back."""

from functools import partial

from lockstep.db.errors import Contended, DuplicateKey
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory import store
from lockstep.inventory.model import Refusal, Refused, Released, ReservationState


def release(reservation_id: str, order_id: int) -> Released | Refused:
    """Give the held quantities back, once; before a hold exists, leave a tombstone that forbids it.

    Guard: RESERVED, and it is this order's. Effect: RELEASED, lock_stock -= the reservation's own
    items. Lock order: reservation, then SKUs by ascending sku_id. Repeat: Released(repeated=True).
    After a confirm: RESERVATION_CANNOT_RELEASE; a return of sold goods is a stock entry.
    Raises InvariantBroken if less is locked than the items say.
    """
    return in_transaction(partial(give_back, reservation_id=reservation_id, order_id=order_id))


def give_back(tx: Tx, reservation_id: str, order_id: int) -> Released | Refused:
    """The same in the caller's transaction, for one that takes another hold with it."""
    reservation = store.lock_reservation(tx, reservation_id)
    if reservation is None:
        return _leave_tombstone(tx, reservation_id, order_id)
    if reservation.order_id != order_id:
        return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    if reservation.state is ReservationState.RELEASED:
        return Released(repeated=True)
    if not store.mark_released(tx, reservation_id):
        return Refused(Refusal.RESERVATION_CANNOT_RELEASE)
    for sku_id, quantity in reservation.items.items():
        if not store.free_stock(tx, sku_id, quantity):
            raise InvariantBroken(f"{reservation_id} holds more of SKU {sku_id} than is locked")
    return Released(repeated=False)


def _leave_tombstone(tx: Tx, reservation_id: str, order_id: int) -> Released | Refused:
    try:
        store.insert_tombstone(tx, reservation_id, order_id)
    except DuplicateKey as taken:
        if taken.key == "uk_reservation_order":  # the order knows this number under another id
            return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
        # The reserve committed after our look: the whole transaction runs again and sees it.
        raise Contended(str(taken)) from taken
    return Released(repeated=False)
