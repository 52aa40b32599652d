"""POST /orders/{order_no}/cancel on a real database: every status and code."""

import pytest

from lockstep.alipay import gateway
from lockstep.db import connection
from lockstep.orders.model import OrderStatus
from lockstep.payments import cancel as cancelling
from tests.support.api import ask
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import ScriptedChannel
from tests.support.http_events import cancel_order, get, post_order


def test_an_unpaid_order_is_closed_at_its_members_wish(database):
    a_sku(database)
    placed = ask(post_order()).document["order"]
    answer = ask(cancel_order(placed["order_no"]))
    assert answer.status == 200
    assert answer.headers == {"content-type": "application/json"}
    closed = {**placed, "status": "CLOSED", "close_reason": "CANCELLED"}
    assert answer.document == {"order": closed}
    assert_at_rest(database)
    assert database.stock(1001) == (10, 0)


def test_a_cancel_may_be_repeated(database):
    a_sku(database)
    order_no = an_order().order_no
    first, second = ask(cancel_order(order_no)), ask(cancel_order(order_no))
    assert (second.status, second.document) == (200, first.document)
    assert database.count("outbox", queue="release") == 1
    assert database.count("oms_order_event", to_status="CLOSED") == 1


@pytest.mark.parametrize("reason", ["EXPIRED", "OUT_OF_STOCK", "GATEWAY_CLOSED"])
def test_an_order_that_closed_for_another_reason_is_answered_as_it_is(database, reason):
    a_sku(database)
    order_no = an_order().order_no
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'CLOSED', close_reason = %s", (reason,)
    )
    answer = ask(cancel_order(order_no))
    assert answer.status == 200
    assert answer.document["order"]["close_reason"] == reason
    assert database.count("outbox") == 0


@pytest.mark.parametrize("state", ["OPEN", "CLOSING"])
def test_the_wish_is_kept_while_a_payment_may_be_on_its_way(database, state, monkeypatch):
    a_sku(database)
    order = an_order()
    database.execute(
        "INSERT INTO oms_payment_attempt (order_id, out_trade_no, product, amount, state, "
        "expires_at) VALUES (%s, %s, 'page', 9.90, %s, NOW(3))",
        (order.id, order.order_no, state),
    )
    monkeypatch.setattr(gateway, "connect", ScriptedChannel())
    answer = ask(cancel_order(order.order_no))
    assert answer.status == 202
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.document["order"]["status"] == "PAYMENT_PROCESSING"
    requested = database.value("SELECT cancel_requested_at FROM oms_order")
    assert requested is not None
    ask(cancel_order(order.order_no))
    assert database.value("SELECT cancel_requested_at FROM oms_order") == requested


@pytest.mark.parametrize("state", ["CLOSED", "PAID"])
def test_an_attempt_that_is_over_does_not_hold_a_cancel_up(database, state):
    a_sku(database)
    order = an_order()
    database.execute(
        "INSERT INTO oms_payment_attempt (order_id, out_trade_no, product, amount, state, "
        "expires_at) VALUES (%s, %s, 'page', 9.90, %s, NOW(3))",
        (order.id, order.order_no, state),
    )
    assert ask(cancel_order(order.order_no)).status == 200


PATHS_TO = {
    OrderStatus.PAID: ["PAID"],
    OrderStatus.SHIPPED: ["PAID", "SHIPPED"],
    OrderStatus.FINISHED: ["PAID", "SHIPPED", "FINISHED"],
    OrderStatus.REFUNDING: ["PAID", "REFUNDING"],
    OrderStatus.REFUNDED: ["PAID", "REFUNDING", "REFUNDED"],
}


@pytest.mark.parametrize("status", PATHS_TO)
def test_a_paid_order_is_not_the_members_to_cancel(database, status):
    a_sku(database)
    order_no = an_order().order_no
    for step in PATHS_TO[status]:
        database.execute("UPDATE oms_order SET prev_status = status, status = %s", (step,))
    answer = ask(cancel_order(order_no))
    assert (answer.status, answer.code) == (409, "ORDER_NOT_CANCELLABLE")
    assert answer.document["order_status"] == status
    assert ask(get(f"/orders/{order_no}")).document["status"] == status


@pytest.mark.parametrize("status", ["RESERVING", "PAYMENT_PROCESSING"])
def test_an_order_that_waits_for_stock_or_for_the_gateway_can_be_cancelled(database, status):
    a_sku(database)
    order_no = an_order().order_no
    before = "NONE" if status == "RESERVING" else "PENDING_PAYMENT"
    database.execute("UPDATE oms_order SET prev_status = %s, status = %s", (before, status))
    assert ask(cancel_order(order_no)).document["order"]["status"] == "CLOSED"


def test_another_members_order_is_not_found_and_not_touched(database):
    a_sku(database)
    order = an_order(member_id=7)
    hidden = ask(cancel_order(order.order_no))
    missing = ask(cancel_order("202610240136005000421234"))
    assert (hidden.status, hidden.code) == (404, "ORDER_NOT_FOUND")
    assert hidden.text == missing.text
    assert database.value("SELECT status FROM oms_order") == "PENDING_PAYMENT"


def test_a_row_that_stays_locked_is_a_reason_to_come_back(database, monkeypatch):
    a_sku(database)
    order_no = an_order().order_no
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    monkeypatch.setattr(cancelling, "_BEGIN_SECONDS", 1)
    connection.discard()
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT * FROM oms_order FOR UPDATE")
        answer = ask(cancel_order(order_no))
    assert (answer.status, answer.code) == (503, "TRY_AGAIN")
    assert int(answer.headers["retry-after"]) >= 1
    assert database.value("SELECT status FROM oms_order") == "PENDING_PAYMENT"
    assert ask(cancel_order(order_no)).status == 200
