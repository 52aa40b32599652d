"""Goal: every guard of late money and of stored notices is missed when it is gone.

Method: see guards.py. Where the code looks before the statement does, the proof calls the statement
as code that had not looked would.
"""

from decimal import Decimal
from functools import partial
from typing import Final

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import reinstate_store as orders
from lockstep.orders.close import expire
from lockstep.payments import reinstate_store as late
from lockstep.payments import revisit_store as revisits
from lockstep.payments.accept import accept
from lockstep.payments.model import PaymentState, RefundReason, Result
from lockstep.payments.revisit import claim_notice, conclude
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause
from tests.concurrency.test_locks_of_payments import LATE_ATTEMPT
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.threads import Meanwhile

# --- an order that closed ------------------------------------------------------------------------


def revive(database: Database, how: str, amount: str = "9.90") -> tuple[bool, str]:
    """Whether the statement took the order, and the order's status."""
    a_sku(database)
    order = an_order()
    if how == "cancelled":
        cancel(42, order.order_no)
    if how == "expired":
        database.execute("UPDATE oms_order SET expires_at = NOW(3)")
        assert expire(order.id)
    revived = in_transaction(
        partial(
            orders.reinstate_order,
            order_id=order.id,
            reservation_id="x-2",
            amount=Decimal(amount),
        )
    )
    return revived, database.value("SELECT status FROM oms_order")


def settle_what_is_applied(database: Database) -> tuple[bool, str]:
    a_sku(database)
    accept(a_trade_notice(an_order()))
    payment_id = database.value("SELECT id FROM oms_order_payment")

    def settle(tx: Tx) -> bool:
        back, reason = PaymentState.REFUND_PENDING, RefundReason.LATE_PAYMENT
        return late.settle_late_payment(tx, payment_id, back, reason)

    settled = in_transaction(settle)
    return settled, database.value("SELECT state FROM oms_order_payment")


# --- stored notices ------------------------------------------------------------------------------


def claim_twice(database: Database) -> list[bool]:
    accept(a_trade_notice())
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3)")
    notice_id = database.value("SELECT id FROM oms_notice")
    return [claim_notice(notice_id) is not None for _ in range(2)]


def wake_what_is_done(database: Database) -> bool:
    """Whether a notice that is done comes again."""
    a_sku(database)
    notice = a_trade_notice(an_order())
    accept(notice)
    in_transaction(lambda tx: revisits.wake_notices(tx, "alipay", notice.trade_no))
    return database.value("SELECT next_ask_at FROM oms_notice") is not None


def notice_delivered_again_while_it_is_concluded(
    database: Database,
) -> tuple[Result | None, Result]:
    """What the look at it came to, and what the delivery did."""
    a_sku(database)
    an_order()
    notice = a_trade_notice(out_trade_no="late")
    accept(notice)
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3)")
    question = claim_notice(database.value("SELECT id FROM oms_notice"))
    assert question is not None

    def deliver_with_its_attempt() -> Result:
        with database.another_session() as session, session.cursor() as cursor:
            cursor.execute(LATE_ATTEMPT)
            session.commit()
        return accept(notice)

    other = Meanwhile(database, deliver_with_its_attempt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revisits, "lock_stored_notice", other.after(revisits.lock_stored_notice))
        result = conclude(question, None)
    return result, other.outcome()


IS_CLOSED: Final = Clause(orders, "REINSTATE_ORDER", "AND status = 'CLOSED'")
IS_EXPIRED: Final = Clause(orders, "REINSTATE_ORDER", "AND close_reason = 'EXPIRED'")

GUARDS: Final = (
    Guard(
        "REINSTATE_ORDER: CLOSED; an open order has no close_reason either",
        partial(revive, how="open"),
        (False, "PENDING_PAYMENT"),
        ((IS_CLOSED, (False, "PENDING_PAYMENT")), (IS_EXPIRED, (True, "PAID"))),
    ),
    Guard(
        "REINSTATE_ORDER: EXPIRED, or what a member cancelled is sold to him",
        partial(revive, how="cancelled"),
        (False, "CLOSED"),
        ((IS_EXPIRED, (True, "PAID")),),
    ),
    Guard(
        "REINSTATE_ORDER: the order's own sum",
        partial(revive, how="expired", amount="0.01"),
        (False, "CLOSED"),
        ((Clause(orders, "REINSTATE_ORDER", "AND pay_amount = %s", "AND %s"), (True, "PAID")),),
    ),
    Guard(
        "SETTLE_LATE_PAYMENT: REINSTATE_PENDING",
        settle_what_is_applied,
        (False, "APPLIED"),
        (
            (
                Clause(late, "SETTLE_LATE_PAYMENT", "AND state = 'REINSTATE_PENDING'"),
                (True, "REFUND_PENDING"),
            ),
        ),
    ),
    Guard(
        "LEASE_NOTICE: due, or two sweeps ask the same",
        claim_twice,
        [True, False],
        ((Clause(revisits, "LEASE_NOTICE", "AND next_ask_at <= NOW(3)"), [True, True]),),
    ),
    Guard(
        "WAKE_NOTICES: what still waits",
        wake_what_is_done,
        False,
        (
            (
                Clause(
                    revisits,
                    "WAKE_NOTICES",
                    "AND state IN ('QUERY_DUE', 'UNMATCHED', 'CONFLICT')",
                ),
                True,
            ),
        ),
    ),
    Guard(
        "LOCK_STORED_NOTICE: FOR UPDATE, or a delivery overtakes whoever looks again",
        notice_delivered_again_while_it_is_concluded,
        (Result.APPLIED, Result.REPLAYED),
        (
            (
                Clause(revisits, "LOCK_STORED_NOTICE", "FOR UPDATE"),
                (Result.REPLAYED, Result.APPLIED),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
