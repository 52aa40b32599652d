"""Goal: the row locks of notices and payments are missed when they are gone, or too strong.

Method: see guards.py. Each proof lets a second session do all its work right after the statement
that locks. With the lock the engine says that the second one waits; without it, it overtakes. Two
duplicates that meet before their shared read deadlock as soon as it asks for more.
"""

from decimal import Decimal
from typing import Final

import pytest

from lockstep.alipay.model import NoticeKind
from lockstep.orders import store as orders
from lockstep.payments import store
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.database import Database
from tests.support.threads import Deadlocks, Meanwhile, Meeting, at_once

# How an attempt gets its row from somebody else's session, after its notice has come.
LATE_ATTEMPT: Final = (
    "INSERT INTO oms_payment_attempt (order_id, out_trade_no, product, amount, state, expires_at) "
    "SELECT id, 'late', 'page', pay_amount, 'OPEN', expires_at FROM oms_order"
)


def deadlocks_of_two_repeated_notices(database: Database) -> int:
    a_sku(database)
    notice = a_trade_notice(an_order())
    accept(notice)
    with pytest.MonkeyPatch.context() as patch:
        deadlocks = Deadlocks(patch)
        repeat = Meeting().before(store.read_notice_state)
        patch.setattr(store, "read_notice_state", repeat)
        outcomes = at_once(*[lambda: accept(notice)] * 2)
    assert outcomes == [Result.REPLAYED] * 2
    return deadlocks.seen


def notice_that_fits_while_it_is_decided_again(
    database: Database,
) -> tuple[Result, Result, str]:
    """Both answers, and what the inbox says in the end."""
    a_sku(database)
    an_order()
    notice = a_trade_notice(out_trade_no="late")
    accept(notice)

    def repeat_with_its_attempt() -> Result:
        with database.another_session() as session, session.cursor() as cursor:
            cursor.execute(LATE_ATTEMPT)
            session.commit()
        return accept(notice)

    other = Meanwhile(database, repeat_with_its_attempt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "lock_order_of_trade", other.after(orders.lock_order_of_trade))
        result = accept(notice)
    return result, other.outcome(), database.value("SELECT state FROM oms_notice")


def payment_that_fits_while_it_is_refunded(
    database: Database,
) -> tuple[Result, Result, str, Decimal, str, Decimal]:
    """Both answers, then state and refunded amount of the payment and of its order."""
    a_sku(database)
    an_order()
    paid = a_trade_notice(out_trade_no="late")
    accept(paid)
    refund = a_trade_notice(
        kind=NoticeKind.REFUND,
        out_trade_no="late",
        trade_no=paid.trade_no,
        refund_fee=paid.total_amount,
    )

    def pay_with_its_attempt() -> Result:
        with database.another_session() as session, session.cursor() as cursor:
            cursor.execute(LATE_ATTEMPT)
            session.commit()
        return accept(paid)

    other = Meanwhile(database, pay_with_its_attempt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_payment", other.after(store.lock_payment))
        result = accept(refund)
    payment = database.one("SELECT state, refunded_amount FROM oms_order_payment")
    order = database.one("SELECT status, refunded_amount FROM oms_order")
    return result, other.outcome(), *payment.values(), *order.values()


NOTHING: Final = Decimal("0.00")
ALL: Final = Decimal("9.90")

GUARDS: Final = (
    Guard(
        "READ_NOTICE_STATE: no more than FOR SHARE",
        deadlocks_of_two_repeated_notices,
        0,
        ((Clause(store, "READ_NOTICE_STATE", "FOR SHARE", "FOR UPDATE"), 1),),
    ),
    Guard(
        "LOCK_NOTICE: FOR UPDATE, or the earlier look has the last word",
        notice_that_fits_while_it_is_decided_again,
        (Result.UNMATCHED, Result.APPLIED, "DONE"),
        (
            (
                Clause(store, "LOCK_NOTICE", "FOR UPDATE"),
                (Result.CONFLICT, Result.APPLIED, "CONFLICT"),
            ),
        ),
    ),
    Guard(
        "LOCK_PAYMENT: FOR UPDATE, or money that went back pays an order",
        payment_that_fits_while_it_is_refunded,
        (
            Result.REFUND_RECORDED,
            Result.REPLAYED,
            *("REFUNDED", ALL),
            *("PENDING_PAYMENT", NOTHING),
        ),
        (
            (
                Clause(store, "LOCK_PAYMENT", "FOR UPDATE OF p"),
                (Result.REFUND_RECORDED, Result.APPLIED, *("APPLIED", ALL), *("PAID", NOTHING)),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_lock_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
