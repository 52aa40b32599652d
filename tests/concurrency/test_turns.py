"""Goal: however many decide for a hot SKU at once, and whatever is done to its orders meanwhile,
one transaction at a time decides, in order of arrival, and nobody who places an order waits for it.

Method: real connections. Somebody else's whole work is let in after a named step; who waits is the
engine's word. The crowds at the end meet as chance has it; only what must hold is asked of them.
"""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import pytest

from lockstep.inventory import batch_store
from lockstep.inventory import store as stock
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Refusal, Refused, Released
from lockstep.inventory.release import release
from lockstep.orders import decide as decide_module
from lockstep.orders import hold as hold_module
from lockstep.orders import turn, turn_store
from lockstep.orders.close import expire
from lockstep.orders.hold import hold, hold_all
from lockstep.orders.model import Closed, Held, NotWaiting, Order, OutOfStock, Placed, SoldOut
from lockstep.orders.place import place
from lockstep.orders.turn import TurnTaken
from lockstep.payments import doorbell
from lockstep.payments.accept import accept
from lockstep.payments.reinstate import reinstate
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, place_command
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.engine import held
from tests.support.threads import (
    Deadlocks,
    Meanwhile,
    Meeting,
    at_once,
    in_rounds,
    sessions_that_wait,
)
from tests.support.turns import HOT, a_while, paid_late, ring, statuses
from tests.support.waiting import wait_until

ORDINARY = 1001
PENDING, SOLD_OUT, WAITS = "PENDING_PAYMENT", "CLOSED/OUT_OF_STOCK", "RESERVING"
TAKE_TURN = "SELECT sku_id FROM ims_hot_turn WHERE sku_id = %s FOR UPDATE"


@pytest.fixture
def skus(database):
    a_sku(database, HOT, hot=True)
    a_sku(database, ORDINARY)


@pytest.fixture
def a_turn(database, skus) -> None:
    """The turn's row is there."""
    database.execute("INSERT INTO ims_hot_turn (sku_id) VALUES (%s)", (HOT,))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(turn, "PATIENCE_SECONDS", 0)


# --- one decider at a time -----------------------------------------------------------------------


def test_who_cannot_have_the_turn_within_a_second_says_so(database, a_turn):
    order = an_order({HOT: 1})
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute(TAKE_TURN, (HOT,))
        began = time.monotonic()
        with pytest.raises(TurnTaken):
            hold(order.id)
        assert 1.0 <= time.monotonic() - began < 2.0
        assert hold_all(HOT, a_while()) == {}
    assert hold(order.id) == Held()


def test_while_one_decides_another_does_not(database, skus, impatient, monkeypatch):
    orders = [an_order({HOT: 1}) for _ in range(3)]
    other = Meanwhile(database, lambda: ring(*orders))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert ring(orders[0]) == []
    assert other.outcome() == ["m1", "m2", "m3"]
    assert not other.had_to_wait
    assert statuses(database) == [PENDING] * 3
    assert ring(*orders) == []
    assert database.count("oms_order_event", to_status=PENDING) == 3


def test_who_had_to_let_another_decide_looks_again_at_his_own_orders(
    database, a_turn, impatient, monkeypatch
):
    first, second = an_order({HOT: 1}), an_order({HOT: 1})
    real = hold_all

    def while_another_decides(sku_id: int, has_time: Callable[[], bool]) -> Any:
        with database.another_session() as session, session.cursor() as cursor:
            cursor.execute(TAKE_TURN, (HOT,))
            left = real(sku_id, has_time)
        assert hold(first.id) == Held()
        return left

    monkeypatch.setattr(doorbell, "hold_all", while_another_decides)
    assert ring(first, second) == ["m2"]
    assert statuses(database) == [PENDING, WAITS]


def test_what_was_refused_before_another_took_the_turn_is_not_forgotten(
    database, a_turn, impatient, monkeypatch
):
    monkeypatch.setattr(hold_module, "BATCH_MAX", 1)
    dead, behind = an_order({HOT: 1}), an_order({HOT: 1})
    release(str(dead.reservation_id), dead.id)
    with database.another_session() as session, session.cursor() as cursor:
        real = decide_module.decide

        def decide(tx: Any, order_ids: Any) -> Any:
            tx.after_commit(lambda: cursor.execute(TAKE_TURN, (HOT,)))
            return real(tx, order_ids)

        monkeypatch.setattr(hold_module, "decide", decide)
        assert ring(dead, behind) == ["m2"]
    assert database.count("message_refusal", code="RESERVATION_ALREADY_RELEASED") == 1


def test_one_by_one_stops_where_another_has_the_turn(database, a_turn, impatient):
    orders = [an_order({HOT: 1}) for _ in range(2)]
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute(TAKE_TURN, (HOT,))
        assert hold_module.hold_each([order.id for order in orders], a_while()) == {}
    assert statuses(database) == [WAITS, WAITS]


def test_late_money_waits_where_another_has_the_turn_and_other_turns_do_not(
    database, skus, impatient, monkeypatch
):
    late = paid_late(database, monkeypatch, {HOT: 1})
    other = an_order({a_sku(database, HOT + 1, hot=True): 1})
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute(TAKE_TURN, (HOT,))
        assert ring(late, other) == ["m1"]
    assert statuses(database) == ["CLOSED/EXPIRED", PENDING]
    assert ring(late) == []
    assert statuses(database) == ["PAID", PENDING]


def test_between_two_batches_nothing_is_locked_and_another_may_have_the_turn(
    database, skus, impatient, monkeypatch
):
    monkeypatch.setattr(hold_module, "BATCH_MAX", 1)
    orders = [an_order({HOT: 1}) for _ in range(3)]
    seen: list[object] = []
    is_on_time = a_while()

    def has_time() -> bool:
        if statuses(database) == [PENDING, WAITS, WAITS]:
            seen.append(held(database))
            seen.extend(at_once(lambda: hold(orders[2].id)))
        return is_on_time()

    assert hold_all(HOT, has_time) == {}
    assert seen == [(0, 0), Held()]
    assert statuses(database) == [PENDING] * 3


def test_those_who_come_together_for_the_first_turn_of_a_sku_all_have_it(database, skus):
    """Each tries to make its row while a third has done so and not committed."""
    orders = [an_order({HOT: 1}) for _ in range(2)]
    all_looked, is_made = Meeting(3), threading.Event()
    insert_turn = turn_store.insert_turn

    def insert_too_late(*arguments: Any) -> None:
        assert is_made.wait(10)
        insert_turn(*arguments)

    with database.another_session() as session, session.cursor() as cursor:

        def make_it() -> None:
            cursor.execute("INSERT INTO ims_hot_turn (sku_id) VALUES (%s)", (HOT,))
            is_made.set()
            wait_until(lambda: len(sessions_that_wait(database)) == 2)
            session.commit()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turn_store, "lock_turn", all_looked.after(turn_store.lock_turn))
            patch.setattr(turn_store, "insert_turn", insert_too_late)
            [_, *outcomes] = at_once(
                all_looked.before(make_it), *[partial(hold, order.id) for order in orders]
            )
    assert outcomes == [Held(), Held()]


# --- what happens in the middle of a decision -----------------------------------------------------


STEPS = [
    (turn_store, "lock_turn"),
    (turn_store, "lock_waiting"),
    (stock, "read_skus"),
    (turn_store, "mark_sold_out"),
    (turn_store, "append_sold_out"),
    (turn_store, "mark_held"),
    (turn_store, "append_events"),
    (batch_store, "insert_holds"),
    (stock, "hold_stock"),
]


@pytest.mark.parametrize(("store", "step"), STEPS, ids=[name for _, name in STEPS])
def test_who_places_an_order_for_a_hot_sku_never_waits_for_a_decider(
    database, a_turn, monkeypatch, store, step
):
    waiting = [an_order({HOT: 2, ORDINARY: 1}), an_order({HOT: 99})]
    command = place_command({HOT: 1, ORDINARY: 1}, member_id=43)
    other = Meanwhile(database, lambda: place(command))
    monkeypatch.setattr(store, step, other.after(getattr(store, step)))
    assert ring(*waiting) == []
    placed = other.outcome()
    assert isinstance(placed, Placed)
    assert not other.had_to_wait
    assert placed.order.status == WAITS
    assert ring(placed.order) == []
    assert statuses(database) == [PENDING, SOLD_OUT, PENDING]
    assert_at_rest(database)


def test_who_came_in_the_middle_of_a_decision_is_decided_in_the_next(database, a_turn, monkeypatch):
    first = an_order({HOT: 1})
    other = Meanwhile(database, lambda: an_order({HOT: 1}, member_id=43))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert ring(first) == []
    other.outcome()
    assert statuses(database) == [PENDING, PENDING]


def test_stock_that_goes_after_it_was_seen_is_allotted_again(database, skus, monkeypatch):
    order, behind = an_order({HOT: 1, ORDINARY: 8}), an_order({HOT: 1, ORDINARY: 2})
    command = place_command({ORDINARY: 3}, member_id=43)
    other = Meanwhile(database, lambda: type(place(command)))
    monkeypatch.setattr(stock, "read_skus", other.after(stock.read_skus))
    assert ring(order, behind) == []
    assert other.outcome() is Placed
    assert statuses(database)[:2] == [SOLD_OUT, PENDING]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE to_status = 'CLOSED'")
    assert json.loads(evidence) == {"lines": [{"sku_id": ORDINARY, "wanted": 8, "available": 7}]}
    assert database.stock(ORDINARY) == (10, 5)
    assert_at_rest(database)


def test_a_tombstone_that_comes_after_the_look_refuses_its_own_order(database, skus, monkeypatch):
    dead, good = an_order({HOT: 1}), an_order({HOT: 1})
    other = Meanwhile(database, lambda: release(str(dead.reservation_id), dead.id))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert ring(dead, good) == []
    assert other.outcome() == Released(repeated=False)
    assert statuses(database) == [WAITS, PENDING]
    assert database.value("SELECT code FROM message_refusal") == "RESERVATION_ALREADY_RELEASED"
    assert database.stock(HOT) == (10, 1)


def test_alone_too_a_tombstone_after_the_look_is_a_refusal_and_no_fault(
    database, skus, monkeypatch
):
    order = an_order({HOT: 1})
    other = Meanwhile(database, lambda: release(str(order.reservation_id), order.id))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert hold(order.id) == Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    assert other.outcome() == Released(repeated=False)


def test_who_cancels_in_the_middle_waits_and_then_gives_the_hold_back(database, skus, monkeypatch):
    order, good = an_order({HOT: 1}), an_order({HOT: 1})
    other = Meanwhile(database, lambda: cancel(42, order.order_no))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert ring(order, good) == []
    assert isinstance(other.outcome(), Closed)
    assert other.had_to_wait
    assert statuses(database) == ["CLOSED/CANCELLED", PENDING]
    assert_at_rest(database)
    assert database.stock(HOT) == (10, 1)


def test_who_gives_an_order_up_in_the_middle_waits_and_finds_it_decided(
    database, skus, monkeypatch
):
    order = an_order({HOT: 1})
    database.execute("UPDATE oms_order SET created_at = NOW(3) - INTERVAL 5 MINUTE")
    other = Meanwhile(database, lambda: expire(order.id))
    monkeypatch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
    assert ring(order) == []
    assert other.outcome() is False
    assert other.had_to_wait
    assert statuses(database) == [PENDING]


def test_two_that_ask_for_one_order_alone_hold_it_once(database, skus):
    order = an_order({HOT: 1})

    def turn_of() -> object:
        while True:
            with suppress(TurnTaken):
                return hold(order.id)

    assert sorted(map(str, at_once(turn_of, turn_of))) == sorted(map(str, (Held(), NotWaiting())))
    assert database.stock(HOT) == (10, 1)


def test_a_refusal_alone_is_told_by_its_name(database, skus):
    order, short = an_order({HOT: 1}), an_order({HOT: 11})
    release(str(order.reservation_id), order.id)
    assert hold(order.id) == Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    assert hold(short.id) == SoldOut()


# --- crowds ---------------------------------------------------------------------------------------


def decided(database: Database) -> list[tuple[int, str]]:
    """(order, what it came to) of every decision, in the order in which they were written."""
    rows = database.rows(
        "SELECT order_id, to_status FROM oms_order_event WHERE from_status = 'RESERVING' "
        "AND actor = 'system:reserve_stock' ORDER BY id"
    )
    return [(row["order_id"], row["to_status"]) for row in rows]


@pytest.mark.parametrize("batch_max", [1, 7, 1000])
def test_two_deciders_and_a_crowd_that_places_oversell_nothing_and_keep_the_order(
    database, monkeypatch, batch_max
):
    """Sixty ask for forty pieces, one after the other, while two workers decide. Who comes when
    nothing is left is refused at the gate."""
    monkeypatch.setattr(hold_module, "BATCH_MAX", batch_max)
    a_sku(database, HOT, stock=40, hot=True)
    deadlocks = Deadlocks(monkeypatch)
    orders: list[Order] = []
    too_late: list[OutOfStock] = []
    all_came = threading.Event()

    def place_all() -> None:
        for member in range(1, 61):
            outcome = place(place_command({HOT: 1}, member_id=member))
            if isinstance(outcome, Placed):
                orders.append(outcome.order)
            else:
                assert isinstance(outcome, OutOfStock)
                too_late.append(outcome)
        all_came.set()

    def decide_all() -> None:
        while not all_came.wait(0) or ring(*orders[-10:]):
            if orders:
                ring(*orders[-10:])

    at_once(place_all, decide_all, decide_all)
    assert deadlocks.seen == 0
    assert statuses(database) == [PENDING] * 40 + [SOLD_OUT] * (20 - len(too_late))
    assert len(decided(database)) == len({order_id for order_id, _ in decided(database)})
    assert len(decided(database)) == len(orders) == 60 - len(too_late)
    holds = [
        row["it"] for row in database.rows("SELECT order_id AS it FROM ims_reservation ORDER BY id")
    ]
    assert holds == [order.id for order in orders[:40]]
    assert database.stock(HOT) == (40, 40)
    assert_at_rest(database)


class Round(NamedTuple):
    """Four orders in line, and two that were decided: one of them is paid."""

    waiting: list[Order]
    paid: Order
    unpaid: Order


LINES = {HOT: 1, ORDINARY: 1, 1002: 1}


def some_rounds(how_many: int) -> list[Round]:
    older = [an_order(LINES, member_id=n) for n in range(1, 2 * how_many + 1)]
    ring(older[0])
    for order in older[:how_many]:
        accept(a_trade_notice(order))
    pairs = zip(older[:how_many], older[how_many:], strict=True)
    return [Round([an_order(LINES) for _ in range(4)], *pair) for pair in pairs]


def decide(round_: Round) -> object:
    return ring(*round_.waiting)


def end(round_: Round) -> object:
    _, cancelled, given_up, dead = round_.waiting
    cancel(cancelled.member_id, cancelled.order_no)
    expire(given_up.id)
    cancel(dead.member_id, dead.order_no)
    return release(str(dead.reservation_id), dead.id)


def settle(round_: Round) -> object:
    cancel(round_.unpaid.member_id, round_.unpaid.order_no)
    release(str(round_.unpaid.reservation_id), round_.unpaid.id)
    return confirm(str(round_.paid.reservation_id), round_.paid.id)


def buy(_: Round) -> object:
    return place(place_command({ORDINARY: 2, 1002: 1}, member_id=7))


def revive(order_id: int) -> object:
    try:
        return reinstate(order_id)
    except TurnTaken:
        return None


def test_deciders_and_all_others_that_touch_their_rows_never_deadlock(database, monkeypatch):
    """Two decide the same orders of a hot and two ordinary SKUs, while some are cancelled, some
    given up, their SKUs bought inline, older holds sold and given back, late money taken up."""
    for sku_id in LINES:
        a_sku(database, sku_id, stock=60, hot=sku_id == HOT)
    late = paid_late(database, monkeypatch, LINES)
    rounds = some_rounds(8)
    database.execute(
        "UPDATE oms_order SET created_at = NOW(3) - INTERVAL 5 MINUTE WHERE status = 'RESERVING'"
    )
    deadlocks = Deadlocks(monkeypatch)
    in_rounds(rounds, decide, decide, end, settle, buy, lambda _: revive(late.id))
    assert deadlocks.seen == 0
    assert hold_all(HOT, a_while()) == {}
    assert database.count("oms_order", status=WAITS) == 0
    assert_at_rest(database)
