"""cancel(): the member's wish closes an unpaid order at once, or is kept, or is refused by name."""

import json

import pytest

from lockstep.alipay.model import NoticeKind
from lockstep.db.transaction import in_transaction
from lockstep.orders import store, unpaid_store
from lockstep.orders.model import (
    CancelRequested,
    Closed,
    CloseReason,
    NotCancellable,
    Order,
    OrderNotFound,
    OrderStatus,
)
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.flows import a_notice
from tests.support.raw_rows import insert_row

# The legal steps that lead an order to each status, by hand.
STEPS = {
    "PENDING_PAYMENT": [],
    "PAYMENT_PROCESSING": ["PAYMENT_PROCESSING"],
    "PAID": ["PAID"],
    "SHIPPED": ["PAID", "SHIPPED"],
    "FINISHED": ["PAID", "SHIPPED", "FINISHED"],
    "REFUNDING": ["PAID", "REFUNDING"],
    "REFUNDED": ["PAID", "REFUNDING", "REFUNDED"],
}


@pytest.fixture
def order(database):
    a_sku(database, 1001)
    return an_order({1001: 2})


def lead_to(database: Database, status: str) -> None:
    for step in STEPS[status]:
        database.execute("UPDATE oms_order SET prev_status = status, status = %s", (step,))


def an_attempt(database: Database, order: Order, state: str, n: int = 1) -> None:
    out_trade_no = order.order_no if n == 1 else f"{order.order_no}_{n}"
    insert_row(
        database,
        "oms_payment_attempt",
        order_id=order.id,
        out_trade_no=out_trade_no,
        state=state,
        amount=order.pay_amount,
    )


def staged(database: Database) -> list[str]:
    return [row["queue"] for row in database.rows("SELECT queue FROM outbox ORDER BY id")]


@pytest.mark.parametrize("status", ["PENDING_PAYMENT", "PAYMENT_PROCESSING"])
def test_an_unpaid_order_without_attempts_is_closed_at_once(database, order, status):
    lead_to(database, status)
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)
    row = database.one("SELECT status, prev_status, close_reason FROM oms_order")
    assert row == {"status": "CLOSED", "prev_status": status, "close_reason": "CANCELLED"}
    event = database.one("SELECT * FROM oms_order_event WHERE to_status = 'CLOSED'")
    assert (event["from_status"], event["actor"], event["reason"]) == (
        status,
        "member:42",
        "CANCELLED",
    )
    assert staged(database) == ["release"]
    payload = json.loads(database.value("SELECT payload FROM outbox"))
    assert payload["type"] == "ReleaseStock"
    assert (payload["reservation_id"], payload["order_id"]) == (order.reservation_id, order.id)


def test_after_the_release_every_line_of_the_order_is_free_again(database):
    for sku_id in (1001, 1002, 1003):
        a_sku(database, sku_id)
    order = an_order({1001: 1, 1002: 2, 1003: 3})
    cancel(42, order.order_no)
    assert_at_rest(database)
    assert [database.stock(sku_id) for sku_id in (1001, 1002, 1003)] == [(10, 0)] * 3


def test_a_waiting_order_of_a_hot_sku_is_closed_with_a_tombstone_to_come(database):
    order_id = insert_row(database, "oms_order", status="RESERVING", expires_at=None)
    assert cancel(42, "202611300100000000420001") == Closed(order_id, repeated=False)
    assert staged(database) == ["release"]


def test_an_order_that_names_no_hold_is_closed_without_a_release(database):
    order_id = insert_row(database, "oms_order", status="RESERVING", reservation_id=None)
    assert cancel(42, "202611300100000000420001") == Closed(order_id, repeated=False)
    assert staged(database) == []


def test_a_repeat_is_answered_alike_and_changes_nothing(database, order):
    cancel(42, order.order_no)
    before = database.dump(["oms_order", "oms_order_event", "outbox"])
    for _ in range(3):
        assert cancel(42, order.order_no) == Closed(order.id, repeated=True)
    assert database.dump(["oms_order", "oms_order_event", "outbox"]) == before


def test_an_order_that_closed_for_another_reason_keeps_that_reason(database, order):
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'CLOSED', close_reason = 'EXPIRED'"
    )
    assert cancel(42, order.order_no) == Closed(order.id, repeated=True)
    assert database.value("SELECT close_reason FROM oms_order") == "EXPIRED"


@pytest.mark.parametrize("status", ["PAID", "SHIPPED", "FINISHED", "REFUNDING", "REFUNDED"])
def test_a_paid_order_is_not_cancellable_and_keeps_its_hold(database, order, status):
    lead_to(database, status)
    before = database.dump(["oms_order", "oms_order_event", "outbox", "ims_reservation"])
    assert cancel(42, order.order_no) == NotCancellable(OrderStatus(status))
    assert database.dump(["oms_order", "oms_order_event", "outbox", "ims_reservation"]) == before
    assert database.stock(1001) == (10, 2)


@pytest.mark.parametrize("status", ["PAID", "SHIPPED", "FINISHED", "REFUNDING", "REFUNDED"])
def test_the_statements_themselves_spare_a_paid_order(database, order, status):
    """Whoever calls them next may look at the status less carefully."""
    lead_to(database, status)
    before = database.dump(["oms_order"])
    closed = in_transaction(lambda tx: store.close_order(tx, order.id, CloseReason.EXPIRED))
    asked = in_transaction(lambda tx: unpaid_store.request_cancel(tx, order.id))
    assert (closed, asked) == (False, False)
    assert database.dump(["oms_order"]) == before


def test_a_cancel_after_the_payment_finds_it_and_the_sale_goes_on(database, order):
    accept(a_notice(database))
    assert cancel(42, order.order_no) == NotCancellable(OrderStatus.PAID)
    assert staged(database) == ["confirm"]
    assert_at_rest(database)
    assert database.stock(1001) == (8, 0)


def test_a_cancel_after_a_full_refund_is_refused_by_name(database, order):
    accept(a_notice(database))
    accept(a_notice(database, NoticeKind.REFUND))
    assert cancel(42, order.order_no) == NotCancellable(OrderStatus.REFUNDED)


@pytest.mark.parametrize("state", ["OPEN", "CLOSING"])
def test_with_a_payment_page_that_may_be_open_the_wish_is_kept(database, order, state):
    """The channel does not answer here; what it may say is test_cancel_asks.py's."""
    an_attempt(database, order, state)
    assert cancel(42, order.order_no) == CancelRequested(order.id)
    row = database.one("SELECT status, close_reason, cancel_requested_at FROM oms_order")
    assert (row["status"], row["close_reason"]) == ("PAYMENT_PROCESSING", None)
    assert row["cancel_requested_at"] is not None
    assert staged(database) == []
    assert database.stock(1001) == (10, 2)


def test_a_repeated_wish_keeps_the_time_of_the_first(database, order):
    an_attempt(database, order, "OPEN")
    cancel(42, order.order_no)
    database.execute("UPDATE oms_order SET cancel_requested_at = '2026-11-30 12:00:00.000'")
    assert cancel(42, order.order_no) == CancelRequested(order.id)
    first = database.value("SELECT CAST(cancel_requested_at AS CHAR) FROM oms_order")
    assert first == "2026-11-30 12:00:00.000"


@pytest.mark.parametrize("state", ["CLOSED", "PAID"])
def test_attempts_that_are_over_do_not_hold_a_cancel_back(database, order, state):
    """PAID with an unpaid order: a wrong amount used the page up; that money goes back."""
    an_attempt(database, order, state)
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)


def test_one_open_attempt_among_closed_ones_is_enough_to_wait(database, order):
    an_attempt(database, order, "CLOSED")
    an_attempt(database, order, "OPEN", n=2)
    assert cancel(42, order.order_no) == CancelRequested(order.id)


def test_an_attempt_of_another_order_does_not_matter(database, order):
    an_attempt(database, an_order(member_id=7), "OPEN")
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)


@pytest.mark.parametrize("member_id", [7, 43])
def test_another_members_order_is_not_found_and_not_touched(database, order, member_id):
    assert cancel(member_id, order.order_no) == OrderNotFound()
    assert database.value("SELECT status FROM oms_order") == "PENDING_PAYMENT"


def test_an_order_that_does_not_exist_is_not_found(database):
    assert cancel(42, "202611300100000000420001") == OrderNotFound()


def test_an_order_number_is_matched_whole(database, order):
    assert cancel(42, order.order_no[:-1]) == OrderNotFound()


def test_cancelling_one_order_leaves_the_members_other_order_alone(database, order):
    other = an_order({1001: 3})
    cancel(42, order.order_no)
    assert_at_rest(database)
    assert database.stock(1001) == (10, 3)
    status = database.value("SELECT status FROM oms_order WHERE id = %s", (other.id,))
    assert status == "PENDING_PAYMENT"
