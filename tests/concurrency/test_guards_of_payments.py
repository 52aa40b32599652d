"""Goal: every guard of notices, attempts and payments is missed when it is gone.

Method: see guards.py. Where the code looks before the statement does, the proof calls the statement
as code that had not looked would.
"""

from functools import partial
from typing import Final

import pytest

from lockstep.alipay.model import NoticeKind
from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders.model import Order
from lockstep.payments import attempt_store, read_store, store
from lockstep.payments.accept import accept
from lockstep.payments.model import PaymentState, RefundReason, Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order, deliver_outbox
from tests.support.database import Database
from tests.support.threads import Meanwhile

# --- the inbox -----------------------------------------------------------------------------------


def one_notice_twice(database: Database) -> tuple[Result, Result, int, int]:
    """Both answers, and how many notices and payments there are."""
    notice = a_trade_notice(unpaid(database))
    first, second = accept(notice), accept(notice)
    return first, second, database.count("oms_notice"), database.count("oms_order_payment")


def one_notice_again_after_the_sale(database: Database) -> int:
    """How many confirms were staged in all."""
    notice = a_trade_notice(unpaid(database))
    accept(notice)
    deliver_outbox(database)
    accept(notice)
    return database.count("outbox", queue="confirm")


# --- payments ------------------------------------------------------------------------------------


def one_unmatched_trade_in_two_notices_at_once(database: Database) -> tuple[Result, Result, int]:
    """Both answers, and how many payments there are."""
    other = Meanwhile(database, lambda: accept(a_trade_notice(trade_no="T")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_payment", other.after(store.lock_payment))
        result = accept(a_trade_notice(trade_no="T"))
    return result, other.outcome(), database.count("oms_order_payment")


def apply_a_second_payment(database: Database) -> int:
    order = paid(database)
    second = a_trade_notice(order).report

    def insert(tx: Tx) -> None:
        store.insert_payment(tx, "alipay", second, order.id, PaymentState.APPLIED, None)

    in_transaction(insert)
    return database.count("oms_order_payment", state="APPLIED")


def match_what_is_applied(database: Database) -> tuple[bool, str]:
    order = paid(database)
    payment_id = database.value("SELECT id FROM oms_order_payment")

    def match(tx: Tx) -> bool:
        back, reason = PaymentState.REFUND_PENDING, RefundReason.LATE_PAYMENT
        return store.match_payment(tx, payment_id, order.id, back, reason)

    matched = in_transaction(match)
    return matched, database.value("SELECT state FROM oms_order_payment")


# --- attempts ------------------------------------------------------------------------------------


def attempt_after(database: Database, kind: NoticeKind, *, state: str) -> tuple[Result, str, str]:
    """The answer to a notice about an attempt in ``state``, then attempt and order."""
    order = unpaid(database)
    number = an_attempt(database, order, out_trade_no=f"{order.order_no}_2", state=state)
    result = accept(a_trade_notice(order, kind=kind, out_trade_no=number))
    attempt = database.value("SELECT state FROM oms_payment_attempt")
    return result, attempt, database.value("SELECT status FROM oms_order")


def unpaid(database: Database) -> Order:
    a_sku(database)
    return an_order()


def paid(database: Database) -> Order:
    order = unpaid(database)
    assert accept(a_trade_notice(order)) is Result.APPLIED
    return order


GUARDS: Final = (
    Guard(
        "uk_notice: one row a notice; its payment stays one even so",
        one_notice_twice,
        (Result.APPLIED, Result.REPLAYED, 1, 1),
        (
            (
                constraint("oms_notice", "KEY uk_notice"),
                (Result.APPLIED, Result.REPLAYED, 2, 1),
            ),
        ),
    ),
    Guard(
        "READ_UNCONFIRMED_HOLD: RESERVED",
        one_notice_again_after_the_sale,
        1,
        ((Clause(read_store, "READ_UNCONFIRMED_HOLD", " AND r.state = 'RESERVED'"), 2),),
    ),
    Guard(
        "uk_payment_trade: one payment a trade; then the ledger's own key",
        one_unmatched_trade_in_two_notices_at_once,
        (Result.UNMATCHED, Result.UNMATCHED, 1),
        (
            (
                constraint("oms_order_payment", "KEY uk_payment_trade"),
                "refused by uk_money_source",
            ),
            (
                constraint("oms_money_entry", "KEY uk_money_source"),
                (Result.UNMATCHED, Result.UNMATCHED, 2),
            ),
        ),
    ),
    Guard(
        "uk_payment_applied: one payment pays",
        apply_a_second_payment,
        "refused by uk_payment_applied",
        ((constraint("oms_order_payment", "KEY uk_payment_applied"), 2),),
    ),
    Guard(
        "MATCH_PAYMENT: UNMATCHED",
        match_what_is_applied,
        (False, "APPLIED"),
        ((Clause(store, "MATCH_PAYMENT", "AND state = 'UNMATCHED'"), (True, "REFUND_PENDING")),),
    ),
    Guard(
        "MARK_ATTEMPT_PAID: not CLOSED",
        partial(attempt_after, kind=NoticeKind.PAYMENT, state="CLOSED"),
        (Result.APPLIED, "CLOSED", "PAID"),
        (
            (
                Clause(attempt_store, "MARK_ATTEMPT_PAID", "AND state IN ('OPEN', 'CLOSING')"),
                (Result.APPLIED, "PAID", "PAID"),
            ),
        ),
    ),
    Guard(
        "CLOSE_OPEN_ATTEMPT: OPEN, or a used page closes its order",
        partial(attempt_after, kind=NoticeKind.UNPAID_CLOSE, state="PAID"),
        (Result.NOTED, "PAID", "PENDING_PAYMENT"),
        (
            (
                Clause(attempt_store, "CLOSE_OPEN_ATTEMPT", "AND state = 'OPEN'"),
                (Result.ORDER_CLOSED, "CLOSED", "CLOSED"),
            ),
        ),
    ),
    Guard(
        "CLOSE_ASKED_ATTEMPT: CLOSING, or a page that was paid is closed",
        partial(attempt_after, kind=NoticeKind.UNPAID_CLOSE, state="PAID"),
        (Result.NOTED, "PAID", "PENDING_PAYMENT"),
        (
            (
                Clause(attempt_store, "CLOSE_ASKED_ATTEMPT", "AND state = 'CLOSING'"),
                (Result.NOTED, "CLOSED", "PENDING_PAYMENT"),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
