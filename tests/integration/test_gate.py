"""The sold-out gate: who comes too late for a hot SKU is told at once and leaves nothing."""

from decimal import Decimal

import pytest

from lockstep.db import connection
from lockstep.inventory.model import ShortLine
from lockstep.orders.model import (
    AmountRefused,
    InFlight,
    KeyReused,
    OutOfStock,
    Placed,
    Replayed,
    SkuUnknown,
)
from lockstep.orders.place import place
from tests.support.api import ask
from tests.support.builders import (
    a_sku,
    an_order,
    assert_at_rest,
    deliver_outbox,
    place_command,
)
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.http_events import an_order_body, post_order

HOT, ORDINARY = 2001, 1001
CLAIM = (
    "INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state) "
    "VALUES (42, 'k', REPEAT('0', 64), 'PROCESSING')"
)


@pytest.fixture
def sold_out(database: Database) -> Database:
    """Nothing is left of the hot SKU; the schema has no other rows but an ordinary SKU's."""
    a_sku(database, HOT, stock=0, hot=True)
    a_sku(database, ORDINARY, stock=2)
    return database


def locks(database: Database) -> int:
    """How many locks anybody holds or wants in this schema."""
    sql = "SELECT COUNT(*) FROM performance_schema.data_locks WHERE object_schema = %s"
    return int(database.value(sql, (database.name,)))


def test_nobody_lines_up_for_nothing(sold_out):
    filled = sold_out.filled()
    answer = ask(post_order(an_order_body(lines=[{"sku_id": HOT, "quantity": 1}]), key="k"))
    assert (answer.status, answer.document["code"]) == (409, "OUT_OF_STOCK")
    assert answer.document["lines"] == [{"sku_id": HOT, "wanted": 1, "available": 0}]
    assert sold_out.filled() == filled
    assert locks(sold_out) == 0


def test_every_short_line_is_named_hot_or_not(sold_out):
    outcome = place(place_command({ORDINARY: 3, HOT: 2}))
    assert outcome == OutOfStock((ShortLine(ORDINARY, 3, 2), ShortLine(HOT, 2, 0)))
    assert place(place_command({ORDINARY: 2, HOT: 2})) == OutOfStock((ShortLine(HOT, 2, 0),))
    assert sold_out.count("oms_order") == 0


def test_the_members_own_unpaid_order_is_named(database):
    a_sku(database, HOT, stock=1, hot=True)
    mine = an_order({HOT: 1}, member_id=7)
    deliver_outbox(database)
    assert place(place_command({HOT: 1}, member_id=7)) == OutOfStock(
        (ShortLine(HOT, 1, 0),), (mine.order_no,)
    )
    assert place(place_command({HOT: 1}, member_id=8)) == OutOfStock((ShortLine(HOT, 1, 0),))


def test_stock_that_comes_back_opens_it_also_to_a_key_that_was_refused(database):
    a_sku(database, HOT, stock=1, hot=True)
    last = an_order({HOT: 1}, member_id=7)
    deliver_outbox(database)
    command = place_command({HOT: 1}, member_id=8)
    assert isinstance(place(command), OutOfStock)
    cancel(7, last.order_no)
    assert_at_rest(database)
    placed = place(command)
    assert isinstance(placed, Placed)
    assert placed.order.status == "RESERVING"
    assert_at_rest(database)
    assert database.stock(HOT) == (1, 1)


def test_what_is_there_but_too_little_is_for_its_turn_to_say(database):
    """Those before it may give back or be refused: whoever wants no more than there is gets it."""
    a_sku(database, HOT, stock=1, hot=True)
    assert isinstance(place(place_command({HOT: 2})), Placed)


def test_an_ordinary_sku_with_nothing_left_does_not_shut_it(database):
    """An ordinary line may still find stock when the order's turn comes."""
    a_sku(database, HOT, hot=True)
    a_sku(database, ORDINARY, stock=0)
    assert isinstance(place(place_command({HOT: 1, ORDINARY: 1})), Placed)


def test_orders_that_wait_already_do_not_shut_it(database):
    """Stock is what is there now, whoever lines up for it."""
    a_sku(database, HOT, stock=1, hot=True)
    assert [type(place(place_command({HOT: 1}))) for _ in range(3)] == [Placed] * 3


# --- the request key comes first -----------------------------------------------------------------


def test_a_known_key_is_replayed_and_a_reused_one_refused_although_all_is_gone(database):
    a_sku(database, HOT, stock=1, hot=True)
    command = place_command({HOT: 1}, key="k")
    placed = place(command)
    assert isinstance(placed, Placed)
    database.execute("UPDATE ims_sku_stock SET stock = 0")
    assert place(command) == Replayed(placed.order)
    assert place(place_command({HOT: 2}, key="k")) == KeyReused()


@pytest.mark.parametrize("stock", [0, 10])
def test_a_key_in_flight_is_told_so_and_not_waited_for(database, monkeypatch, stock):
    a_sku(database, HOT, stock=stock, hot=True)
    monkeypatch.setattr("lockstep.orders.place.WITHIN_SECONDS", 600.0)  # and patience enough
    with database.another_session() as first, first.cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 600")
        cursor.execute(CLAIM)
        body = an_order_body(lines=[{"sku_id": HOT, "quantity": 1}])
        answer = ask(post_order(body, key="k"))
        assert (answer.status, answer.document) == (202, {"request_state": "PROCESSING"})
        assert "retry-after" in answer.headers
        assert place(place_command({HOT: 1}, key="k")) == InFlight()
        waits = "SELECT COUNT(*) FROM performance_schema.data_lock_waits"
        assert database.value(waits) == 0
    assert database.count("oms_order") == 0


def test_another_members_key_in_flight_is_not_in_the_way(sold_out):
    with sold_out.another_session() as first, first.cursor() as cursor:
        cursor.execute(CLAIM)
        assert isinstance(place(place_command({HOT: 1}, key="k", member_id=43)), OutOfStock)


def test_an_unknown_sku_and_a_wrong_sum_come_before_the_stock(sold_out):
    assert place(place_command({HOT: 1, 9: 1})) == SkuUnknown((9,))
    sold_out.execute("UPDATE ims_sku_stock SET on_sale = FALSE WHERE sku_id = %s", (ORDINARY,))
    assert place(place_command({HOT: 1, ORDINARY: 1})) == SkuUnknown((ORDINARY,))
    outcome = place(place_command({HOT: 1}, expected_amount="1.00"))
    assert outcome == AmountRefused("AMOUNT_CHANGED", Decimal("9.90"))


@pytest.mark.parametrize("was", ["off sale", "dearer", "gone"])
def test_whatever_a_sku_has_become_a_replay_is_a_replay(database, was):
    a_sku(database, ORDINARY)
    command = place_command({ORDINARY: 1}, key="k", expected_amount="9.90")
    placed = place(command)
    assert isinstance(placed, Placed)
    change = {"off sale": "on_sale = FALSE", "dearer": "price = 10", "gone": "stock = 1"}[was]
    database.execute(f"UPDATE ims_sku_stock SET {change}")  # noqa: S608 - our own words
    assert place(command) == Replayed(placed.order)


# --- what it costs --------------------------------------------------------------------------------


def test_a_refusal_takes_four_round_trips_and_a_place_in_line_five(database):
    """The SKUs, the key, the member's own orders, ROLLBACK; or the SKUs, the key and the order,
    the rest, the message, COMMIT."""
    a_sku(database, HOT, stock=1, hot=True)
    before = connection.current().round_trips
    an_order({HOT: 1})
    lined_up = connection.current().round_trips
    database.execute("UPDATE ims_sku_stock SET stock = 0")
    place(place_command({HOT: 1}))
    assert (lined_up - before, connection.current().round_trips - lined_up) == (5, 4)
