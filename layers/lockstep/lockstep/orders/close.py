"""Close an unpaid order and have its hold released."""

from functools import partial
from typing import Final

from lockstep import settings
from lockstep.db.transaction import Tx, in_transaction
from lockstep.messaging import outbox
from lockstep.messaging.contracts import ReleaseStock
from lockstep.observability import correlation_id
from lockstep.orders import store, unpaid_store
from lockstep.orders.model import (
    OPEN_STATUSES,
    CancelOutcome,
    CancelRequested,
    Closed,
    CloseReason,
    LockedOrder,
    NotCancellable,
    OrderNotFound,
    OrderStatus,
)

SWEEP: Final = "system:sweep_expired"
# An order that is locked for longer is closed next minute; the others shall have their turn.
SWEEP_SECONDS: Final = 1


def cancel(tx: Tx, member_id: int, order_no: str) -> CancelOutcome:
    """Close the member's own order at the member's wish, or keep the wish.

    Guard: not paid, and no payment page may still be open. Effect: CLOSED/CANCELLED, event,
    ReleaseStock. Lock order: order. Repeat, or an order that closed for another reason:
    Closed(repeated=True). With a payment attempt that is not closed the wish is kept
    (CancelRequested): money may be on its way, and only the channel can say that it is not.
    """
    order = store.lock_own_order(tx, member_id, order_no)
    if order is None:
        return OrderNotFound()
    if order.status is OrderStatus.CLOSED:
        return Closed(order.id, repeated=True)
    if order.status not in OPEN_STATUSES:
        return NotCancellable(order.status)
    if close(tx, order, CloseReason.CANCELLED, actor=f"member:{member_id}"):
        return Closed(order.id, repeated=False)
    unpaid_store.request_cancel(tx, order.id)
    return CancelRequested(order.id)


def expire(order_id: int) -> bool:
    """Close an unpaid order whose time is over; True if this call closed it.

    Guard: what ``end`` says; or RESERVING for too long. Effect: CLOSED/EXPIRED or CANCELLED, or
    CLOSED/OUT_OF_STOCK, event, ReleaseStock. Lock order: order. Repeat: False.
    """
    return in_transaction(partial(_expire, order_id=order_id), within_seconds=SWEEP_SECONDS)


def _expire(tx: Tx, order_id: int) -> bool:
    order = store.lock_order(tx, order_id)
    if order is None:
        return False
    if end(tx, order, SWEEP):
        return True
    if store.give_up_order(tx, order_id, settings.reserving_limit_seconds()):
        _follow_up(tx, order, CloseReason.OUT_OF_STOCK, SWEEP)
        return True
    return False


def end(tx: Tx, order: LockedOrder, actor: str) -> bool:
    """Close ``order``, which the caller has locked, if nothing keeps it open any more.

    Guard: unpaid, no payment page may be open, and its member asked for it (CANCELLED) or its time
    is over (EXPIRED). False, and no change, if the guard says no.
    """
    if order.cancel_requested_at is not None:
        return close(tx, order, CloseReason.CANCELLED, actor)
    if not store.expire_order(tx, order.id):
        return False
    _follow_up(tx, order, CloseReason.EXPIRED, actor)
    return True


def close(tx: Tx, order: LockedOrder, reason: CloseReason, actor: str) -> bool:
    """Close ``order``, which the caller has locked. False, and no change, if the guard says no."""
    if not store.close_order(tx, order.id, reason):
        return False
    _follow_up(tx, order, reason, actor)
    return True


def _follow_up(tx: Tx, order: LockedOrder, reason: CloseReason, actor: str) -> None:
    """What follows from every close: its line of the trail, and the hold given back."""
    store.append_event(tx, order.id, order.status, OrderStatus.CLOSED, actor, reason)
    if order.reservation_id is not None:
        outbox.stage(
            tx,
            ReleaseStock(
                reservation_id=order.reservation_id,
                order_id=order.id,
                correlation_id=correlation_id(),
            ),
        )
