"""place(): one key, one order, with its stock; or a refusal that leaves nothing."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lockstep.db import connection
from lockstep.db.connection import Connection
from lockstep.db.errors import DuplicateKey
from lockstep.db.packet import BYTES_MAX
from lockstep.db.transaction import read
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import ShortLine
from lockstep.orders import begin, request_store
from lockstep.orders import place as place_module
from lockstep.orders.model import (
    AmountRefused,
    KeyReused,
    OrderStatus,
    OutOfStock,
    Placed,
    Replayed,
    RequestState,
    SkuUnknown,
)
from lockstep.orders.place import place
from lockstep.orders.query import probe, reload
from tests.support.builders import (
    a_sku,
    an_order,
    assert_at_rest,
    deliver_outbox,
    place_command,
)
from tests.support.channel import cancel
from tests.support.raw_rows import insert_row

ORDER_TABLES = (
    "oms_order",
    "oms_order_item",
    "oms_order_request",
    "oms_order_event",
    "ims_reservation",
    "ims_reservation_item",
    "outbox",
)


def test_an_order_holds_its_stock_in_the_same_transaction(database):
    a_sku(database, 1001, stock=10)
    a_sku(database, 1002, stock=5, price="5.05")
    order = an_order({1002: 1, 1001: 2})
    assert order.status is OrderStatus.PENDING_PAYMENT
    assert order.pay_amount == Decimal("24.85")
    assert database.stock(1001) == (10, 2)
    assert database.stock(1002) == (5, 1)
    assert database.count("oms_order_event", from_status="NONE", to_status="PENDING_PAYMENT") == 1
    assert_at_rest(database)


def test_the_hold_outlives_the_order_by_its_grace(database):
    a_sku(database)
    order = an_order()
    grace = database.value(
        "SELECT TIMESTAMPDIFF(SECOND, o.expires_at, r.expires_at) FROM oms_order AS o "
        "JOIN ims_reservation AS r ON r.order_id = o.id WHERE o.id = %s",
        (order.id,),
    )
    assert grace == 600
    assert order.expires_at == order.created_at + timedelta(seconds=1800)


def test_the_same_request_again_is_the_same_order(database):
    a_sku(database)
    command = place_command({1001: 1}, key="k1")
    first, second = place(command), place(command)
    assert isinstance(first, Placed)
    assert isinstance(second, Replayed)
    assert first.order.id == second.order.id
    assert database.count("oms_order") == 1
    assert database.stock(1001) == (10, 1)


@pytest.mark.parametrize(
    "other",
    [
        place_command({1001: 2}, key="k1"),
        place_command({1001: 1}, key="k1", note="ring twice"),
        place_command({1001: 1}, key="k1", expected_amount="9.90"),
    ],
)
def test_the_same_key_with_other_content_is_refused(database, other):
    a_sku(database)
    place(place_command({1001: 1}, key="k1"))
    assert isinstance(place(other), KeyReused)
    assert database.count("oms_order") == 1


def test_keys_are_compared_byte_by_byte(database):
    a_sku(database)
    for key in ("Abc", "abc", "ABC"):
        assert isinstance(place(place_command(key=key)), Placed)
    assert database.count("oms_order") == 3


def test_another_member_may_use_the_same_key(database):
    a_sku(database)
    one, two = an_order(member_id=1, key="k"), an_order(member_id=2, key="k")
    assert one.id != two.id


def test_a_shortage_names_every_short_line_and_leaves_no_row(database):
    a_sku(database, 1001, stock=10)
    a_sku(database, 1002, stock=1)
    a_sku(database, 1003, stock=2)
    command = place_command({1001: 3, 1002: 2, 1003: 3})
    outcome = place(command)
    assert outcome == OutOfStock((ShortLine(1002, 2, 1), ShortLine(1003, 3, 2)))
    for table in ORDER_TABLES:
        assert database.count(table) == 0, table
    assert database.stock(1001) == (10, 0)
    assert probe(command.member_id, command.idempotency_key) == (RequestState.UNKNOWN, None)


def test_after_a_shortage_the_key_may_be_tried_again(database):
    a_sku(database, stock=1)
    blocker = an_order(member_id=1)
    command = place_command(member_id=2, key="k")
    assert isinstance(place(command), OutOfStock)
    database.execute("UPDATE ims_sku_stock SET stock = 2 WHERE sku_id = 1001")
    outcome = place(command)
    assert isinstance(outcome, Placed)
    assert outcome.order.id != blocker.id


def test_a_shopper_blocked_by_an_own_unpaid_order_is_told_which(database):
    a_sku(database, stock=1)
    mine = an_order(member_id=7)
    outcome = place(place_command(member_id=7))
    assert isinstance(outcome, OutOfStock)
    assert outcome.own_orders == (mine.order_no,)
    stranger = place(place_command(member_id=8))
    assert isinstance(stranger, OutOfStock)
    assert stranger.own_orders == ()


def test_unknown_and_off_sale_skus_are_named(database):
    a_sku(database, 1001)
    a_sku(database, 1002, on_sale=False)
    assert place(place_command({1001: 1, 1002: 1, 1003: 1})) == SkuUnknown((1002, 1003))
    assert database.count("oms_order_request") == 0


def test_a_sum_that_the_member_did_not_expect_is_refused_with_the_right_one(database):
    a_sku(database)
    outcome = place(place_command({1001: 2}, expected_amount="9.90"))
    assert outcome == AmountRefused("AMOUNT_CHANGED", Decimal("19.80"))
    assert isinstance(place(place_command({1001: 2}, expected_amount="19.80")), Placed)


def test_an_order_for_nothing_or_for_more_than_the_channel_takes_is_refused(database):
    a_sku(database, 1001, price="0.00")
    a_sku(database, 1002, price="100.01", stock=2_000_000)
    assert place(place_command({1001: 1})) == AmountRefused("AMOUNT_ZERO", Decimal("0.00"))
    outcome = place(place_command({1002: 1_000_000}))
    assert outcome == AmountRefused("AMOUNT_TOO_LARGE", Decimal("100010000.00"))
    assert database.count("oms_order_request") == 0


def test_a_taken_order_number_is_drawn_again(database, monkeypatch):
    a_sku(database)
    taken = an_order().order_no
    numbers = iter([taken, taken, "202611300100000000420001"])
    monkeypatch.setattr(begin, "new_order_no", lambda *_: next(numbers))
    assert an_order().order_no == "202611300100000000420001"
    assert_at_rest(database)


@pytest.mark.parametrize(("lines", "trips"), [({1001: 1}, 4), ({1001: 1, 1002: 2}, 4)])
def test_an_order_takes_four_round_trips(database, lines, trips):
    """The SKUs; the key and the order; all the rest; COMMIT. No look at what was written."""
    a_sku(database, 1001)
    a_sku(database, 1002)
    connection.current()
    before = connection.current().round_trips
    an_order(lines)
    assert connection.current().round_trips - before == trips


@pytest.mark.parametrize("hot", [False, True])
def test_what_is_answered_is_what_was_written(database, hot):
    a_sku(database, 1001, hot=hot)
    a_sku(database, 1002, price="5.05")
    command = place_command({1002: 3, 1001: 1}, note="ring twice")
    placed = place(command)
    assert isinstance(placed, Placed)
    assert placed.order == reload(placed.order.id)


def test_a_hundred_lines_go_in_packets_that_no_proxy_minds(database, monkeypatch):
    for sku_id in range(1001, 1101):
        a_sku(database, sku_id)
    sent: list[int] = []
    together = Connection.send_together

    def measure(session, texts):
        sent.append(sum(len(text.encode()) for text in texts) if len(texts) > 1 else 0)
        return together(session, texts)

    monkeypatch.setattr(Connection, "send_together", measure)
    order = an_order(dict.fromkeys(range(1001, 1101), 2))
    assert max(sent) <= BYTES_MAX
    assert len(sent) > 3
    assert order == reload(order.id)
    assert database.count("ims_sku_stock", lock_stock=2) == 100
    assert_at_rest(database)


def test_a_row_that_stays_locked_is_in_flight_and_leaves_nothing(database, monkeypatch):
    a_sku(database)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 1.2)
    connection.discard()
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT * FROM ims_sku_stock WHERE sku_id = 1001 FOR UPDATE")
        outcome = place(place_command())
    assert type(outcome).__name__ == "InFlight"
    assert database.count("oms_order") == 0


def test_stock_that_comes_back_before_the_shortage_is_named_is_sold(database, monkeypatch):
    a_sku(database, stock=1)
    blocker = an_order(member_id=7)

    def look_too_late(work):
        cancel(7, blocker.order_no)
        deliver_outbox(database)
        return read(work)

    monkeypatch.setattr(place_module, "read", look_too_late)
    assert isinstance(place(place_command()), Placed)


# --- what contradicts itself ----------------------------------------------------------------------


def test_no_order_is_made_where_every_number_is_taken(database, monkeypatch):
    a_sku(database)
    taken = an_order().order_no
    monkeypatch.setattr(begin, "new_order_no", lambda *_: taken)
    with pytest.raises(InvariantBroken, match="no order number of 3 was free"):
        place(place_command())
    assert database.count("oms_order_request") == 1
    assert_at_rest(database)


def test_a_request_without_its_order_is_a_broken_invariant(database):
    a_sku(database)
    command = place_command()
    place(command)
    database.execute("UPDATE oms_order_request SET state = 'PROCESSING', order_id = NULL")
    with pytest.raises(InvariantBroken, match="without its order"):
        place(command)


def test_a_key_that_is_taken_by_no_request_is_a_broken_invariant(database, monkeypatch):
    a_sku(database)

    def taken(*_):
        raise DuplicateKey("PRIMARY")

    monkeypatch.setattr(request_store, "claim_request", taken)
    with pytest.raises(InvariantBroken, match="by no request"):
        place(place_command())
    assert database.count("oms_order") == 0


def test_no_order_is_made_under_a_key_that_was_not_claimed(database, monkeypatch):
    a_sku(database)
    monkeypatch.setattr(request_store, "claim_request", lambda *_: None)
    with pytest.raises(InvariantBroken, match="is not there"):
        place(place_command())
    assert [database.count(table) for table in ORDER_TABLES] == [0] * len(ORDER_TABLES)


def test_a_request_of_another_member_with_the_same_key_is_not_completed(database):
    a_sku(database)
    insert_row(
        database,
        "oms_order_request",
        member_id=7,
        idempotency_key="k1",
        state="PROCESSING",
        order_id=None,
    )
    assert isinstance(place(place_command(key="k1")), Placed)
    assert database.count("oms_order_request", member_id=7, state="PROCESSING") == 1
