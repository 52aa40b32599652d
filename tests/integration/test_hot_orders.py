"""An order of a hot SKU: it waits in line, and its turn decides it once, whatever came before."""

import json
from typing import Any

import pytest

from functions import reserve_stock
from lockstep.db import connection
from lockstep.db.transaction import in_transaction
from lockstep.inventory.release import release
from lockstep.messaging.contracts import ReserveStock
from lockstep.orders import hold as hold_module
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Closed, Held, NotWaiting, Order, OutOfStock, SoldOut
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.support.api import ask
from tests.support.batches import batch, failed_ids, record_of
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_order,
    assert_at_rest,
    deliver_outbox,
    place_command,
)
from tests.support.channel import cancel
from tests.support.database import Database, forget_settings
from tests.support.http_events import an_order_body, post_order
from tests.support.lambda_context import Context

HOT, ORDINARY = 2001, 1001


@pytest.fixture
def skus(database):
    a_sku(database, HOT, hot=True)
    a_sku(database, ORDINARY)


def command_of(order: Order) -> ReserveStock:
    assert order.reservation_id is not None
    return ReserveStock(reservation_id=order.reservation_id, order_id=order.id)


def deliver(*orders: Order) -> list[str]:
    """Give the worker a batch with each order's command; the messages that failed."""
    records = [record_of(f"m{n}", command_of(order)) for n, order in enumerate(orders, 1)]
    return failed_ids(reserve_stock.handler(batch(*records), Context()))


def turn_of(order: Order) -> object:
    command = command_of(order)
    return hold(command.order_id)


def order_row(database: Database, order: Order) -> Any:
    return database.one(
        "SELECT status, close_reason, expires_at FROM oms_order WHERE id = %s", (order.id,)
    )


# --- it waits in line ----------------------------------------------------------------------------


def test_an_order_of_a_hot_sku_is_answered_before_its_stock_is_held(database, skus):
    body = an_order_body(lines=[{"sku_id": HOT, "quantity": 2}])
    answer = ask(post_order(body, key="k"))
    assert (answer.status, answer.headers["retry-after"]) == (201, "1")
    order = answer.document["order"]
    assert (answer.document["request_state"], answer.document["created"]) == ("SUCCESS", True)
    assert (order["status"], order["expires_at"]) == ("RESERVING", None)
    assert order["reservation"] == {"reservation_id": f"{order['order_no']}-1", "state": None}
    assert database.stock(HOT) == (10, 0)
    assert database.count("ims_reservation") == 0


def test_its_command_goes_to_the_queue_of_holds_in_the_group_of_its_reservation(database, skus):
    order = an_order({HOT: 1})
    row = database.one("SELECT queue, group_key, payload FROM outbox")
    assert (row["queue"], row["group_key"]) == ("reserve", f"{order.order_no}-1")
    message = json.loads(row["payload"])
    assert message.pop("correlation_id") is not None
    assert message == {
        "v": 1,
        "type": "ReserveStock",
        "reservation_id": f"{order.order_no}-1",
        "order_id": order.id,
    }


def test_one_hot_line_puts_the_whole_order_in_line(database, skus):
    order = an_order({HOT: 1, ORDINARY: 3})
    assert order.status == "RESERVING"
    assert (database.stock(HOT), database.stock(ORDINARY)) == ((10, 0), (10, 0))
    assert turn_of(order) == Held()
    assert (database.stock(HOT), database.stock(ORDINARY)) == ((10, 1), (10, 3))
    assert_at_rest(database)


def test_a_replay_says_wait_for_as_long_as_the_order_waits(database, skus):
    body = an_order_body(lines=[{"sku_id": HOT, "quantity": 1}])
    first = ask(post_order(body, key="k"))
    again = ask(post_order(body, key="k"))
    assert (again.status, again.headers["retry-after"]) == (200, "1")
    assert again.document == {**first.document, "created": False}
    deliver_outbox(database)
    decided = ask(post_order(body, key="k"))
    assert (decided.status, "retry-after" in decided.headers) == (200, False)
    assert decided.document["order"]["status"] == "PENDING_PAYMENT"
    assert decided.document["order"]["reservation"]["state"] == "RESERVED"


def test_stock_that_goes_while_an_order_waits_is_for_its_turn_to_say(database, skus):
    """What was gone before is said at once: test_gate.py."""
    order = an_order({HOT: 1})
    database.execute("UPDATE ims_sku_stock SET stock = 0 WHERE sku_id = %s", (HOT,))
    assert turn_of(order) == SoldOut()


# --- its turn ------------------------------------------------------------------------------------


def test_its_time_to_pay_starts_with_its_hold(database, skus, monkeypatch):
    monkeypatch.setenv("ORDER_TTL_SECONDS", "600")
    forget_settings()
    order = an_order({HOT: 1})
    database.execute("UPDATE oms_order SET created_at = created_at - INTERVAL 4 MINUTE")
    assert deliver(order) == []
    seconds = database.one(
        "SELECT TIMESTAMPDIFF(SECOND, NOW(3), o.expires_at) AS to_pay, "
        "TIMESTAMPDIFF(MICROSECOND, o.expires_at, r.expires_at) AS grace FROM oms_order AS o "
        "JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id"
    )
    assert 590 <= seconds["to_pay"] <= 600
    assert seconds["grace"] == 600_000_000
    assert order_row(database, order)["status"] == "PENDING_PAYMENT"
    assert database.stock(HOT) == (10, 1)
    trail = database.rows("SELECT from_status, to_status, actor, reason FROM oms_order_event")
    assert [tuple(row.values()) for row in trail] == [
        ("NONE", "RESERVING", "member:42", "PLACED"),
        ("RESERVING", "PENDING_PAYMENT", "system:reserve_stock", "HELD"),
    ]
    assert accept(a_trade_notice(order)) is Result.APPLIED
    assert_at_rest(database)
    assert database.stock(HOT) == (9, 0)


@pytest.mark.parametrize("short", [HOT, ORDINARY])
def test_a_short_line_closes_the_order_and_holds_nothing_of_the_others(database, skus, short):
    lines = {HOT: 1, ORDINARY: 1} | {short: 11}
    order = an_order(lines)
    assert deliver(order) == []
    row = order_row(database, order)
    assert (row["status"], row["close_reason"], row["expires_at"]) == (
        "CLOSED",
        "OUT_OF_STOCK",
        None,
    )
    assert (database.stock(HOT), database.stock(ORDINARY)) == ((10, 0), (10, 0))
    assert database.count("oms_order_event", to_status="CLOSED", actor="system:reserve_stock") == 1
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE to_status = 'CLOSED'")
    assert json.loads(evidence) == {"lines": [{"sku_id": short, "wanted": 11, "available": 10}]}
    # It never had a hold, and its state forbids one: nothing is staged to give back.
    assert database.count("outbox", queue="release") == 0
    assert_at_rest(database)
    assert database.count("ims_reservation") == 0


def test_a_batch_decides_each_order_by_itself(database, skus):
    held, short, gone = an_order({HOT: 6}), an_order({HOT: 6}), an_order({HOT: 1})
    cancel(42, gone.order_no)
    assert deliver(held, short, gone) == []
    statuses = [
        (row["status"], row["close_reason"])
        for row in database.rows("SELECT status, close_reason FROM oms_order ORDER BY id")
    ]
    assert statuses == [
        ("PENDING_PAYMENT", None),
        ("CLOSED", "OUT_OF_STOCK"),
        ("CLOSED", "CANCELLED"),
    ]
    assert database.count("message_refusal") == 0
    assert database.stock(HOT) == (10, 6)
    assert_at_rest(database)


def test_a_command_delivered_again_changes_nothing(database, skus):
    order, other = an_order({HOT: 1}), an_order({HOT: 10})
    assert deliver(order, order, other, other) == []
    first = order_row(database, order)
    assert deliver(order, other) == []
    assert turn_of(order) == turn_of(other) == NotWaiting()
    assert order_row(database, order) == first
    assert database.stock(HOT) == (10, 1)
    assert database.count("oms_order_event") == 4
    assert database.count("message_refusal") == 0
    assert_at_rest(database)


def test_a_command_is_a_doorbell_whatever_hold_it_names(database, skus):
    order, other = an_order({HOT: 1}), an_order({HOT: 1})
    command = ReserveStock(reservation_id=f"{order.order_no}-2", order_id=order.id)
    assert failed_ids(reserve_stock.handler(batch(record_of("m1", command)), Context())) == []
    assert order_row(database, order)["status"] == "PENDING_PAYMENT"
    assert order_row(database, other)["status"] == "PENDING_PAYMENT"
    assert database.count("ims_reservation", reservation_id=f"{order.order_no}-1") == 1
    assert_at_rest(database)


def test_a_command_of_no_order_is_acknowledged(database, skus):
    command = ReserveStock(reservation_id="nobody-1", order_id=7)
    assert failed_ids(reserve_stock.handler(batch(record_of("m1", command)), Context())) == []
    assert hold(7) == NotWaiting()


def test_what_another_buyer_holds_is_waited_for_and_then_delivered_again(
    database, skus, monkeypatch
):
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    forget_settings()
    connection.discard()

    def impatient(work):
        return in_transaction(work, within_seconds=1.1)

    monkeypatch.setattr(hold_module, "in_transaction", impatient)
    order = an_order({HOT: 1})
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute("SELECT stock FROM ims_sku_stock WHERE sku_id = %s FOR UPDATE", (HOT,))
        assert deliver(order) == ["m1"]
    assert order_row(database, order)["status"] == "RESERVING"
    assert deliver(order) == []
    assert order_row(database, order)["status"] == "PENDING_PAYMENT"
    assert_at_rest(database)


# --- what comes before its turn ------------------------------------------------------------------


def test_a_member_may_cancel_while_the_order_waits(database, skus):
    order = an_order({HOT: 1})
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)
    assert order_row(database, order)["close_reason"] == "CANCELLED"
    assert deliver(order) == []
    assert (database.stock(HOT), database.count("ims_reservation")) == ((10, 0), 0)
    release(command_of(order).reservation_id, order.id)
    assert deliver(order) == []
    assert database.stock(HOT) == (10, 0)
    assert database.one("SELECT state, request_hash FROM ims_reservation") == {
        "state": "RELEASED",
        "request_hash": None,
    }


def test_a_tombstone_forbids_the_hold_even_if_the_order_still_waits(database, skus):
    """As after a restore of one table: the release is known, the close is not."""
    order = an_order({HOT: 1})
    release(command_of(order).reservation_id, order.id)
    assert deliver(order) == []
    assert order_row(database, order)["status"] == "RESERVING"
    assert database.stock(HOT) == (10, 0)
    refusal = database.one("SELECT type, code FROM message_refusal")
    assert refusal == {"type": "ReserveStock", "code": "RESERVATION_ALREADY_RELEASED"}


def test_money_for_an_order_that_waits_goes_back(database, skus):
    order = an_order({HOT: 1})
    assert accept(a_trade_notice(order)) is Result.REFUND_PENDING
    payment = database.one("SELECT state, reason FROM oms_order_payment")
    assert payment == {"state": "REFUND_PENDING", "reason": "NOT_PAYABLE"}
    assert order_row(database, order)["status"] == "RESERVING"
    assert turn_of(order) == Held()
    assert_at_rest(database)


def test_an_order_waits_for_five_minutes_and_no_longer(database, skus):
    order = an_order({HOT: 1})
    database.execute("UPDATE oms_order SET created_at = NOW(3) - INTERVAL 299 SECOND")
    assert not expire(order.id)
    database.execute("UPDATE oms_order SET created_at = NOW(3) - INTERVAL 300 SECOND")
    assert expire(order.id)
    row = order_row(database, order)
    assert (row["status"], row["close_reason"]) == ("CLOSED", "OUT_OF_STOCK")
    assert database.count("oms_order_event", to_status="CLOSED", actor="system:sweep_expired") == 1
    assert not expire(order.id)
    assert deliver(order) == []
    assert database.stock(HOT) == (10, 0)
    assert_at_rest(database)


def test_only_a_held_order_is_named_to_its_member_as_the_one_that_has_the_stock(database, skus):
    held, waits = an_order({HOT: 10}), an_order({HOT: 1})
    turn_of(held)
    database.execute("UPDATE ims_sku_stock SET hot = FALSE")
    outcome = place(place_command({HOT: 1}))
    assert isinstance(outcome, OutOfStock)
    assert outcome.own_orders == (held.order_no,)
    assert waits.order_no not in outcome.own_orders


@pytest.mark.parametrize("hot", [True, False])
def test_a_sku_that_turns_hot_or_ordinary_leaves_placed_orders_as_they_are(database, skus, hot):
    order = an_order({ORDINARY if hot else HOT: 1})
    database.execute("UPDATE ims_sku_stock SET hot = %s", (hot,))
    deliver_outbox(database)
    assert order_row(database, order)["status"] == "PENDING_PAYMENT"
    assert_at_rest(database)
