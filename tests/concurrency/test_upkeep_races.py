"""Goal: many orders' sweeps, turns and payments at once share the work and do nothing twice.

Method: threads, each with a connection of its own, start at a barrier; nothing sleeps. What each
came to, the rows and the counters must tell one story. What two of them come to at one order is
shown, step by step, by the proof's section "interleavings".
"""

from contextlib import suppress
from typing import Final

import pytest

from lockstep.db.errors import Contended
from lockstep.inventory import store as inventory
from lockstep.orders.hold import hold
from lockstep.orders.model import (
    Held,
    HoldOutcome,
    NotWaiting,
    Order,
    OrderStatus,
    Placed,
    SoldOut,
)
from lockstep.orders.place import place
from lockstep.orders.turn import TurnTaken
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.upkeep import store
from lockstep.upkeep.sweep import Swept
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_order,
    assert_at_rest,
    place_command,
)
from tests.support.channel import sweep
from tests.support.database import Database
from tests.support.threads import Deadlocks, Meeting, at_once, crowd, in_rounds

OVERDUE: Final = "UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND"
HOLDS_OVERDUE: Final = "UPDATE ims_reservation SET expires_at = NOW(3) - INTERVAL 1 SECOND"


def some_orders(database: Database, how_many: int, *, hot: bool = False) -> list[Order]:
    a_sku(database, stock=how_many, hot=hot)
    return crowd(4, range(1, how_many + 1), lambda member: an_order(member_id=member))


def pay(order: Order) -> Result:
    return accept(a_trade_notice(order))


def turn(order: Order) -> HoldOutcome:
    """However many ask for it at once, its turn comes."""
    while True:
        with suppress(TurnTaken):
            return hold(order.id)


def sweep_all() -> Swept:
    return sweep(lambda: True)


def test_two_sweeps_at_once_share_the_work_and_do_nothing_twice(database, monkeypatch):
    """Both have the same page before either acts."""
    some_orders(database, 150)
    database.execute(OVERDUE)
    database.execute(HOLDS_OVERDUE)
    read = Meeting().after(store.read_expired_orders)
    monkeypatch.setattr(store, "read_expired_orders", read)
    one, two = at_once(sweep_all, sweep_all)
    assert one.orders_closed + two.orders_closed == 150
    assert one.holds_settled + two.holds_settled == 150
    assert (one.failed, two.failed) == ([], [])
    assert database.count("outbox", queue="release") == 150
    assert_at_rest(database)
    assert database.stock(1001) == (150, 0)


def test_fifty_buyers_of_twenty_hot_ones_come_to_twenty_holds(database):
    a_sku(database, stock=20, hot=True)
    orders = crowd(8, range(1, 51), lambda member: an_order(member_id=member))
    outcomes = crowd(8, [order for order in orders for _ in range(2)], turn)
    assert outcomes.count(Held()) == 20
    assert outcomes.count(SoldOut()) == 30
    assert outcomes.count(NotWaiting()) == 50
    assert database.stock(1001) == (20, 20)
    assert_at_rest(database)


def test_hot_and_ordinary_lines_in_one_storm_never_oversell_and_never_deadlock(
    database, monkeypatch
):
    """Some orders wait for both SKUs, some take the ordinary one at once, in opposite orders."""
    a_sku(database, 1001, stock=60)
    a_sku(database, 2001, stock=60, hot=True)
    deadlocks = Deadlocks(monkeypatch)
    baskets = ({1001: 1}, {2001: 1}, {1001: 1, 2001: 1})

    def buy(member: int) -> object:
        outcome = place(place_command(baskets[member % 3], member_id=member))
        waits = isinstance(outcome, Placed) and outcome.order.status is OrderStatus.RESERVING
        return turn(outcome.order) if waits and isinstance(outcome, Placed) else outcome

    crowd(12, range(1, 241), buy)
    assert deadlocks.seen == 0
    assert database.stock(1001) == (60, 60)
    assert database.stock(2001) == (60, 60)
    assert database.count("oms_order", status="RESERVING") == 0
    assert_at_rest(database)


@pytest.mark.parametrize("times", [1, 2])
def test_a_turn_that_meets_a_deadlock_is_taken_again_as_a_whole(database, monkeypatch, times):
    [order] = some_orders(database, 1, hot=True)
    hold_stock, left = inventory.hold_stock, iter([True] * times)

    def deadlock_first(*arguments):
        if next(left, False):
            raise Contended("(1213, 'Deadlock found')")
        return hold_stock(*arguments)

    monkeypatch.setattr(inventory, "hold_stock", deadlock_first)
    assert turn(order) == Held()
    assert database.count("ims_reservation") == 1
    assert database.count("oms_order_event", to_status="PENDING_PAYMENT") == 1
    assert database.stock(1001) == (1, 1)
    assert_at_rest(database)


def test_a_paid_order_meets_every_sweep_and_keeps_its_stock(database):
    """A payment, an expiry and two sweeps, when everything is overdue."""
    orders = some_orders(database, 100)
    database.execute(OVERDUE)
    database.execute(HOLDS_OVERDUE)
    tens = [orders[first : first + 10] for first in range(0, 100, 10)]
    results = in_rounds(
        tens,
        lambda ten: [pay(order) for order in ten].count(Result.APPLIED),
        lambda _: len(sweep_all().failed),
        lambda _: len(sweep_all().failed),
    )
    applied = sum(paid for paid, _, _ in results)
    assert [failed for _, *failed in results] == [[0, 0]] * 10
    assert database.count("oms_order", status="PAID") == applied
    assert (
        database.count("oms_order", status="PAID") + database.count("oms_order", status="CLOSED")
        == 100
    )
    assert_at_rest(database)
    assert database.stock(1001) == (100 - applied, 0)
