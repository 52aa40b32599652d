"""Take the hold that a queued order waits for: one order a message."""

from datetime import timedelta
from functools import partial

from lockstep import settings
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import Refused, Short
from lockstep.inventory.reserve import reserve
from lockstep.messaging import outbox
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import correlation_id
from lockstep.orders import read_store, store
from lockstep.orders.close import close
from lockstep.orders.model import (
    CloseReason,
    Held,
    HoldOutcome,
    LockedOrder,
    NotWaiting,
    OrderStatus,
    SoldOut,
)

ACTOR = "system:reserve_stock"


def line_up(tx: Tx, order_id: int, reservation_id: str) -> None:
    """Stage the command that takes the order's hold when its turn comes."""
    outbox.stage(
        tx,
        ReserveStock(
            reservation_id=reservation_id, order_id=order_id, correlation_id=correlation_id()
        ),
    )


def hold(order_id: int, reservation_id: str) -> HoldOutcome:
    """Hold the stock of a waiting order, or close it.

    Guard: RESERVING, and it names this reservation. Effect: PENDING_PAYMENT with its time to pay
    from now on, and the hold; where a line is short CLOSED/OUT_OF_STOCK. Lock order: order,
    reservation, SKUs ascending. Repeat, or an order that closed meanwhile: NotWaiting.
    Refused where a release came first (its tombstone forbids the hold).
    """
    outcome = in_transaction(partial(_hold, order_id=order_id, reservation_id=reservation_id))
    if isinstance(outcome, SoldOut):
        return in_transaction(
            partial(_close_sold_out, order_id=order_id, reservation_id=reservation_id)
        )
    return outcome


def _hold(tx: Tx, order_id: int, reservation_id: str) -> HoldOutcome:
    order = _lock_waiting(tx, order_id, reservation_id)
    if order is None:
        return NotWaiting()
    lines, now = read_store.read_wanted(tx, order_id)
    expires_at = now + timedelta(seconds=settings.order_ttl_seconds())
    if not store.mark_held(tx, order_id, expires_at):
        raise InvariantBroken(f"order {order_id} changed under its lock")
    store.append_event(tx, order_id, order.status, OrderStatus.PENDING_PAYMENT, ACTOR, "HELD")
    hold_until = expires_at + timedelta(seconds=settings.hold_grace_seconds())
    match reserve(tx, reservation_id, order_id, lines, hold_until):
        case Short():
            raise RollBack(SoldOut())
        case Refused() as refused:
            raise RollBack(refused)
    return Held()


def _close_sold_out(tx: Tx, order_id: int, reservation_id: str) -> HoldOutcome:
    order = _lock_waiting(tx, order_id, reservation_id)
    if order is None:  # another delivery found stock meanwhile, or its member cancelled it
        return NotWaiting()
    close(tx, order, CloseReason.OUT_OF_STOCK, ACTOR)
    return SoldOut()


def _lock_waiting(tx: Tx, order_id: int, reservation_id: str) -> LockedOrder | None:
    """The order, if this hold is what it waits for."""
    order = store.lock_order(tx, order_id)
    if order is None or order.reservation_id != reservation_id:
        return None
    if order.status is not OrderStatus.RESERVING:
        return None
    return order
