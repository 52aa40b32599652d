"""A turn decides all orders that wait for a hot SKU, each as if it had come alone.

What two deciders, or a decider and somebody else, come to is in tests/concurrency/test_turns.py.
"""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep import fingerprint
from lockstep.db import transaction
from lockstep.db.connection import Connection
from lockstep.db.errors import ConnectionLost
from lockstep.db.packet import BYTES_MAX
from lockstep.errors import InvariantBroken
from lockstep.inventory import store
from lockstep.inventory.release import release
from lockstep.orders import decide as decide_module
from lockstep.orders import hold as hold_module
from lockstep.orders import turn_store
from lockstep.orders.hold import BATCH_MAX, hold, hold_all
from lockstep.orders.model import Held, NotWaiting, Order
from lockstep.payments import doorbell
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database, forget_settings
from tests.support.dying import count_round_trips
from tests.support.lambda_context import Context
from tests.support.turns import (
    HOT,
    a_long_line,
    a_while,
    paid_late,
    ring,
    ring_for,
    statements_of,
    statuses,
)

HOTTER, ORDINARY = 2000, 1001
PENDING, SOLD_OUT, WAITS = "PENDING_PAYMENT", "CLOSED/OUT_OF_STOCK", "RESERVING"


@pytest.fixture
def skus(database):
    for sku_id in (HOT, HOTTER):
        a_sku(database, sku_id, hot=True)
    a_sku(database, ORDINARY)


@pytest.fixture
def batches(monkeypatch) -> list[list[int]]:
    """The orders that each transaction looked at, two at most."""
    monkeypatch.setattr(hold_module, "BATCH_MAX", 2)
    return spied_on(monkeypatch)


def spied_on(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    looked_at: list[list[int]] = []
    real = decide_module.decide

    def decide(tx: Any, order_ids: Any) -> Any:
        looked_at.append(list(order_ids))
        return real(tx, order_ids)

    monkeypatch.setattr(hold_module, "decide", decide)
    return looked_at


def ids(*orders: Order) -> list[int]:
    return [order.id for order in orders]


def evidence(database: Database, order: Order) -> Any:
    text = database.value(
        "SELECT evidence FROM oms_order_event WHERE order_id = %s AND to_status = 'CLOSED'",
        (order.id,),
    )
    return json.loads(text)


def refusals(database: Database) -> list[tuple[str, str]]:
    rows = database.rows("SELECT message_id, code FROM message_refusal ORDER BY message_id")
    return [(row["message_id"], row["code"]) for row in rows]


def a_hold_there(database: Database, order: Order, request_hash: str) -> None:
    """Of one piece of HOT, in the place of the order's own."""
    database.execute(
        "INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)"
        " VALUES (%s, %s, 1, %s, 'RESERVED', '2030-01-01')",
        (order.reservation_id, order.id, request_hash),
    )
    database.execute(
        "INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity) VALUES (%s, %s, 1)",
        (order.reservation_id, HOT),
    )
    database.execute(
        "UPDATE ims_sku_stock SET lock_stock = lock_stock + 1 WHERE sku_id = %s", (HOT,)
    )


# --- all of them, in order of arrival -------------------------------------------------------------


def test_one_message_decides_all_that_wait_in_the_order_of_their_arrival(database, skus):
    """Ten pieces: what a large order does not get is there for the smaller ones behind it."""
    quantities = [4, 5, 2, 1, 1]
    orders = [an_order({HOT: quantity}) for quantity in quantities]
    assert ring(orders[-1]) == []
    assert statuses(database) == [PENDING, PENDING, SOLD_OUT, PENDING, SOLD_OUT]
    assert database.stock(HOT) == (10, 10)
    assert evidence(database, orders[2]) == {
        "lines": [{"sku_id": HOT, "wanted": 2, "available": 1}]
    }
    assert evidence(database, orders[4]) == {
        "lines": [{"sku_id": HOT, "wanted": 1, "available": 0}]
    }
    holds = database.rows("SELECT order_id FROM ims_reservation ORDER BY id")
    assert [row["order_id"] for row in holds] == ids(*orders[:2], orders[3])
    assert_at_rest(database)


def test_all_that_are_held_together_have_the_same_time_to_pay(database, skus, monkeypatch):
    monkeypatch.setenv("ORDER_TTL_SECONDS", "600")
    forget_settings()
    orders = [an_order({HOT: 1}) for _ in range(3)]
    assert ring(orders[0]) == []
    rows = database.rows(
        "SELECT DISTINCT TIMESTAMPDIFF(SECOND, NOW(3), o.expires_at) > 590 AS fresh, "
        "TIMESTAMPDIFF(SECOND, o.expires_at, r.expires_at) AS grace "
        "FROM oms_order AS o JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id"
    )
    assert rows == [{"fresh": 1, "grace": 600}]


def test_each_order_has_its_own_line_of_the_trail_and_its_own_request_hash(database, skus):
    first, second, short = (an_order({HOT: quantity}) for quantity in (1, 2, 11))
    ring(first)
    trail = database.rows(
        "SELECT order_id, from_status, to_status, actor, reason FROM oms_order_event "
        "WHERE from_status = 'RESERVING' ORDER BY order_id"
    )
    assert [tuple(row.values()) for row in trail] == [
        (first.id, "RESERVING", "PENDING_PAYMENT", "system:reserve_stock", "HELD"),
        (second.id, "RESERVING", "PENDING_PAYMENT", "system:reserve_stock", "HELD"),
        (short.id, "RESERVING", "CLOSED", "system:reserve_stock", "OUT_OF_STOCK"),
    ]
    holds = database.rows("SELECT order_id, n, request_hash FROM ims_reservation ORDER BY order_id")
    assert [tuple(row.values()) for row in holds] == [
        (order.id, 1, fingerprint.of_reservation(order.id, {HOT: quantity}))
        for order, quantity in ((first, 1), (second, 2))
    ]


def test_a_short_order_names_every_line_that_was_short(database, skus):
    order = an_order({HOT: 11, HOTTER: 1, ORDINARY: 12})
    assert ring(order) == []
    assert evidence(database, order) == {
        "lines": [
            {"sku_id": ORDINARY, "wanted": 12, "available": 10},
            {"sku_id": HOT, "wanted": 11, "available": 10},
        ]
    }
    assert database.stock(HOTTER) == (10, 0)
    assert_at_rest(database)


def test_more_than_a_batch_takes_are_decided_in_several_until_none_waits(database, skus, batches):
    orders = [an_order({HOT: 2}) for _ in range(7)]
    assert ring(orders[3]) == []
    assert statuses(database) == [PENDING] * 5 + [SOLD_OUT] * 2
    assert batches == [ids(*orders[n : n + 2]) for n in (0, 2, 4, 6)]
    assert_at_rest(database)


def test_the_turns_of_several_skus_are_served_in_one_event(database, skus):
    one, other, behind = an_order({HOT: 1}), an_order({HOTTER: 1}), an_order({HOTTER: 10})
    assert ring(one, other) == []
    assert statuses(database) == [PENDING, PENDING, SOLD_OUT]
    assert database.count("ims_hot_turn") == 2
    assert evidence(database, behind)["lines"][0]["available"] == 9
    assert_at_rest(database)


def test_an_order_of_two_hot_skus_stands_at_the_turn_of_the_lower_and_nowhere_else(database, skus):
    both, one = an_order({HOT: 3, HOTTER: 1, ORDINARY: 2}), an_order({HOT: 1})
    turns = database.rows("SELECT turn_sku_id FROM oms_order ORDER BY id")
    assert [row["turn_sku_id"] for row in turns] == [HOTTER, HOT]
    assert ring(one) == []
    assert statuses(database) == [WAITS, PENDING]
    assert ring(both) == []
    assert statuses(database) == [PENDING, PENDING]
    assert database.stock(HOT) == (10, 4)
    assert (database.stock(HOTTER), database.stock(ORDINARY)) == ((10, 1), (10, 2))
    assert_at_rest(database)


def test_an_order_that_stands_at_no_turn_is_decided_too(database, skus):
    """As code that is older than turns placed it."""
    order, other = an_order({HOT: 1}), an_order({HOT: 1})
    database.execute("UPDATE oms_order SET turn_sku_id = NULL WHERE id = %s", (order.id,))
    assert ring(other) == []
    assert statuses(database) == [WAITS, PENDING]
    assert ring(order) == []
    assert statuses(database) == [PENDING, PENDING]
    assert_at_rest(database)


def test_what_closed_after_it_was_read_is_passed_over(database, skus, monkeypatch):
    gone, stays = an_order({HOT: 10}), an_order({HOT: 10})
    real = decide_module.decide

    def decide(tx: Any, order_ids: Any) -> Any:
        if len(order_ids) == 2:
            database.execute(
                "UPDATE oms_order SET prev_status = status, status = 'CLOSED', "
                "close_reason = 'CANCELLED' WHERE id = %s",
                (gone.id,),
            )
        return real(tx, order_ids)

    monkeypatch.setattr(hold_module, "decide", decide)
    assert ring(gone, stays) == []
    assert statuses(database) == ["CLOSED/CANCELLED", PENDING]


def test_an_order_without_lines_keeps_nobody_waiting_and_the_worker_not_busy(
    database, skus, monkeypatch
):
    """As after a restore of some tables: there is nothing that could be held of it."""
    looked_at = spied_on(monkeypatch)
    empty, other = an_order({HOT: 1}), an_order({HOT: 1})
    database.execute("DELETE FROM oms_order_item WHERE order_id = %s", (empty.id,))
    assert ring(empty, other) == ["m1"]
    assert statuses(database) == [WAITS, PENDING]
    assert len(looked_at) == 2


# --- how much at once -----------------------------------------------------------------------------


def test_a_transaction_takes_no_more_orders_than_fit_its_skus(database, monkeypatch):
    monkeypatch.setattr(decide_module, "SKUS_MAX", 3)
    a_sku(database, HOT, hot=True)
    for sku_id in range(3001, 3008):
        a_sku(database, sku_id)
    looked_at = spied_on(monkeypatch)
    orders = [an_order({HOT: 1, 3001 + n: 1}) for n in range(7)]
    refused = orders[1]
    release(str(refused.reservation_id), refused.id)
    assert ring(refused) == []
    assert statuses(database) == [PENDING, WAITS] + [PENDING] * 5
    # Two orders of three SKUs each time; the one that is refused is looked at once.
    assert [len(some) for some in looked_at] == [7, 5, 3, 1]
    database.execute("DELETE FROM oms_order WHERE id = %s", (refused.id,))
    assert database.stock(HOT) == (10, 6)


@pytest.mark.parametrize("skus_each", [1, 2])
def test_no_statement_is_longer_than_a_proxy_bears(database, skus_each):
    """With as many orders as a transaction takes, of ids as long as they get in years."""
    skus = [HOT, ORDINARY][:skus_each]
    for sku_id in skus:
        a_sku(database, sku_id, stock=BATCH_MAX // 2, hot=sku_id == HOT)
    with a_long_line(database, BATCH_MAX, skus) as order_ids:
        sent = statements_of(lambda: ring_for(order_ids[0]))
        assert statuses(database) == [PENDING] * (BATCH_MAX // 2) + [SOLD_OUT] * (BATCH_MAX // 2)
        assert_at_rest(database)
    assert max(len(statement.encode()) for statement in sent) <= BYTES_MAX + len("BEGIN;")
    assert max(len(statement.encode()) for statement in sent) > BYTES_MAX // 2


def test_as_many_skus_as_a_transaction_takes_fit_a_statement(database):
    skus = range(2**53 - 1 - decide_module.SKUS_MAX, 2**53 - 1)
    sent = statements_of(lambda: transaction.read(lambda reader: store.read_skus(reader, skus)))
    assert max(len(statement.encode()) for statement in sent) <= BYTES_MAX + len("BEGIN;")


@pytest.mark.parametrize(("how_many", "trips"), [(1, 19), (100, 19), (BATCH_MAX, 30)])
def test_many_orders_cost_few_round_trips(database, how_many, trips):
    """Of one line each, all held: what grows is the lists of rows, by a statement each 16 KB."""
    a_sku(database, HOT, stock=how_many, hot=True)
    with a_long_line(database, how_many) as order_ids:
        assert count_round_trips(lambda: ring_for(order_ids[0])) <= trips
        assert statuses(database) == [PENDING] * how_many
        assert_at_rest(database)


def test_messages_of_orders_that_were_decided_cost_one_read(database, skus):
    orders = [an_order({HOT: 1}) for _ in range(10)]
    ring(orders[0])
    assert count_round_trips(lambda: ring(*orders)) == 1
    assert ring(*orders) == []


# --- refused, each by name ------------------------------------------------------------------------


def test_a_tombstone_refuses_its_own_order_and_no_other(database, skus, batches):
    orders = [an_order({HOT: 1}) for _ in range(5)]
    dead = orders[1]
    release(str(dead.reservation_id), dead.id)
    assert ring(orders[0], dead, orders[4]) == []
    assert statuses(database) == [PENDING, WAITS, PENDING, PENDING, PENDING]
    assert refusals(database) == [("dedup-m2", "RESERVATION_ALREADY_RELEASED")]
    # It is looked at once and then passed: it would be the first for ever.
    assert batches == [ids(*orders[:2]), ids(*orders[2:4]), ids(orders[4])]
    assert database.stock(HOT) == (10, 4)


def test_a_batch_of_nothing_but_refused_orders_is_passed_too(database, skus, batches):
    orders = [an_order({HOT: 1}) for _ in range(3)]
    for dead in orders[:2]:
        release(str(dead.reservation_id), dead.id)
    assert ring(orders[2]) == []
    assert statuses(database) == [WAITS, WAITS, PENDING]
    assert refusals(database) == []
    assert batches == [ids(*orders[:2]), ids(orders[2])]


def test_a_hold_of_other_content_refuses_its_own_order_and_no_other(database, skus):
    wrong, good = an_order({HOT: 1}), an_order({HOT: 1})
    a_hold_there(database, wrong, "0" * 64)
    assert ring(wrong, good) == []
    assert statuses(database) == [WAITS, PENDING]
    assert refusals(database) == [("dedup-m1", "IDEMPOTENCY_PARAMETER_CONFLICT")]
    assert database.stock(HOT) == (10, 2)


def test_a_hold_that_is_there_already_is_kept_and_not_taken_twice(database, skus):
    there, new = an_order({HOT: 1}), an_order({HOT: 9})
    a_hold_there(database, there, fingerprint.of_reservation(there.id, {HOT: 1}))
    assert ring(there, new) == []
    assert statuses(database) == [PENDING, PENDING]
    assert database.stock(HOT) == (10, 10)
    assert_at_rest(database)


# --- an unexpected fault --------------------------------------------------------------------------


def a_number_under_another_id(database: Database, order: Order) -> None:
    """As after a restore of one table: the order's first hold has another order's id."""
    database.execute(
        "INSERT INTO ims_reservation (reservation_id, order_id, n, state) "
        "VALUES ('another-1', %s, 1, 'RELEASED')",
        (order.id,),
    )


def test_an_order_that_cannot_be_decided_spoils_no_other(database, skus, batches):
    orders = [an_order({HOT: 1}) for _ in range(5)]
    broken = orders[1]
    a_number_under_another_id(database, broken)
    assert ring(orders[0], broken, orders[4]) == ["m2"]
    assert statuses(database) == [PENDING, WAITS, PENDING, PENDING, PENDING]
    assert batches == [
        ids(*orders[:2]),
        ids(orders[0]),
        ids(broken),
        ids(*orders[2:4]),
        ids(orders[4]),
    ]
    assert database.stock(HOT) == (10, 4)
    assert refusals(database) == []


def test_a_number_under_another_id_is_a_broken_invariant_and_nothing_to_wait_for(database, skus):
    order = an_order({HOT: 1})
    a_number_under_another_id(database, order)
    with pytest.raises(InvariantBroken, match="uk_reservation_order"):
        hold(order.id)


@pytest.mark.parametrize(("mark", "quantity"), [("mark_held", 1), ("mark_sold_out", 11)])
def test_an_order_that_changed_under_its_lock_is_noticed(
    database, skus, monkeypatch, mark, quantity
):
    order = an_order({HOT: quantity})
    monkeypatch.setattr(turn_store, mark, lambda *_: 0)
    with pytest.raises(InvariantBroken, match="changed under its lock"):
        hold(order.id)
    assert statuses(database) == [WAITS]


def test_an_order_at_no_turn_that_cannot_be_decided_spoils_no_other(database, skus):
    broken, alone, good = an_order({HOT: 1}), an_order({HOT: 1}), an_order({HOT: 1})
    database.execute(
        "UPDATE oms_order SET turn_sku_id = NULL WHERE id IN %s", (ids(broken, alone),)
    )
    a_number_under_another_id(database, broken)
    assert ring(broken, alone, good) == ["m1"]
    assert statuses(database) == [WAITS, PENDING, PENDING]


def test_an_order_that_is_redone_and_refused_is_recorded_for_its_message(database, skus):
    broken, dead, good = (an_order({HOT: 1}) for _ in range(3))
    a_number_under_another_id(database, broken)
    release(str(dead.reservation_id), dead.id)
    assert ring(broken, dead, good) == ["m1"]
    assert statuses(database) == [WAITS, WAITS, PENDING]
    assert refusals(database) == [("dedup-m2", "RESERVATION_ALREADY_RELEASED")]


def test_a_fault_that_passes_leaves_no_trace(database, skus, monkeypatch):
    orders = [an_order({HOT: 1}) for _ in range(3)]
    real = decide_module.decide

    def decide(tx: Any, order_ids: Any) -> Any:
        decided = real(tx, order_ids)
        if len(order_ids) == 3:
            raise KeyError("a fault of the code")
        return decided

    monkeypatch.setattr(hold_module, "decide", decide)
    assert ring(*orders) == []
    assert statuses(database) == [PENDING] * 3
    assert_at_rest(database)
    assert database.count("oms_order_event", to_status="PENDING_PAYMENT") == 3


def test_where_there_is_no_database_nobody_is_decided_one_by_one(database, skus, monkeypatch):
    orders = [an_order({HOT: 1}) for _ in range(2)]
    tried: list[int] = []
    monkeypatch.setattr(hold_module, "hold", tried.append)
    real = Connection.send_together

    def away(*_: object) -> Any:
        raise ConnectionLost("2003: it is away")

    monkeypatch.setattr(Connection, "send_together", away)
    monkeypatch.setattr(transaction, "_PAUSE_SECONDS_MIN", transaction.WITHIN_SECONDS)
    monkeypatch.setattr(transaction, "_PAUSE_SECONDS_MAX", transaction.WITHIN_SECONDS)
    monkeypatch.setattr(transaction, "_CHANCE", SimpleNamespace(uniform=lambda _, most: most))
    assert ring(*orders) == ["m1", "m2"]
    assert tried == []
    monkeypatch.setattr(Connection, "send_together", real)
    assert statuses(database) == [WAITS, WAITS]


# --- time -----------------------------------------------------------------------------------------


class Hourglass(Context):
    """Time for ``turns_left`` more looks at it."""

    turns_left: int = 0

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        self.turns_left -= 1
        return 15_000 if self.turns_left >= 0 else 0


def with_time_for(looks: int) -> Hourglass:
    context = Hourglass()
    context.turns_left = looks
    return context


def test_who_is_not_reached_in_time_comes_again_and_the_decided_are_acknowledged(
    database, skus, batches
):
    orders = [an_order({HOT: 1}) for _ in range(5)]
    # One look for each of the three messages, and one for each of two batches.
    failed = ring(orders[0], orders[3], orders[4], context=with_time_for(3 + 2))
    assert failed == ["m3"]
    assert statuses(database) == [PENDING] * 4 + [WAITS]
    assert ring(orders[4]) == []
    assert_at_rest(database)


def test_one_by_one_there_is_no_more_time_either(database, skus):
    orders = [an_order({HOT: 1}) for _ in range(4)]
    a_number_under_another_id(database, orders[0])
    failed = ring(*orders, context=with_time_for(4 + 1 + 2))
    assert failed == ["m1", "m3", "m4"]
    assert statuses(database) == [WAITS, PENDING, WAITS, WAITS]


def test_orders_at_no_turn_are_not_begun_without_time(database, skus):
    orders = [an_order({HOT: 1}) for _ in range(3)]
    database.execute("UPDATE oms_order SET turn_sku_id = NULL")
    # A look for each message, and one for the first order.
    assert ring(*orders, context=with_time_for(3 + 1)) == ["m2", "m3"]
    assert statuses(database) == [PENDING, WAITS, WAITS]


def test_money_is_not_taken_up_without_time(database, skus, monkeypatch):
    first = paid_late(database, monkeypatch, {HOT: 1})
    second = paid_late(database, monkeypatch, {HOT: 1})
    assert ring(first, second, context=with_time_for(2 + 1)) == ["m2"]
    assert statuses(database) == ["PAID", "CLOSED/EXPIRED"]


# --- late money -----------------------------------------------------------------------------------


def test_late_money_at_a_turn_is_served_before_those_that_wait_for_their_first_hold(
    database, skus, monkeypatch
):
    late = paid_late(database, monkeypatch, {HOT: 4})
    first = an_order({HOT: 7})
    assert ring(first) == []  # another's message, and theirs is served all the same
    assert statuses(database) == ["PAID", SOLD_OUT]
    assert ring(late) == []
    assert_at_rest(database)
    assert database.stock(HOT) == (6, 0)


def test_late_money_of_an_order_at_no_turn_revives_it(database, skus, monkeypatch):
    late = paid_late(database, monkeypatch, {HOT: 1})
    database.execute("UPDATE oms_order SET turn_sku_id = NULL")
    assert ring(late) == []
    assert statuses(database) == ["PAID"]
    assert_at_rest(database)


def test_late_money_that_cannot_be_settled_spoils_nobody(database, skus, monkeypatch):
    late = paid_late(database, monkeypatch, {HOT: 1})
    waits = an_order({HOT: 1})

    def fail(order_id: int) -> None:
        raise KeyError(order_id)

    monkeypatch.setattr(doorbell, "reinstate", fail)
    assert ring(late, waits) == ["m1"]
    assert statuses(database) == ["CLOSED/EXPIRED", PENDING]


# --- alone ----------------------------------------------------------------------------------------


def test_alone_an_order_is_decided_at_its_turn_and_the_others_are_not(database, skus):
    first, second = an_order({HOT: 1}), an_order({HOT: 1})
    assert hold(second.id) == Held()
    assert hold(second.id) == NotWaiting()
    assert statuses(database) == [WAITS, PENDING]
    assert hold_all(HOT, a_while()) == {}
    assert statuses(database) == [PENDING, PENDING]
    assert ids(first, second) == sorted(ids(first, second))


def test_a_cancelled_order_is_not_counted_among_those_in_line(database, skus):
    gone, stays = an_order({HOT: 10}), an_order({HOT: 10})
    cancel(42, gone.order_no)
    assert ring(gone, stays) == []
    assert statuses(database) == ["CLOSED/CANCELLED", PENDING]
    assert_at_rest(database)
