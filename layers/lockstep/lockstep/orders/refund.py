"""Follow what goes back of an order's payment."""

from collections.abc import Mapping
from decimal import Decimal

from lockstep.db.transaction import Tx
from lockstep.orders import refund_store, store
from lockstep.orders.model import LockedOrder, OrderStatus


def record_refund(
    tx: Tx, order: LockedOrder, refunded: Decimal, actor: str, evidence: Mapping[str, str]
) -> None:
    """``refunded`` yuan of ``order``, which the caller has locked, have gone back in all.

    Guard: more than was known, at most what was paid. Effect: refunded_amount; once it reaches
    paid_amount REFUNDING, if it is not that already, and REFUNDED, an event each. A part leaves the
    status alone. Stock is not touched: whether goods come back is another question. Repeat: no
    change.
    """
    refund_store.record_refunded_amount(tx, order.id, refunded)
    if refund_store.mark_refunding(tx, order.id):
        store.append_event(
            tx, order.id, order.status, OrderStatus.REFUNDING, actor, "REFUNDED_IN_FULL", evidence
        )
    if refund_store.mark_refunded(tx, order.id):
        store.append_event(
            tx,
            order.id,
            OrderStatus.REFUNDING,
            OrderStatus.REFUNDED,
            actor,
            "REFUNDED_IN_FULL",
            evidence,
        )


def begin_refund(
    tx: Tx, order: LockedOrder, actor: str, reason: str, evidence: Mapping[str, str]
) -> bool:
    """All that is left of ``order``, which the caller has locked, is to go back.

    Guard: PAID, SHIPPED or FINISHED. Effect: REFUNDING, event; from here on nobody ships it. False,
    and no change, if the guard says no.
    """
    if not refund_store.begin_refund(tx, order.id):
        return False
    store.append_event(tx, order.id, order.status, OrderStatus.REFUNDING, actor, reason, evidence)
    return True


def give_up_refund(
    tx: Tx, order: LockedOrder, actor: str, reason: str, evidence: Mapping[str, str]
) -> bool:
    """What is left of ``order``, which the caller has locked, does not go back after all.

    Guard: REFUNDING. Effect: the state before, event. False, and no change, if the guard says no.
    """
    back_to = order.prev_status
    if not refund_store.give_up_refund(tx, order.id, back_to):
        return False
    store.append_event(tx, order.id, order.status, back_to, actor, reason, evidence)
    return True
