"""Goal: the row locks of the stock are missed when they are gone, or too strong.

Method: see guards.py. Each proof lets a second session do all its work right after the statement
that locks. With the lock the engine says that the second one waits; without it, it overtakes. Two
duplicates that meet before their shared read deadlock as soon as it asks for more.
"""

from collections.abc import Callable
from typing import Final

import pytest

from lockstep.db import connection
from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import batch_store, store
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Held, Refusal, Refused, Released, ReservationState
from lockstep.inventory.release import release
from lockstep.inventory.reserve import reserve
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause
from tests.support.builders import a_sku, try_hold
from tests.support.database import Database
from tests.support.threads import Deadlocks, Meanwhile, Meeting, at_once

HELD_BEFORE: Final = Held(repeated=True, state=ReservationState.RESERVED)
NOT_RESERVED: Final = Refused(Refusal.RESERVATION_NOT_RESERVED)
CANNOT_RELEASE: Final = Refused(Refusal.RESERVATION_CANNOT_RELEASE)
CONFIRMED: Final = Confirmed(repeated=False)
RELEASED: Final = Released(repeated=False)
RESERVED: Final = "AND state = 'RESERVED'"
CHANGED: Final = "refused: a hold changed under its lock"


type Seen = tuple[object, object, tuple[int, int]]
"""What the two commands came to, and (on hand, locked) after them."""


def release_in_the_middle_of_a_confirm(database: Database) -> Seen:
    return in_the_middle(database, lambda: confirm("A-1", 1), lambda: release("A-1", 1))


def confirm_in_the_middle_of_a_release(database: Database) -> Seen:
    return in_the_middle(database, lambda: release("A-1", 1), lambda: confirm("A-1", 1))


def in_the_middle(
    database: Database, first: Callable[[], object], second: Callable[[], object]
) -> Seen:
    """Two of the four pieces that are locked are another order's."""
    a_sku(database)
    try_hold("A-1", 1, {1001: 2})
    try_hold("B-1", 2, {1001: 2})
    other = Meanwhile(database, second)
    with pytest.MonkeyPatch.context() as patch:
        looked = other.after(batch_store.lock_reservations)
        patch.setattr(batch_store, "lock_reservations", looked)
        try:
            came_to = first()
        finally:
            then = other.outcome()
        return came_to, then, database.stock(1001)


def deadlocks_of_two_repeated_holds(database: Database) -> int:
    a_sku(database)
    try_hold("A-1", 1, {1001: 2})
    with pytest.MonkeyPatch.context() as patch:
        deadlocks = Deadlocks(patch)
        repeat = Meeting().before(store.read_reservation_shared)
        patch.setattr(store, "read_reservation_shared", repeat)
        outcomes = at_once(*[lambda: try_hold("A-1", 1, {1001: 2})] * 2)
    assert outcomes == [HELD_BEFORE] * 2
    return deadlocks.seen


def repeated_hold_in_a_transaction_that_read_before(database: Database) -> object:
    """REPEATABLE READ: a plain read goes on seeing what was there before the first hold."""
    a_sku(database)
    session_variables = connection._session_variables

    def work(tx: Tx) -> object:
        expires_at = store.read_skus(tx, [1001])[1001].now
        at_once(lambda: try_hold("A-1", 1, {1001: 2}))
        return reserve(tx, "A-1", 1, {1001: 2}, expires_at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            connection,
            "_session_variables",
            lambda wait: session_variables(wait).replace("READ-COMMITTED", "REPEATABLE-READ"),
        )
        connection.discard()
        try:
            return in_transaction(work)
        finally:
            connection.discard()


GUARDS: Final = (
    Guard(
        "LOCK_RESERVATIONS and MARK_CONFIRMED: or it sells what another order holds",
        release_in_the_middle_of_a_confirm,
        (CONFIRMED, CANNOT_RELEASE, (8, 2)),
        (
            (Clause(batch_store, "LOCK_RESERVATIONS", "FOR UPDATE OF r"), CHANGED),
            (Clause(batch_store, "MARK_CONFIRMED", RESERVED), (CONFIRMED, RELEASED, (8, 0))),
        ),
    ),
    Guard(
        "LOCK_RESERVATIONS and MARK_RELEASED: or it frees what another order holds",
        confirm_in_the_middle_of_a_release,
        (RELEASED, NOT_RESERVED, (10, 2)),
        (
            (Clause(batch_store, "LOCK_RESERVATIONS", "FOR UPDATE OF r"), CHANGED),
            (Clause(batch_store, "MARK_RELEASED", RESERVED), (RELEASED, CONFIRMED, (8, 0))),
        ),
    ),
    Guard(
        "READ_RESERVATION_SHARED: no more than FOR SHARE",
        deadlocks_of_two_repeated_holds,
        0,
        ((Clause(store, "READ_RESERVATION_SHARED", "FOR SHARE", "FOR UPDATE"), 1),),
    ),
    Guard(
        "READ_RESERVATION_SHARED: no less than FOR SHARE",
        repeated_hold_in_a_transaction_that_read_before,
        HELD_BEFORE,
        (
            (
                Clause(store, "READ_RESERVATION_SHARED", "FOR SHARE"),
                "refused: the order of A-1 has that number under another id",
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_lock_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
