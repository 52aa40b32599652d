"""Goal: every guard of the orders' statements and keys is missed when it is gone.

Method: see guards.py. Where the code looks before the statement does, the proof calls the statement
as code that had not looked would.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

import pytest

from lockstep import fingerprint
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.orders import request_store, store, unpaid_store
from lockstep.orders.close import close
from lockstep.orders.model import (
    CancelRequested,
    Closed,
    CloseReason,
    KeyReused,
    LockedOrder,
    Order,
    Placed,
    Replayed,
)
from lockstep.orders.pay import pay
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint, replaced
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order, place_command
from tests.support.channel import cancel
from tests.support.database import Database

# --- requests ------------------------------------------------------------------------------------


def one_key_twice(database: Database) -> tuple[type, type, int]:
    a_sku(database)
    command = place_command(key="k")
    return type(place(command)), type(place(command)), database.count("oms_order")


def one_key_with_other_content(database: Database) -> type:
    a_sku(database)
    place(place_command({1001: 1}, key="k"))
    return type(place(place_command({1001: 2}, key="k")))


def complete_a_request_again(database: Database) -> tuple[bool, bool]:
    """Whether another order took the request over, and whether it still leads to its own."""
    order = unpaid(database)

    def complete_again(tx: Tx) -> bool:
        with tx.packet() as packet:
            completed = request_store.complete_request(packet, order.member_id, "k", order.id + 1)
        return completed.changed == 1

    return in_transaction(complete_again), database.count(
        "oms_order_request", order_id=order.id
    ) == 1


# --- close and pay -------------------------------------------------------------------------------


def close_a_paid_order(database: Database) -> tuple[bool, str]:
    order = paid(database)
    closed = with_order(order, lambda tx, it: close(tx, it, CloseReason.EXPIRED, "test"))
    return closed, status(database)


def cancel_with_an_attempt(database: Database, state: str) -> tuple[type, str]:
    an_attempt(database, order := unpaid(database), state=state)
    return type(cancel(order.member_id, order.order_no)), status(database)


def pay_a_closed_order(database: Database) -> tuple[Result, str]:
    order = unpaid(database)
    cancel(order.member_id, order.order_no)
    return accept(a_trade_notice(order)), status(database)


def pay_an_order_whose_stock_is_not_held_yet(database: Database) -> tuple[Result, str]:
    order = unpaid(database)
    database.execute("UPDATE oms_order SET prev_status = 'NONE', status = 'RESERVING'")
    return accept(a_trade_notice(order)), status(database)


def pay_twice(database: Database) -> tuple[Result, int]:
    """The second trade's answer, and how many payments are applied."""
    order = paid(database)
    result = accept(a_trade_notice(order))
    return result, database.count("oms_order_payment", state="APPLIED")


def pay_too_little(database: Database) -> tuple[bool, str]:
    order = unpaid(database)
    paid_with = Decimal("0.01")
    taken = with_order(order, lambda tx, it: pay(tx, it, paid_with, "test", {}))
    return taken, status(database)


def wish_to_cancel_a_paid_order(database: Database) -> bool:
    order = paid(database)
    return in_transaction(partial(unpaid_store.request_cancel, order_id=order.id))


def wish_to_cancel_twice(database: Database) -> tuple[bool, bool]:
    order = unpaid(database)
    database.execute("UPDATE oms_order SET cancel_requested_at = '2026-11-30'")
    again = in_transaction(partial(unpaid_store.request_cancel, order_id=order.id))
    kept = database.count("oms_order", cancel_requested_at="2026-11-30")
    return again, kept == 1


# --- ways to get there ---------------------------------------------------------------------------


def unpaid(database: Database) -> Order:
    a_sku(database)
    return an_order(key="k")


def paid(database: Database) -> Order:
    order = unpaid(database)
    assert accept(a_trade_notice(order)) is Result.APPLIED
    return order


def status(database: Database) -> str:
    return str(database.value("SELECT status FROM oms_order"))


def with_order[T](order: Order, work: Callable[[Tx, LockedOrder], T]) -> T:
    """``work`` on the locked order, whatever its status."""

    def locked(tx: Tx) -> T:
        found = store.lock_own_order(tx, order.member_id, order.order_no)
        assert found is not None
        return work(tx, found)

    return in_transaction(locked)


OPEN_STATES: Final = "AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
NO_OPEN_ATTEMPT: Final = store.CLOSE_ORDER[store.CLOSE_ORDER.index("AND NOT EXISTS") :]
PAYABLE: Final = Clause(
    store, "MARK_PAID", "AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
)
LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")
LEGAL_EVENTS: Final = constraint("oms_order_event", "FOREIGN KEY fk_event_transition")

BY_PAIRS: Final = "refused by fk_order_transition"
BY_EVENTS: Final = "refused by fk_event_transition"
UNPAID: Final = "PENDING_PAYMENT"
# The channel was asked, and never answered.
UNKNOWN: Final = "PAYMENT_PROCESSING"

GUARDS: Final = (
    Guard(
        "oms_order_request: one row a key",
        one_key_twice,
        (Placed, Replayed, 1),
        ((constraint("oms_order_request", "PRIMARY KEY"), (Placed, Placed, 2)),),
    ),
    Guard(
        "request_hash of an order",
        one_key_with_other_content,
        KeyReused,
        ((replaced(fingerprint, "of_order_request", lambda *_: "0" * 64), Replayed),),
    ),
    Guard(
        "COMPLETE_REQUEST: PROCESSING",
        complete_a_request_again,
        (False, True),
        ((Clause(request_store, "COMPLETE_REQUEST", "AND state = 'PROCESSING'"), (True, False)),),
    ),
    Guard(
        "CLOSE_ORDER: not paid",
        close_a_paid_order,
        (False, "PAID"),
        (
            (Clause(store, "CLOSE_ORDER", OPEN_STATES), BY_PAIRS),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, (True, "CLOSED")),
        ),
    ),
    Guard(
        "CLOSE_ORDER: no attempt is OPEN",
        partial(cancel_with_an_attempt, state="OPEN"),
        (CancelRequested, UNKNOWN),
        ((Clause(store, "CLOSE_ORDER", NO_OPEN_ATTEMPT), (Closed, "CLOSED")),),
    ),
    Guard(
        "CLOSE_ORDER: no attempt is CLOSING",
        partial(cancel_with_an_attempt, state="CLOSING"),
        (CancelRequested, UNKNOWN),
        ((Clause(store, "CLOSE_ORDER", "'OPEN', 'CLOSING'", "'OPEN'"), (Closed, "CLOSED")),),
    ),
    Guard(
        "MARK_PAID: not closed",
        pay_a_closed_order,
        (Result.REFUND_PENDING, "CLOSED"),
        (
            (PAYABLE, "refused by ck_order_close_reason"),
            (constraint("oms_order", "CHECK ck_order_close_reason"), (Result.APPLIED, "PAID")),
        ),
    ),
    Guard(
        "MARK_PAID: not RESERVING",
        pay_an_order_whose_stock_is_not_held_yet,
        (Result.REFUND_PENDING, "RESERVING"),
        (
            (PAYABLE, BY_PAIRS),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, (Result.APPLIED, "PAID")),
        ),
    ),
    Guard(
        "MARK_PAID: not paid before",
        pay_twice,
        (Result.REFUND_PENDING, 1),
        (
            (PAYABLE, BY_PAIRS),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, "refused by uk_payment_applied"),
            (constraint("oms_order_payment", "KEY uk_payment_applied"), (Result.APPLIED, 2)),
        ),
    ),
    Guard(
        "MARK_PAID: the order's amount",
        pay_too_little,
        (False, UNPAID),
        ((Clause(store, "MARK_PAID", "AND pay_amount = %s", "AND %s"), (True, "PAID")),),
    ),
    Guard(
        "REQUEST_CANCEL: not paid",
        wish_to_cancel_a_paid_order,
        False,
        ((Clause(unpaid_store, "REQUEST_CANCEL", OPEN_STATES), True),),
    ),
    Guard(
        "REQUEST_CANCEL: not asked for before",
        wish_to_cancel_twice,
        (False, True),
        (
            (
                Clause(unpaid_store, "REQUEST_CANCEL", "AND cancel_requested_at IS NULL"),
                (True, False),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)


def test_only_a_number_that_is_taken_is_tried_again(scratch):
    """A duplicate of anything else is named: another number would not help."""
    a_sku(scratch)
    an_order(member_id=42)
    scratch.execute("CREATE UNIQUE INDEX uk_member ON oms_order (member_id)")
    try:
        with pytest.raises(InvariantBroken, match="uk_member"):
            an_order(member_id=42)
    finally:
        scratch.execute("DROP INDEX uk_member ON oms_order")
    assert scratch.count("oms_order") == 1
