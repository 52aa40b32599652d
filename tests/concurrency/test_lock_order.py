"""Goal: orders, confirms and releases of several SKUs never deadlock, whatever order clients name.

Method: storms over the same three SKUs, half of the orders naming them upwards and half downwards.
Every 1213 that the engine raises to this process is counted, retried or not; there must be none. A
negative control takes the sorting away, and must see deadlocks: two orders stand at a barrier with
one SKU each and reach for the other's.
"""

from typing import Final

from lockstep.inventory import reserve as reserve_module
from lockstep.inventory import store as inventory
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Held, Refused, Released, Short
from lockstep.inventory.release import release
from lockstep.orders.model import Placed, PlaceOrder
from lockstep.orders.place import place
from tests.concurrency.taking_away import replaced
from tests.support.builders import a_sku, assert_at_rest, try_hold
from tests.support.database import Database
from tests.support.packets import take_apart
from tests.support.threads import Deadlocks, Meeting, at_once, crowd

SKUS: Final = (1001, 1002, 1003)
ENGINE_DEADLOCKS: Final = (
    "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
)


def some_skus(database: Database) -> None:
    for sku_id in SKUS:
        a_sku(database, sku_id, stock=1000)


def lines(serial: int) -> dict[int, int]:
    """One of each SKU, named upwards or downwards."""
    return dict.fromkeys(SKUS if serial % 2 else reversed(SKUS), 1)


def an_order_of_all(serial: int) -> PlaceOrder:
    return PlaceOrder(member_id=serial, idempotency_key="k", lines=lines(serial))


def test_500_orders_that_name_their_skus_in_opposite_orders_never_deadlock(database, monkeypatch):
    some_skus(database)
    deadlocks = Deadlocks(monkeypatch)
    outcomes = crowd(16, map(an_order_of_all, range(1, 501)), place)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Placed)] == []
    assert deadlocks.seen == 0
    for sku_id in SKUS:
        assert database.stock(sku_id) == (1000, 500)
    assert_at_rest(database)


def test_holds_sales_and_releases_of_the_same_skus_never_deadlock(database, monkeypatch):
    some_skus(database)
    deadlocks = Deadlocks(monkeypatch)

    def a_whole_life(serial: int) -> list[Held | Short | Confirmed | Released | Refused]:
        hold, end = f"order{serial}-1", confirm if serial % 4 < 2 else release
        return [try_hold(hold, serial, lines(serial)), end(hold, serial), end(hold, serial)]

    for held, first, again in crowd(8, range(200), a_whole_life):
        assert isinstance(held, Held)
        assert isinstance(first, Confirmed | Released)
        assert not first.repeated
        assert again == type(first)(repeated=True)
    assert deadlocks.seen == 0
    for sku_id in SKUS:
        assert database.stock(sku_id) == (900, 0)
    assert_at_rest(database)


def test_without_sorting_two_orders_deadlock_and_are_retried(database, monkeypatch):
    some_skus(database)
    deadlocks, before = Deadlocks(monkeypatch), database.value(ENGINE_DEADLOCKS)
    rounds, ask_to_hold = 10, inventory.ask_to_hold
    take_apart(monkeypatch)
    for serial in range(rounds):
        # Neither goes on to a second SKU before both hold their first.
        monkeypatch.setattr(inventory, "ask_to_hold", Meeting().after(ask_to_hold))
        commands = [an_order_of_all(2 * serial + 1), an_order_of_all(2 * serial + 2)]
        with replaced(reserve_module, "sorted", list)(database):
            outcomes = at_once(*[lambda c=command: place(c) for command in commands])
        assert all(isinstance(outcome, Placed) for outcome in outcomes)
    assert deadlocks.seen == rounds
    assert database.value(ENGINE_DEADLOCKS) >= before + rounds
    assert_at_rest(database)
