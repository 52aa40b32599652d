"""Goal: the row locks of requests and orders are missed when they are gone, or too strong.

Method: see guards.py. Each proof lets a second session do all its work right after the statement
that locks. With the lock the engine says that the second one waits; without it, it overtakes. Two
duplicates that meet before their shared read deadlock as soon as it asks for more.
"""

from typing import Final

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import request_store, store
from lockstep.orders.model import (
    CancelRequested,
    Closed,
    InFlight,
    NotCancellable,
    Replayed,
    RequestState,
)
from lockstep.orders.place import place
from lockstep.orders.query import probe
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, a_trade_notice, an_order, place_command
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.packets import take_apart
from tests.support.threads import Deadlocks, Meanwhile, Meeting, at_once


def probe_in_the_middle_of_the_request(database: Database) -> tuple[object, bool]:
    """What the probe said, and whether it had to wait for that."""
    a_sku(database)
    other = Meanwhile(database, lambda: probe(42, "k"))
    with pytest.MonkeyPatch.context() as patch:
        take_apart(patch)
        patch.setattr(request_store, "claim_request", other.after(request_store.claim_request))
        place(place_command(key="k"))
    state, _ = other.outcome()
    return state, other.had_to_wait


def two_repeated_requests(database: Database) -> tuple[set[type], int]:
    """What the repeats came to, and how often the engine called a deadlock."""
    a_sku(database)
    command = place_command(key="k")
    place(command)
    with pytest.MonkeyPatch.context() as patch:
        deadlocks = Deadlocks(patch)
        # Both hold what their failed INSERT locked, until both have had their look.
        look = Meeting().after(Meeting().before(request_store.read_request))
        patch.setattr(request_store, "read_request", look)
        outcomes = at_once(*[lambda: place(command)] * 2)
    return {type(outcome) for outcome in outcomes}, deadlocks.seen


def pay_in_the_middle_of_a_cancel(database: Database) -> tuple[type, Result, str, str | None]:
    """Both answers, the order's status, and why the money goes back."""
    a_sku(database)
    order = an_order()
    other = Meanwhile(database, lambda: accept(a_trade_notice(order)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_own_order", other.after(store.lock_own_order))
        cancelled = type(cancel(42, order.order_no))
    return cancelled, other.outcome(), *order_and_reason(database)


def cancel_in_the_middle_of_a_payment(database: Database) -> tuple[Result, type, str, str | None]:
    a_sku(database)
    order = an_order()
    other = Meanwhile(database, lambda: type(cancel(42, order.order_no)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_order_of_trade", other.after(store.lock_order_of_trade))
        result = accept(a_trade_notice(order))
    return result, other.outcome(), *order_and_reason(database)


def attempt_made_before_the_payment_has_its_turn(database: Database) -> tuple[Result, str]:
    """What the payment came to, and what became of the attempt."""
    a_sku(database)
    order = an_order()
    other = Meanwhile(database, lambda: accept(a_trade_notice(order)))
    lock = other.after(store.lock_own_order)

    def make_attempt(tx: Tx) -> None:
        lock(tx, 42, order.order_no)
        tx.insert(
            "INSERT INTO oms_payment_attempt "
            "(order_id, out_trade_no, product, amount, state, expires_at) "
            "VALUES (%s, %s, 'page', 9.90, 'OPEN', NOW(3))",
            (order.id, order.order_no),
        )

    in_transaction(make_attempt)
    return other.outcome(), database.value("SELECT state FROM oms_payment_attempt")


def order_and_reason(database: Database) -> tuple[str, str | None]:
    return (
        database.value("SELECT status FROM oms_order"),
        database.value("SELECT reason FROM oms_order_payment"),
    )


LOCK_OWN: Final = Clause(store, "LOCK_OWN_ORDER", "FOR UPDATE")
LOCK_OF_TRADE: Final = Clause(store, "LOCK_ORDER_OF_TRADE", "FOR UPDATE")
CLOSE_STATES: Final = Clause(
    store,
    "CLOSE_ORDER",
    "AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')",
)
PAY_STATES: Final = Clause(
    store, "MARK_PAID", "AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
)

GUARDS: Final = (
    Guard(
        "LOCK_ORDER_OF_TRADE: the attempts FOR SHARE, or one that was just made is not seen",
        attempt_made_before_the_payment_has_its_turn,
        (Result.APPLIED, "PAID"),
        ((Clause(store, "LOCK_ORDER_OF_TRADE", "FOR SHARE"), (Result.APPLIED, "OPEN")),),
    ),
    Guard(
        "READ_REQUEST: NOWAIT, or the probe waits",
        probe_in_the_middle_of_the_request,
        (RequestState.PROCESSING, False),
        ((Clause(request_store, "READ_REQUEST", "NOWAIT"), (RequestState.SUCCESS, True)),),
    ),
    Guard(
        "READ_REQUEST: no less than FOR SHARE, or the probe has not seen it",
        probe_in_the_middle_of_the_request,
        (RequestState.PROCESSING, False),
        (
            (
                Clause(request_store, "READ_REQUEST", "FOR SHARE NOWAIT"),
                (RequestState.UNKNOWN, False),
            ),
        ),
    ),
    Guard(
        "READ_REQUEST: no more than FOR SHARE, or repeats find each other in the way",
        two_repeated_requests,
        ({Replayed}, 0),
        ((Clause(request_store, "READ_REQUEST", "FOR SHARE", "FOR UPDATE"), ({InFlight}, 0)),),
    ),
    Guard(
        "READ_REQUEST: no more than FOR SHARE, or repeats deadlock",
        two_repeated_requests,
        ({Replayed}, 0),
        (
            (
                Clause(request_store, "READ_REQUEST", "FOR SHARE NOWAIT", "FOR UPDATE"),
                ({Replayed}, 1),
            ),
        ),
    ),
    Guard(
        "LOCK_OWN_ORDER: FOR UPDATE, then CLOSE_ORDER's states, then the legal pairs",
        pay_in_the_middle_of_a_cancel,
        (Closed, Result.REFUND_PENDING, "CLOSED", "LATE_PAYMENT"),
        (
            (LOCK_OWN, (CancelRequested, Result.APPLIED, "PAID", None)),
            (CLOSE_STATES, "refused by fk_order_transition"),
            (
                constraint("oms_order", "FOREIGN KEY fk_order_transition"),
                (Closed, Result.APPLIED, "CLOSED", None),
            ),
        ),
    ),
    Guard(
        "LOCK_ORDER_OF_TRADE: FOR UPDATE, then MARK_PAID's states, then the CHECK",
        cancel_in_the_middle_of_a_payment,
        (Result.APPLIED, NotCancellable, "PAID", None),
        (
            (LOCK_OF_TRADE, (Result.REFUND_PENDING, Closed, "CLOSED", "SECOND_PAYMENT")),
            (PAY_STATES, "refused by ck_order_close_reason"),
            (
                constraint("oms_order", "CHECK ck_order_close_reason"),
                (Result.APPLIED, Closed, "PAID", None),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_lock_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
