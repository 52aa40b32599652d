"""Turn a hold into a sale."""

from functools import partial

from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory import store
from lockstep.inventory.model import Confirmed, Refusal, Refused, ReservationState


def confirm(reservation_id: str, order_id: int) -> Confirmed | Refused:
    """Take the held quantities out of stock, once.

    Guard: RESERVED, and it is this order's. Effect: CONFIRMED, stock and lock_stock -= the items.
    Lock order: reservation, then SKUs by ascending sku_id. Repeat: Confirmed(repeated=True).
    Too early (no such reservation) and too late (released) are both RESERVATION_NOT_RESERVED:
    whether to try again is the order's to say. Raises InvariantBroken if the counters hold less
    than the items.
    """
    return in_transaction(partial(_confirm, reservation_id=reservation_id, order_id=order_id))


def _confirm(tx: Tx, reservation_id: str, order_id: int) -> Confirmed | Refused:
    reservation = store.lock_reservation(tx, reservation_id)
    if reservation is None:
        return Refused(Refusal.RESERVATION_NOT_RESERVED)
    if reservation.order_id != order_id:
        return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    if reservation.state is ReservationState.CONFIRMED:
        return Confirmed(repeated=True)
    if not store.mark_confirmed(tx, reservation_id):
        return Refused(Refusal.RESERVATION_NOT_RESERVED)
    for sku_id, quantity in reservation.items.items():
        if not store.sell_stock(tx, sku_id, quantity):
            raise InvariantBroken(f"{reservation_id} holds more of SKU {sku_id} than is locked")
    return Confirmed(repeated=False)
