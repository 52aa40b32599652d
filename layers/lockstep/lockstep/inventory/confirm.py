"""Turn holds into sales."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import batch_store
from lockstep.inventory.end_holds import End, decide_together, end_holds
from lockstep.inventory.model import (
    Confirmed,
    HoldCommand,
    HoldName,
    Refusal,
    Refused,
    Reservation,
    ReservationState,
)


def confirm(reservation_id: str, order_id: int) -> Confirmed | Refused:
    """Take the held quantities out of stock, once.

    Guard: RESERVED, and it is this order's. Effect: CONFIRMED, stock and lock_stock -= the items.
    Lock order: reservation, then SKUs by ascending sku_id. Repeat: Confirmed(repeated=True).
    Too early (no such reservation) and too late (released) are both RESERVATION_NOT_RESERVED:
    whether to try again is the order's to say. Raises InvariantBroken if the counters hold less
    than the items.
    """
    [outcome] = in_transaction(partial(_confirm, commands=[HoldName(reservation_id, order_id)]))
    return outcome


def confirm_all(
    commands: Sequence[HoldCommand], has_time: Callable[[], bool]
) -> list[Confirmed | Refused | Exception]:
    """The same for each of ``commands``, in their order, TOGETHER_MAX in a transaction; a fault
    where one could not be decided. Lock order: the reservations by ascending id, then the SKUs.
    Raises TryAgain where there is no database."""
    return decide_together(_confirm, commands, has_time)


def _confirm(tx: Tx, commands: Sequence[HoldCommand]) -> list[Confirmed | Refused]:
    found = batch_store.lock_reservations(tx, [c.reservation_id for c in commands])
    return end_holds(tx, _SALE, commands, found)


def _judge(hold: Reservation | None, order_id: int) -> Confirmed | Refused:
    if hold is None:
        return Refused(Refusal.RESERVATION_NOT_RESERVED)
    if hold.order_id != order_id:
        return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    if hold.state is ReservationState.RELEASED:
        return Refused(Refusal.RESERVATION_NOT_RESERVED)
    return Confirmed(repeated=hold.state is ReservationState.CONFIRMED)


_SALE: Final = End(
    _judge,
    ReservationState.CONFIRMED,
    batch_store.mark_confirmed,
    batch_store.sell_stock,
)
