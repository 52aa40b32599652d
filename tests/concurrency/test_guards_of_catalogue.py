"""Goal: every guard of a catalogue load is missed when it is gone.

Method: see guards.py.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pytest

from lockstep.db.transaction import Tx
from lockstep.errors import TryAgain
from lockstep.inventory import catalogue
from lockstep.inventory import catalogue_store as store
from lockstep.inventory.catalogue import load_catalogue
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Sku
from lockstep.orders.place import place
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint, replaced
from tests.support.builders import a_sku, place_command, try_hold
from tests.support.database import Database
from tests.support.threads import Meanwhile

FELL_BELOW: Final = "refused: a locked SKU's stock fell below what is held"


def load(stock: int, load_id: str = "monday") -> str:
    """The error of a load, or what it did to the stock."""
    row = f"1001,SKU 1001,9.90,{stock},0,1"
    report = load_catalogue(
        f"sku_id,title,price,stock,hot,on_sale\n{row}", "operator:alice", load_id
    )
    if report.errors:
        return report.errors[0].code
    return "repeated" if report.repeated else "loaded"


def take_what_is_held(database: Database) -> tuple[str, tuple[int, int]]:
    a_sku(database, stock=10)
    try_hold("A-1", 1, {1001: 2})
    return load(1), database.stock(1001)


def buy_in_the_middle_of_a_load(database: Database) -> tuple[str, str, tuple[int, int]]:
    a_sku(database, stock=5)
    buyer = Meanwhile(database, lambda: place(place_command({1001: 1})))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_skus", buyer.after(store.lock_skus))
        return load(0), type(buyer.outcome()).__name__, database.stock(1001)


def load_again_after_a_sale(database: Database) -> tuple[str, tuple[int, int]]:
    a_sku(database, stock=10)
    load(20)
    try_hold("A-1", 1, {1001: 4})
    confirm("A-1", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "WITHIN_SECONDS", 1)  # to try again does not help
        try:
            again = load(20)
        except TryAgain:  # or that its time is over, if that comes first
            return "TryAgain", database.stock(1001)
    return again, database.stock(1001)


def load_another_file_under_the_same_id(database: Database) -> tuple[str, tuple[int, int]]:
    a_sku(database, stock=10)
    load(20)
    return load(30), database.stock(1001)


def lock_skus_that_nobody_holds(tx: Tx, sku_ids: Iterable[int]) -> dict[int, Sku]:
    return {i: replace(sku, lock_stock=0) for i, sku in lock_skus(tx, sku_ids).items()}


lock_skus = store.lock_skus
NOT_SEEN: Final = replaced(store, "read_load", lambda *_: None)
NOT_TOLD_APART: Final = replaced(
    catalogue, "_report_repeated", lambda earlier, _: catalogue._report(earlier, repeated=True)
)

GUARDS: Final = (
    Guard(
        "what is held, as seen under the lock; CHANGE_SKUS; ck_sku_stock",
        take_what_is_held,
        ("STOCK_BELOW_HELD", (10, 2)),
        (
            (replaced(store, "lock_skus", lock_skus_that_nobody_holds), FELL_BELOW),
            (
                Clause(store, "CHANGE_SKUS", "WHERE s.stock + w.delta >= s.lock_stock"),
                "refused by ck_sku_stock",
            ),
            (constraint("ims_sku_stock", "CHECK ck_sku_stock"), ("loaded", (1, 2))),
        ),
    ),
    Guard(
        "LOCK_SKUS: FOR UPDATE",
        buy_in_the_middle_of_a_load,
        ("loaded", "OutOfStock", (0, 0)),
        ((Clause(store, "LOCK_SKUS", "FOR UPDATE"), FELL_BELOW),),
    ),
    Guard(
        "a load is done once: READ_LOAD, uk_stock_source, the load's own key",
        load_again_after_a_sale,
        ("repeated", (16, 0)),
        (
            (NOT_SEEN, ("TryAgain", (16, 0))),
            (constraint("ims_stock_entry", "KEY uk_stock_source"), ("TryAgain", (16, 0))),
            (constraint("ims_catalogue_load", "PRIMARY KEY"), ("loaded", (20, 0))),
        ),
    ),
    Guard(
        "content_hash of a load",
        load_another_file_under_the_same_id,
        ("LOAD_ID_REUSED", (20, 0)),
        ((NOT_TOLD_APART, ("repeated", (20, 0))),),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
