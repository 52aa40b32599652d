"""Goal: one idempotency key is one order, however many requests carry it and however they meet.

Method: requests with one key start at a barrier on connections of their own. Where the order of
steps matters, one request is stopped in the middle while another runs, until that one is done or
the engine says that it waits.
"""

from collections import Counter
from typing import Final

from lockstep.db import connection
from lockstep.inventory.model import ShortLine
from lockstep.orders import place as place_module
from lockstep.orders import request_store, store
from lockstep.orders.model import (
    InFlight,
    KeyReused,
    OutOfStock,
    Placed,
    PlaceOrder,
    PlaceOutcome,
    Replayed,
    RequestState,
)
from lockstep.orders.place import place
from lockstep.orders.query import probe
from tests.support.builders import a_sku, assert_at_rest, place_command
from tests.support.database import forget_settings
from tests.support.packets import take_apart
from tests.support.threads import Deadlocks, Meanwhile, at_once, in_rounds

AT_ONCE: Final = 20
ORDER_TABLES: Final = (
    "oms_order",
    "oms_order_item",
    "oms_order_request",
    "oms_order_event",
    "ims_reservation",
    "ims_reservation_item",
    "outbox",
)


def place_until_decided(command: PlaceOrder) -> PlaceOutcome:
    """Send it again with its key, as a client does after a 202."""
    while isinstance(outcome := place(command), InFlight):
        pass
    return outcome


def kinds(outcomes: list[PlaceOutcome]) -> Counter[type]:
    return Counter(type(outcome) for outcome in outcomes)


def test_20_requests_with_one_key_at_once_are_one_order(database):
    a_sku(database, stock=AT_ONCE)
    command = place_command({1001: 1}, key="k")
    outcomes = at_once(*[lambda: place_until_decided(command)] * AT_ONCE)
    assert kinds(outcomes) == {Placed: 1, Replayed: AT_ONCE - 1}
    order_ids = {outcome.order.id for outcome in outcomes if isinstance(outcome, Placed | Replayed)}
    assert len(order_ids) == 1
    assert database.count("oms_order") == 1
    assert database.stock(1001) == (AT_ONCE, 1)
    assert_at_rest(database)


def test_20_requests_with_one_key_for_nothing_left_leave_no_row(database):
    a_sku(database, stock=0)
    command = place_command({1001: 1}, key="k")
    outcomes = at_once(*[lambda: place(command)] * AT_ONCE)
    none_left = OutOfStock((ShortLine(1001, wanted=1, available=0),))
    assert all(outcome in (none_left, InFlight()) for outcome in outcomes), outcomes
    assert none_left in outcomes
    assert probe(command.member_id, "k") == (RequestState.UNKNOWN, None)
    assert [table for table in ORDER_TABLES if database.count(table)] == []
    assert place(command) == none_left
    assert_at_rest(database)


def test_other_content_with_the_same_key_at_once_never_makes_a_second_order(database):
    a_sku(database, stock=100)
    commands = [place_command({1001: 1 + number % 4}, key="k") for number in range(AT_ONCE)]
    outcomes = at_once(*[lambda c=command: place(c) for command in commands])
    winner = database.one("SELECT order_id, quantity FROM oms_order_item")
    for command, outcome in zip(commands, outcomes, strict=True):
        if command.lines[1001] == winner["quantity"]:
            assert isinstance(outcome, Placed | Replayed)
            assert outcome.order.id == winner["order_id"]
        else:
            assert isinstance(outcome, KeyReused | InFlight)
    assert kinds(outcomes)[Placed] == 1
    assert database.count("oms_order") == 1
    assert database.stock(1001) == (100, winner["quantity"])
    assert_at_rest(database)


def test_new_keys_next_to_each_other_never_deadlock(database, monkeypatch):
    a_sku(database, stock=1000)
    deadlocks = Deadlocks(monkeypatch)
    rounds = range(25)
    sides = [
        lambda n, side=side: place(place_command(member_id=7, key=f"key-{n:03}-{side}"))
        for side in range(8)
    ]
    for outcomes in in_rounds(rounds, *sides):
        assert kinds(outcomes) == {Placed: len(sides)}
    assert deadlocks.seen == 0
    assert database.count("oms_order", member_id=7) == len(rounds) * len(sides)
    assert_at_rest(database)


def test_two_members_with_one_key_at_once_each_get_their_own_order(database):
    a_sku(database, stock=100)
    sides = [
        lambda n, m=member: place(place_command(member_id=m, key=f"k{n}")) for member in (7, 8)
    ]
    for outcomes in in_rounds(range(20), *sides):
        owners = [outcome.order.member_id for outcome in outcomes if isinstance(outcome, Placed)]
        assert owners == [7, 8]
    assert database.count("oms_order") == 40
    assert_at_rest(database)


def test_while_a_key_is_being_decided_the_probe_says_so_without_waiting(database, monkeypatch):
    a_sku(database)
    command = place_command(key="k")
    other = Meanwhile(database, lambda: probe(command.member_id, "k"))
    take_apart(monkeypatch)
    monkeypatch.setattr(request_store, "claim_request", other.after(request_store.claim_request))
    placed = place(command)
    assert other.outcome() == (RequestState.PROCESSING, None)
    assert not other.had_to_wait
    assert isinstance(placed, Placed)
    assert probe(command.member_id, "k") == (RequestState.SUCCESS, placed.order)


def test_a_request_that_was_cut_off_while_another_took_its_key_over_has_that_ones_order(
    database, monkeypatch
):
    a_sku(database)
    command = place_command(key="k")

    def cut_off_the_first_and_place() -> PlaceOutcome:
        with database.another_session() as operator, operator.cursor() as cursor:
            cursor.execute(f"KILL {first_session}")
        return place_until_decided(command)

    first_session = connection.current().thread_id
    other = Meanwhile(database, cut_off_the_first_and_place)
    take_apart(monkeypatch)
    monkeypatch.setattr(store, "insert_items", other.after(store.insert_items))
    outcome = place(command)
    taken_over = other.outcome()
    assert isinstance(taken_over, Placed)
    assert outcome == Replayed(taken_over.order)
    assert database.count("oms_order") == 1
    assert_at_rest(database)


def test_a_repeat_that_runs_out_of_patience_is_in_flight_and_takes_nothing_over(
    database, monkeypatch
):
    a_sku(database)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    forget_settings()
    command = place_command(key="k")
    in_the_middle = []
    insert_items = store.insert_items

    def insert_items_slowly(*arguments):
        insert_items(*arguments)
        monkeypatch.setattr(store, "insert_items", insert_items)
        monkeypatch.setattr(place_module, "WITHIN_SECONDS", 0.5)
        in_the_middle.extend(at_once(lambda: place(command)))

    take_apart(monkeypatch)
    monkeypatch.setattr(store, "insert_items", insert_items_slowly)
    placed = place(command)
    assert in_the_middle == [InFlight()]
    assert isinstance(placed, Placed)
    assert place(command) == Replayed(placed.order)
    assert_at_rest(database)
