"""Give holds back."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from lockstep.db.errors import Contended, DuplicateKey
from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import batch_store
from lockstep.inventory.end_holds import End, decide_together, end_holds
from lockstep.inventory.model import (
    HoldCommand,
    HoldName,
    Refusal,
    Refused,
    Released,
    Reservation,
    ReservationState,
)


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
    [outcome] = _release(tx, [HoldName(reservation_id, order_id)])
    return outcome


def release_all(
    commands: Sequence[HoldCommand], has_time: Callable[[], bool]
) -> list[Released | Refused | Exception]:
    """The same for each of ``commands``, in their order, TOGETHER_MAX in a transaction; a fault
    where one could not be decided. Lock order: the reservations by ascending id, then the SKUs.
    Raises TryAgain where there is no database."""
    return decide_together(_release, commands, has_time)


def _release(tx: Tx, commands: Sequence[HoldCommand]) -> list[Released | Refused]:
    found = batch_store.lock_reservations(tx, [c.reservation_id for c in commands])
    missing = [c for c in commands if c.reservation_id not in found]
    if missing:
        found |= _leave_tombstones(tx, missing)
    return end_holds(tx, _RETURN, commands, found)


def _judge(hold: Reservation | None, order_id: int) -> Released | Refused:
    if hold is None or hold.order_id != order_id:
        return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    if hold.state is ReservationState.CONFIRMED:
        return Refused(Refusal.RESERVATION_CANNOT_RELEASE)
    return Released(repeated=hold.state is ReservationState.RELEASED)


def _leave_tombstones(tx: Tx, commands: Sequence[HoldCommand]) -> dict[str, Reservation]:
    """Tombstones for all of ``commands``, by id, as they are before they say that they released
    nothing. None where the order knows that number under another id."""
    first = {command.reservation_id: command for command in reversed(commands)}
    try:
        batch_store.insert_tombstones(tx, first.values())
    except DuplicateKey as taken:
        if taken.key != "uk_reservation_order":
            # The reserve committed after our look: the whole transaction runs again and sees it.
            raise Contended(str(taken)) from taken
        return _leave_those_that_fit(tx, commands)
    return {
        hold_id: Reservation(hold_id, command.order_id, None, ReservationState.INIT, {})
        for hold_id, command in first.items()
    }


def _leave_those_that_fit(tx: Tx, commands: Sequence[HoldCommand]) -> dict[str, Reservation]:
    """One by one, as the refused statement left nothing of any of them; one alone does not fit."""
    left: dict[str, Reservation] = {}
    if len(commands) > 1:
        for command in commands:
            if command.reservation_id not in left:
                left |= _leave_tombstones(tx, [command])
    return left


_RETURN: Final = End(
    _judge,
    ReservationState.RELEASED,
    batch_store.mark_released,
    batch_store.free_stock,
)
