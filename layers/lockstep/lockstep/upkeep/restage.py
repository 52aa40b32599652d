"""Say a command again that was sent and lost: dead-lettered, purged or past its retention."""

from functools import partial
from typing import Final

from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import store as inventory
from lockstep.inventory.model import ReservationState, next_reservation_id
from lockstep.messaging import outbox
from lockstep.messaging import store as messages
from lockstep.messaging.contracts import (
    QUEUE_OF,
    ConfirmStock,
    ReleaseStock,
    ReserveStock,
    StockCommand,
)
from lockstep.observability import correlation_id
from lockstep.orders import store as orders
from lockstep.orders.model import PAID_STATUSES, LockedOrder, OrderStatus
from lockstep.payments.reinstate_store import count_late_payments
from lockstep.upkeep.store import OpenHold, OverdueOrder

# A row that is locked for longer comes again next minute; the others shall have their turn.
PATIENCE_SECONDS: Final = 1
_PAUSE_SECONDS_MIN: Final = 60
_PAUSE_SECONDS_MAX: Final = 3600


def what_becomes_of(
    status: OrderStatus, *, is_named: bool
) -> type[ConfirmStock] | type[ReleaseStock] | None:
    """What an order's state says of a RESERVED hold of it; None while the order is open."""
    if not is_named or status is OrderStatus.CLOSED:
        return ReleaseStock
    return ConfirmStock if status in PAID_STATUSES else None


def restage_hold(hold: OpenHold) -> bool:
    """Stage the confirm or release that the order's state asks for; True if this call did.

    Guard, under the order's lock: the hold is still RESERVED, the order decided, and the newest
    command of that queue and group old enough: 60 s, then 2, 4, 8 … 60 min.
    """
    return in_transaction(partial(_restage_hold, hold=hold), within_seconds=PATIENCE_SECONDS)


def _restage_hold(tx: Tx, hold: OpenHold) -> bool:
    order = orders.lock_order(tx, hold.order_id)
    state = inventory.read_state(tx, hold.reservation_id)
    if order is None or state is not ReservationState.RESERVED:
        return False
    command = _what_it_says(order, hold)
    return command is not None and _stage_if_due(tx, command)


def _what_it_says(order: LockedOrder, hold: OpenHold) -> StockCommand | None:
    says = what_becomes_of(order.status, is_named=order.reservation_id == hold.reservation_id)
    if says is None:
        return None
    return says(
        reservation_id=hold.reservation_id,
        order_id=hold.order_id,
        correlation_id=correlation_id(),
    )


def restage_reserve(waiting: OverdueOrder) -> bool:
    """Stage ReserveStock again for an order that is still RESERVING; True if this call did."""
    return in_transaction(
        partial(_restage_reserve, waiting=waiting), within_seconds=PATIENCE_SECONDS
    )


def _restage_reserve(tx: Tx, waiting: OverdueOrder) -> bool:
    order = orders.lock_order(tx, waiting.order_id)
    if order is None or order.status is not OrderStatus.RESERVING:
        return False
    command = ReserveStock(
        reservation_id=waiting.reservation_id,
        order_id=waiting.order_id,
        correlation_id=correlation_id(),
    )
    return _stage_if_due(tx, command)


def restage_reinstatement(late: OverdueOrder) -> bool:
    """Stage ReserveStock again for an order whose late money still waits; True if this call
    did."""
    return in_transaction(
        partial(_restage_reinstatement, late=late), within_seconds=PATIENCE_SECONDS
    )


def _restage_reinstatement(tx: Tx, late: OverdueOrder) -> bool:
    orders.lock_order(tx, late.order_id)
    if not count_late_payments(tx, late.order_id):
        return False
    command = ReserveStock(
        reservation_id=next_reservation_id(late.reservation_id),
        order_id=late.order_id,
        correlation_id=correlation_id(),
    )
    return _stage_if_due(tx, command)


def _stage_if_due(tx: Tx, command: StockCommand) -> bool:
    staged = messages.read_staged(tx, QUEUE_OF[type(command)], command.reservation_id)
    if not is_due_again(*staged):
        return False
    outbox.stage(tx, command)
    return True


def is_due_again(times: int, newest_seconds: int | None) -> bool:
    """Whether what was said so often, and so long ago last, may be said once more."""
    pause = min(_PAUSE_SECONDS_MIN * 2 ** min(max(0, times - 1), 6), _PAUSE_SECONDS_MAX)
    return newest_seconds is None or newest_seconds >= pause
