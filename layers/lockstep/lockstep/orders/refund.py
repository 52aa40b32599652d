"""Follow what went back of an order's payment."""

from collections.abc import Mapping
from decimal import Decimal

from lockstep.db.transaction import Tx
from lockstep.orders import store
from lockstep.orders.model import LockedOrder, OrderStatus


def record_refund(
    tx: Tx, order: LockedOrder, refunded: Decimal, actor: str, evidence: Mapping[str, str]
) -> None:
    """``refunded`` yuan of ``order``, which the caller has locked, have gone back in all.

    Guard: more than was known, at most what was paid. Effect: refunded_amount; once it reaches
    paid_amount REFUNDING and REFUNDED, an event each. A part leaves the status alone. Stock is not
    touched: whether goods come back is another question. Repeat: no change.
    """
    store.record_refunded_amount(tx, order.id, refunded)
    if store.mark_refunding(tx, order.id):
        store.append_event(
            tx, order.id, order.status, OrderStatus.REFUNDING, actor, "REFUNDED_IN_FULL", evidence
        )
    if store.mark_refunded(tx, order.id):
        store.append_event(
            tx,
            order.id,
            OrderStatus.REFUNDING,
            OrderStatus.REFUNDED,
            actor,
            "REFUNDED_IN_FULL",
            evidence,
        )
