"""Revive an order that expired before its money came: only with stock that is held afresh."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from lockstep import settings
from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import Refused, Short, next_reservation_id
from lockstep.inventory.release import give_back
from lockstep.inventory.reserve import reserve
from lockstep.orders import read_store, store
from lockstep.orders.hold import line_up
from lockstep.orders.model import CloseReason, LockedOrder, OrderStatus, TradedOrder
from lockstep.orders.pay import confirm_hold
from lockstep.orders.reinstate_store import reinstate_order


def may_be_reinstated(order: TradedOrder, paid_at: datetime | None) -> bool:
    """Whether the policy lets money of ``paid_at`` revive ``order``: it was in time, and only our
    closing was faster. The gateway's clock decides this and nothing else."""
    return (
        settings.late_payment_policy() is settings.LatePaymentPolicy.REINSTATE
        and order.status is OrderStatus.CLOSED
        and order.close_reason is CloseReason.EXPIRED
        and order.reservation_id is not None
        and paid_at is not None
        and order.expires_at is not None
        and paid_at <= order.expires_at
    )


def line_up_again(tx: Tx, order: LockedOrder) -> None:
    """Stage the command that tries for a fresh hold when its turn comes."""
    _, new_hold = _holds(order)
    line_up(tx, order.id, new_hold)


def take_up(
    tx: Tx, order: LockedOrder, amount: Decimal, actor: str, evidence: Mapping[str, str]
) -> Short | Refused | None:
    """Pay ``order``, which the caller has locked, and hold its stock afresh; None if that is done.

    Guard: CLOSED/EXPIRED, and ``amount`` is the order's. Effect: PAID, event, the old hold given
    back if it still was held, a new one, ConfirmStock. Lock order: reservation, then SKUs
    ascending; call it last. On any other answer the caller rolls back.
    """
    old_hold, new_hold = _holds(order)
    if not reinstate_order(tx, order.id, new_hold, amount):
        raise InvariantBroken(f"order {order.id} cannot be reinstated though its money waits")
    store.append_event(tx, order.id, order.status, OrderStatus.PAID, actor, "REINSTATED", evidence)
    confirm_hold(tx, order.id, new_hold)
    lines, now = read_store.read_wanted(tx, order.id)
    if isinstance(refused := give_back(tx, old_hold, order.id), Refused):
        raise InvariantBroken(f"{old_hold} of a closed order: {refused.code}")
    hold_until = now + timedelta(seconds=settings.hold_grace_seconds())
    match reserve(tx, new_hold, order.id, lines, hold_until):
        case Short() | Refused() as none_left:
            return none_left
    return None


def _holds(order: LockedOrder) -> tuple[str, str]:
    """The one it had, and the one that comes after it."""
    if order.reservation_id is None:
        raise InvariantBroken(f"order {order.id} never had a hold")
    return order.reservation_id, next_reservation_id(order.reservation_id)
