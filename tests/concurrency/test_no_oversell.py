"""Goal: never more orders than stock, however many buyers come at once, on any isolation level.

Method: buyers on connections of their own start at a barrier; a 202 is sent again with its key, as
a client does, until it is decided. A negative control takes the guard of the hold and the table's
CHECK away and must see the oversell, so that the proofs above it can fail.
"""

from collections import Counter
from typing import Final

import pytest

from lockstep.db import connection
from lockstep.errors import InvariantBroken
from lockstep.inventory import store as inventory
from lockstep.inventory.model import ShortLine
from lockstep.orders.model import InFlight, OutOfStock, Placed, PlaceOrder, PlaceOutcome
from lockstep.orders.place import place
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, assert_at_rest, place_command
from tests.support.threads import crowd, in_rounds

NOTHING_LEFT: Final = OutOfStock((ShortLine(1001, wanted=1, available=0),))

HOLD_GUARD: Final = Clause(inventory, "HOLD_STOCK", "AND stock - lock_stock >= %(quantity)s")
STOCK_CHECK: Final = constraint("ims_sku_stock", "CHECK ck_sku_stock")


@pytest.fixture(params=["READ-COMMITTED", "REPEATABLE-READ"])
def isolation(request, database, monkeypatch):
    """Sessions of the product run on this level."""
    session_variables = connection._session_variables

    def changed(lock_wait_seconds: int | None) -> str:
        return session_variables(lock_wait_seconds).replace("READ-COMMITTED", request.param)

    monkeypatch.setattr(connection, "_session_variables", changed)
    row = connection.current().one("SELECT @@transaction_isolation AS level")
    assert row == {"level": request.param}


def place_until_decided(command: PlaceOrder) -> PlaceOutcome:
    while isinstance(outcome := place(command), InFlight):
        pass
    return outcome


def kinds(outcomes: list[PlaceOutcome]) -> Counter[type]:
    return Counter(type(outcome) for outcome in outcomes)


def one_each(buyers: int) -> list[PlaceOrder]:
    """A request of one piece for each of so many members."""
    return [place_command({1001: 1}, member_id=member) for member in range(1, buyers + 1)]


def test_500_requests_from_64_connections_for_100_pieces_are_100_orders(database, isolation):
    a_sku(database, stock=100)
    outcomes = crowd(64, one_each(500), place_until_decided)
    assert kinds(outcomes) == {Placed: 100, OutOfStock: 400}
    refusals = [outcome for outcome in outcomes if isinstance(outcome, OutOfStock)]
    assert refusals == [NOTHING_LEFT] * 400
    assert database.count("oms_order") == 100
    assert database.count("oms_order_request") == 100
    assert database.stock(1001) == (100, 100)
    assert_at_rest(database)


def test_of_two_buyers_of_the_last_piece_one_has_it(database, isolation):
    sku_ids = range(1001, 1021)
    for sku_id in sku_ids:
        a_sku(database, sku_id, stock=1)
    buyers = [
        lambda sku_id, member=member: place(place_command({sku_id: 1}, member_id=member))
        for member in (7, 8)
    ]
    for outcomes in in_rounds(sku_ids, *buyers):
        assert kinds(outcomes) == {Placed: 1, OutOfStock: 1}
    assert {database.stock(sku_id) for sku_id in sku_ids} == {(1, 1)}
    assert_at_rest(database)


def test_of_50_members_at_once_one_has_the_last_piece_and_49_are_refused(database, isolation):
    a_sku(database, stock=1)
    outcomes = crowd(50, one_each(50), place_until_decided)
    assert kinds(outcomes) == {Placed: 1, OutOfStock: 49}
    assert outcomes.count(NOTHING_LEFT) == 49
    assert_at_rest(database)


def test_30_requests_of_one_member_with_keys_of_their_own_share_the_last_piece(database):
    a_sku(database, stock=1)
    commands = [place_command({1001: 1}, member_id=7) for _ in range(30)]
    outcomes = crowd(30, commands, place_until_decided)
    assert kinds(outcomes) == {Placed: 1, OutOfStock: 29}
    [order] = [outcome.order for outcome in outcomes if isinstance(outcome, Placed)]
    told = {outcome.own_orders for outcome in outcomes if isinstance(outcome, OutOfStock)}
    assert told == {(order.order_no,)}
    assert_at_rest(database)


def test_orders_of_several_pieces_never_split_what_is_left(database):
    a_sku(database, stock=10)
    commands = [place_command({1001: 3}, member_id=member) for member in range(1, 21)]
    outcomes = crowd(20, commands, place_until_decided)
    assert kinds(outcomes) == {Placed: 3, OutOfStock: 17}
    assert outcomes.count(OutOfStock((ShortLine(1001, wanted=3, available=1),))) == 17
    assert database.stock(1001) == (10, 9)
    assert_at_rest(database)


def test_without_guard_and_check_the_last_piece_is_sold_50_times(scratch):
    with HOLD_GUARD(scratch), STOCK_CHECK(scratch):
        a_sku(scratch, stock=1)
        outcomes = crowd(50, one_each(50), place_until_decided)
        assert kinds(outcomes) == {Placed: 50}
        assert scratch.stock(1001) == (1, 50)


def test_without_the_guard_the_check_still_sells_the_last_piece_once(scratch):
    a_sku(scratch, stock=1)

    def place_or_alarm(command: PlaceOrder) -> type:
        try:
            return type(place_until_decided(command))
        except InvariantBroken as alarm:
            assert "ck_sku_stock" in str(alarm)  # noqa: PT017
            return InvariantBroken

    with HOLD_GUARD(scratch):
        outcomes = crowd(50, one_each(50), place_or_alarm)
    assert Counter(outcomes) == {Placed: 1, InvariantBroken: 49}
    assert scratch.stock(1001) == (1, 1)
    assert_at_rest(scratch)
