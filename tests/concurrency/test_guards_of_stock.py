"""Goal: every guard of the stock's statements and keys is missed when it is gone.

Method: see guards.py. The holds belong to no order, so that commands which no order would send
can meet.
"""

from typing import Final

import pytest

from lockstep import fingerprint
from lockstep.db.transaction import in_transaction
from lockstep.inventory import batch_store, store
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import (
    Confirmed,
    Held,
    HoldName,
    Refusal,
    Refused,
    Released,
    ReservationState,
    Short,
)
from lockstep.inventory.release import release
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint, replaced
from tests.support.builders import a_sku, try_hold
from tests.support.database import Database

HELD: Final = Held(repeated=False, state=ReservationState.RESERVED)
HELD_BEFORE: Final = Held(repeated=True, state=ReservationState.RESERVED)
CONFIRMED: Final = Confirmed(repeated=False)
RELEASED: Final = Released(repeated=False)
CONFLICT: Final = Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
MORE_THAN_IS_LOCKED: Final = "refused: more is held than is locked of one of SKU [1001]"
OTHER_ID: Final = "refused: the order of B-1 has that number under another id"

type Seen = tuple[object, tuple[int, int]]
"""What the last command came to, and (on hand, locked) after it."""


def hold_more_than_is_there(database: Database) -> Seen:
    a_sku(database, stock=1)
    return try_hold("A-1", 1, {1001: 2}), database.stock(1001)


def sell_what_is_not_locked(database: Database) -> Seen:
    two_held(database)
    database.execute("UPDATE ims_sku_stock SET lock_stock = 0")
    return confirm("A-1", 1), database.stock(1001)


def sell_what_is_not_on_hand(database: Database) -> Seen:
    two_held(database)
    database.execute("UPDATE ims_sku_stock SET stock = 1")
    return confirm("A-1", 1), database.stock(1001)


def free_what_is_not_locked(database: Database) -> Seen:
    two_held(database)
    database.execute("UPDATE ims_sku_stock SET lock_stock = 0")
    return release("A-1", 1), database.stock(1001)


def hold_twice(database: Database) -> Seen:
    two_held(database)
    return try_hold("A-1", 1, {1001: 2}), database.stock(1001)


def hold_under_the_id_of_another_order(database: Database) -> Seen:
    two_held(database)
    return try_hold("A-1", 2, {1001: 2}), database.stock(1001)


def hold_once_more_under_another_id(database: Database) -> Seen:
    two_held(database)
    return try_hold("B-1", 1, {1001: 2}), database.stock(1001)


def hold_other_lines_under_the_same_id(database: Database) -> Seen:
    two_held(database)
    return try_hold("A-1", 1, {1001: 3}), database.stock(1001)


def hold_after_the_release(database: Database) -> Seen:
    a_sku(database)
    in_transaction(lambda tx: batch_store.insert_tombstones(tx, [HoldName("A-1", 1)]))
    return try_hold("A-1", 1, {1001: 2}), database.stock(1001)


def two_held(database: Database) -> None:
    """Two of ten pieces are held as A-1, for order 1."""
    a_sku(database, stock=10)
    assert try_hold("A-1", 1, {1001: 2}) == HELD


CHECK: Final = constraint("ims_sku_stock", "CHECK ck_sku_stock")
UK_RESERVATION: Final = constraint("ims_reservation", "KEY uk_reservation")
UK_ORDER_N: Final = constraint("ims_reservation", "KEY uk_reservation_order")
ITEMS_KEY: Final = constraint("ims_reservation_item", "PRIMARY KEY")
LOCKED: Final = "AND s.lock_stock >= w.quantity"

GUARDS: Final = (
    Guard(
        "HOLD_STOCK: what is available",
        hold_more_than_is_there,
        (Short(1001), (1, 0)),
        (
            (
                Clause(store, "HOLD_STOCK", "AND stock - lock_stock >= %(quantity)s"),
                "refused by ck_sku_stock",
            ),
            (CHECK, (HELD, (1, 2))),
        ),
    ),
    Guard(
        "SELL_STOCK: what is locked",
        sell_what_is_not_locked,
        MORE_THAN_IS_LOCKED,
        (
            (Clause(batch_store, "SELL_STOCK", LOCKED), "refused by ck_sku_stock"),
            (CHECK, (CONFIRMED, (8, -2))),
        ),
    ),
    Guard(
        "SELL_STOCK: what is on hand",
        sell_what_is_not_on_hand,
        "refused by ck_sku_stock",
        (
            (CHECK, MORE_THAN_IS_LOCKED),
            (
                Clause(batch_store, "SELL_STOCK", "s.stock >= w.quantity", "TRUE"),
                (CONFIRMED, (-1, 0)),
            ),
        ),
    ),
    Guard(
        "FREE_STOCK: what is locked",
        free_what_is_not_locked,
        MORE_THAN_IS_LOCKED,
        (
            (
                Clause(batch_store, "FREE_STOCK", "WHERE s.lock_stock >= w.quantity"),
                "refused by ck_sku_stock",
            ),
            (CHECK, (RELEASED, (10, -2))),
        ),
    ),
    Guard(
        "uk_reservation and uk_reservation_order: one hold an id",
        hold_twice,
        (HELD_BEFORE, (10, 2)),
        (
            (UK_RESERVATION, (HELD_BEFORE, (10, 2))),
            (UK_ORDER_N, "refused by PRIMARY"),
            (ITEMS_KEY, (HELD, (10, 4))),
        ),
    ),
    Guard(
        "uk_reservation: one order an id",
        hold_under_the_id_of_another_order,
        (CONFLICT, (10, 2)),
        ((UK_RESERVATION, "refused by PRIMARY"), (ITEMS_KEY, (HELD, (10, 4)))),
    ),
    Guard(
        "uk_reservation_order: one first hold an order",
        hold_once_more_under_another_id,
        OTHER_ID,
        ((UK_ORDER_N, (HELD, (10, 4))),),
    ),
    Guard(
        "request_hash of a reservation",
        hold_other_lines_under_the_same_id,
        (CONFLICT, (10, 2)),
        (
            (
                replaced(fingerprint, "of_reservation", lambda *_: "0" * 64),
                (HELD_BEFORE, (10, 2)),
            ),
        ),
    ),
    Guard(
        "the tombstone",
        hold_after_the_release,
        (Refused(Refusal.RESERVATION_ALREADY_RELEASED), (10, 0)),
        (
            (UK_RESERVATION, (Refused(Refusal.RESERVATION_ALREADY_RELEASED), (10, 0))),
            (UK_ORDER_N, (HELD, (10, 2))),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
