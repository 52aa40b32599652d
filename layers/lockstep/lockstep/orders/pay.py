"""Let a payment pay its order."""

from collections.abc import Mapping
from decimal import Decimal

from lockstep.db.transaction import Tx
from lockstep.messaging import outbox
from lockstep.messaging.contracts import ConfirmStock
from lockstep.observability import correlation_id
from lockstep.orders import store
from lockstep.orders.model import LockedOrder, OrderStatus


def pay(
    tx: Tx, order: LockedOrder, amount: Decimal, actor: str, evidence: Mapping[str, str]
) -> bool:
    """Pay ``order``, which the caller has locked, and have its hold confirmed.

    Guard: PENDING_PAYMENT or PAYMENT_PROCESSING, also past expires_at while still open, and
    ``amount`` is the order's. Effect: PAID, event, ConfirmStock. False, and no change, if the
    guard says no.
    """
    if not store.mark_paid(tx, order.id, amount):
        return False
    store.append_event(tx, order.id, order.status, OrderStatus.PAID, actor, "PAID", evidence)
    if order.reservation_id is not None:
        confirm_hold(tx, order.id, order.reservation_id)
    return True


def confirm_hold(tx: Tx, order_id: int, reservation_id: str) -> None:
    """Stage the command that turns the hold into a sale."""
    outbox.stage(
        tx,
        ConfirmStock(
            reservation_id=reservation_id, order_id=order_id, correlation_id=correlation_id()
        ),
    )
