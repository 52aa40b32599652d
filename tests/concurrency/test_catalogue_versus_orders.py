"""Goal: a catalogue may be loaded in the middle of a sale.

Method: loads that raise and lower stocks and change prices run beside members who order, pay and
cancel; at rest every invariant holds and no deadlock was seen. Then single moments: somebody else's
whole work in the middle of ours, and two loads that meet.
"""

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest

from infra.local import invariants
from lockstep.inventory import catalogue_store
from lockstep.inventory import store as inventory
from lockstep.inventory.catalogue import CatalogueReport, load_catalogue
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed
from lockstep.orders.model import InFlight, OutOfStock, Placed
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, a_trade_notice, assert_at_rest, place_command, try_hold
from tests.support.channel import cancel
from tests.support.threads import Deadlocks, Meanwhile, Meeting, at_once, crowd

SKU_IDS = range(1001, 1006)


def file_of(*rows: str) -> str:
    return "\n".join(["sku_id,title,price,stock,hot,on_sale", *rows])


def load(load_id: str, *rows: str) -> CatalogueReport:
    return load_catalogue(file_of(*rows), "operator:alice", load_id)


def a_load(n: int, rows: list[str]) -> str:
    return "refused" if load(f"load-{n}", *rows).errors else "loaded"


def a_member(n: int, lines: dict[int, int], wish: str) -> str:
    """Order, then pay or cancel or leave it at that."""
    command = place_command(lines, member_id=n + 1)
    while isinstance(outcome := place(command), InFlight):
        pass
    if not isinstance(outcome, Placed):
        return "out of stock"
    order = outcome.order
    if wish == "cancel":
        cancel(n + 1, order.order_no)
    elif wish == "pay":
        accept(a_trade_notice(order))
        confirm(f"{order.order_no}-1", order.id)
    return "ordered"


def somebody(n: int, chance: random.Random) -> Callable[[], str]:
    """Every tenth is a load of three SKUs, the others are members who want three."""
    some = chance.sample(SKU_IDS, 3)
    if n % 10:
        lines = {sku_id: chance.randint(1, 2) for sku_id in some}
        return partial(a_member, n, lines, chance.choice(["cancel", "pay", "leave"]))
    rows = [f"{i},SKU {i},{chance.randint(1, 9)}.00,{chance.randint(0, 30)},0,1" for i in some]
    return partial(a_load, n, rows)


def test_loads_beside_orders_payments_and_cancellations_keep_every_invariant(database, monkeypatch):
    for sku_id in SKU_IDS:
        a_sku(database, sku_id, stock=20)
    deadlocks = Deadlocks(monkeypatch)
    chance = random.Random(20261130)
    works = [somebody(n, chance) for n in range(400)]
    done = Counter(crowd(12, works, lambda work: work()))
    assert done["loaded"] + done["refused"] == 40
    assert min(done["loaded"], done["refused"], done["ordered"]) > 0, done
    assert deadlocks.seen == 0
    assert_at_rest(database)


def test_a_price_that_changes_between_an_orders_read_and_its_commit_is_not_that_orders(
    database, monkeypatch
):
    a_sku(database, price="9.90")
    other = Meanwhile(database, partial(load, "sale", "1001,On sale,5.00,,0,1"))
    monkeypatch.setattr(inventory, "read_skus", other.after(inventory.read_skus))
    outcome = place(place_command({1001: 2}))
    assert other.outcome() == CatalogueReport("sale", repriced=1)
    assert not other.had_to_wait
    assert isinstance(outcome, Placed)
    assert outcome.order.pay_amount == Decimal("19.80")
    assert [(line.title, line.price) for line in outcome.order.lines] == [
        ("SKU 1001", Decimal("9.90"))
    ]
    assert_at_rest(database)


def test_stock_that_goes_between_an_orders_read_and_its_hold_is_not_sold(database, monkeypatch):
    a_sku(database, stock=5)
    other = Meanwhile(database, partial(load, "gone", "1001,SKU 1001,9.90,0,0,1"))
    monkeypatch.setattr(inventory, "read_skus", other.after(inventory.read_skus))
    assert isinstance(place(place_command({1001: 1})), OutOfStock)
    assert other.outcome() == CatalogueReport("gone", restocked=1)
    assert database.stock(1001) == (0, 0)
    assert_at_rest(database)


def test_what_is_sold_while_a_load_is_at_the_sku_is_sold(database, monkeypatch):
    a_sku(database, stock=10)
    try_hold("A-1", 1, {1001: 2})
    sale = Meanwhile(database, partial(confirm, "A-1", 1))
    monkeypatch.setattr(catalogue_store, "lock_skus", sale.after(catalogue_store.lock_skus))
    assert load("delivery", "1001,SKU 1001,9.90,20,0,1").restocked == 1
    assert sale.outcome() == Confirmed(repeated=False)
    assert sale.had_to_wait
    assert database.stock(1001) == (18, 0)
    assert invariants.broken(database.rows) == {}


def test_nobody_waits_for_a_sku_that_a_file_leaves_as_it_is(database, monkeypatch):
    a_sku(database, 1001)
    a_sku(database, 1002)
    buyer = Meanwhile(database, partial(place, place_command({1001: 1})))
    monkeypatch.setattr(catalogue_store, "insert_load", buyer.after(catalogue_store.insert_load))
    load("prices", "1001,SKU 1001,9.90,10,0,1", "1002,SKU 1002,8.80,10,0,1")
    assert isinstance(buyer.outcome(), Placed)
    assert not buyer.had_to_wait


@pytest.mark.parametrize("is_new", [True, False], ids=["new SKUs", "known SKUs"])
def test_one_load_sent_twice_at_once_is_loaded_once(database, monkeypatch, is_new):
    if not is_new:
        a_sku(database, 1001)
        a_sku(database, 1002)
    meeting = Meeting().before(catalogue_store.lock_skus)
    monkeypatch.setattr(catalogue_store, "lock_skus", meeting)
    rows = ("1001,SKU 1001,9.90,7,0,1", "1002,SKU 1002,9.90,17,0,1")
    reports = at_once(*[partial(load, "twice", *rows)] * 2)
    first = CatalogueReport("twice", loaded=2) if is_new else CatalogueReport("twice", restocked=2)
    assert sorted(report.repeated for report in reports) == [False, True]
    assert {(r.loaded, r.restocked) for r in reports} == {(first.loaded, first.restocked)}
    assert (database.stock(1001), database.stock(1002)) == ((7, 0), (17, 0))
    assert database.count("ims_catalogue_load") == 1
    assert invariants.broken(database.rows) == {}


def test_two_files_with_one_new_sku_are_loaded_one_after_the_other(database, monkeypatch):
    meeting = Meeting().before(catalogue_store.lock_skus)
    monkeypatch.setattr(catalogue_store, "lock_skus", meeting)
    reports = at_once(
        partial(load, "a", "1001,SKU 1001,9.90,7,0,1"),
        partial(load, "b", "1001,SKU 1001,9.90,9,0,1"),
    )
    assert sorted((r.loaded, r.restocked) for r in reports) == [(0, 1), (1, 0)]
    kinds = {row["kind"] for row in database.rows("SELECT kind FROM ims_stock_entry")}
    assert kinds in ({"INITIAL", "RESTOCK"}, {"INITIAL", "CORRECTION"})
    assert invariants.broken(database.rows) == {}
