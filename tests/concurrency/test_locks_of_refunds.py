"""Goal: the locks that refunds are decided under are missed when they are gone.

Method: see guards.py. Each proof lets a second session do all its work right after the first one
has looked. With the lock it waits, and sees what the first one did; without it, both do it.
"""

from decimal import Decimal
from typing import Final

import pytest

from lockstep.orders import store as orders
from lockstep.payments import refund_store, refundable_store
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import Asked, AskRefund, RefundTooLarge, ask_refund
from lockstep.payments.refund import Tried
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.database import Database
from tests.support.raw_rows import insert_row
from tests.support.refund_channel import RefundChannel
from tests.support.threads import Meanwhile


def two_refunds_of_one_trade_are_tried_at_once(database: Database) -> tuple[Tried, Tried]:
    """Money of no order, so that the payment's lock is the only one."""
    payment_id = insert_row(
        database, "oms_order_payment", state="REFUND_PENDING", order_id=None, trade_no="T1"
    )
    first, second = (
        insert_row(
            database,
            "oms_refund",
            payment_id=payment_id,
            out_request_no=number,
            amount="3.00",
            next_try_at="2026-11-01",
        )
        for number in ("R1", "R2")
    )
    channel = RefundChannel()
    channel.paid()
    other = Meanwhile(database, lambda: channel.try_refund(second))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refund_store, "read_refunds", other.after(refund_store.read_refunds))
        tried = channel.try_refund(first)
    return tried, other.outcome()


def two_operators_refund_one_order_at_once(database: Database) -> tuple[type, type]:
    """6.00 each, of 9.90."""
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order))

    def ask(key: str) -> type:
        return type(ask_refund(AskRefund(order.order_no, key, "alice", "broken", Decimal("6.00"))))

    other = Meanwhile(database, lambda: ask("k2"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refund_store, "read_refunds", other.after(refund_store.read_refunds))
        asked = ask("k1")
    return asked, other.outcome()


GUARDS: Final = (
    Guard(
        "LOCK_REFUNDABLE: FOR UPDATE, or two refunds of a trade are in flight",
        two_refunds_of_one_trade_are_tried_at_once,
        (Tried.DONE, Tried.DEFERRED),
        ((Clause(refundable_store, "LOCK_REFUNDABLE", "FOR UPDATE"), (Tried.DONE, Tried.DONE)),),
    ),
    Guard(
        "LOCK_ORDER_BY_NO: FOR UPDATE, or more is asked for than was paid",
        two_operators_refund_one_order_at_once,
        (Asked, RefundTooLarge),
        ((Clause(orders, "LOCK_ORDER_BY_NO", "FOR UPDATE"), (Asked, Asked)),),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_lock_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
