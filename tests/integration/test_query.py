"""What members see: the last committed state, at once, also while somebody is writing."""

import time
from decimal import Decimal

import pytest

from lockstep.errors import InvariantBroken
from lockstep.inventory import query as stock_query
from lockstep.inventory.model import ReservationState
from lockstep.orders import query
from lockstep.orders.model import ORDER_TRANSITIONS, Order, OrderStatus, RequestState
from lockstep.payments.accept import accept
from lockstep.payments.model import PaymentState
from lockstep.payments.query import payments_of
from tests.support.builders import a_sku, an_order
from tests.support.channel import cancel
from tests.support.flows import a_notice
from tests.support.raw_rows import insert_row


@pytest.fixture
def sku(database):
    a_sku(database, 1001, stock=1000)
    a_sku(database, 1002, stock=1000, price="5.05")


def ids(orders: list[Order]) -> list[int]:
    return [order.id for order in orders]


def test_an_order_is_seen_with_its_lines_and_the_state_of_its_hold(database, sku):
    placed = an_order({1001: 2, 1002: 1})
    order = query.find(42, placed.order_no)
    assert order == placed
    assert order is not None
    assert order.reservation_state is ReservationState.RESERVED
    assert [(line.sku_id, line.quantity, line.amount) for line in order.lines] == [
        (1001, 2, Decimal("19.80")),
        (1002, 1, Decimal("5.05")),
    ]
    assert order.expires_at is not None
    assert order.expires_at.utcoffset() is not None


def test_another_members_order_is_not_seen(database, sku):
    placed = an_order(member_id=1)
    assert query.find(2, placed.order_no) is None
    assert query.page(2, None, None, 20) == query.Page([], None)


def test_what_was_ordered_is_told_as_it_was_then(database, sku):
    placed = an_order({1001: 1})
    database.execute("UPDATE ims_sku_stock SET price = 99, title = 'renamed', on_sale = 0")
    [line] = query.reload(placed.id).lines
    assert (line.title, line.price) == ("SKU 1001", Decimal("9.90"))


def test_an_order_that_must_exist_and_does_not_is_a_broken_invariant(database):
    with pytest.raises(InvariantBroken, match="order 7 does not exist"):
        query.reload(7)


def test_the_timeline_tells_every_step_oldest_first(database, sku):
    order = an_order()
    accept(a_notice(database))
    told = [(t.from_status, t.to_status, t.actor, t.reason) for t in query.timeline(order.id)]
    assert told == [
        (OrderStatus.NONE, OrderStatus.PENDING_PAYMENT, "member:42", "PLACED"),
        (OrderStatus.PENDING_PAYMENT, OrderStatus.PAID, "alipay", "PAID"),
    ]
    times = [t.at for t in query.timeline(order.id)]
    assert times == sorted(times)
    assert times[0].utcoffset() is not None


def test_a_late_payment_is_told_beside_the_close(database, sku):
    order = an_order()
    cancel(42, order.order_no)
    accept(a_notice(database))
    [payment] = payments_of(order.id)
    assert (payment.state, payment.amount) == (PaymentState.REFUND_PENDING, Decimal("9.90"))
    assert [t.to_status for t in query.timeline(order.id)][-1] is OrderStatus.CLOSED


def test_an_order_that_was_paid_stays_paid_whatever_comes_after(database, sku):
    order = an_order()
    assert query.paid_of([order.id]) == set()
    accept(a_notice(database))
    other = an_order(member_id=7)
    asked = [order.id, other.id, other.id + 1]
    assert query.paid_of(asked) == {order.id}
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'SHIPPED' WHERE id = %s", (order.id,)
    )
    assert query.paid_of(asked) == {order.id}


def test_pages_follow_each_other_newest_first_without_a_gap_or_a_repeat(database, sku):
    placed = [an_order().id for _ in range(7)]
    seen: list[int] = []
    before: int | None = None
    for _ in range(4):
        page = query.page(42, None, before, 2)
        seen += ids(page.orders)
        before = page.next_before
    assert seen == placed[::-1]
    assert before is None


def test_a_page_that_is_just_full_is_the_last(database, sku):
    for _ in range(2):
        an_order()
    assert query.page(42, None, None, 2).next_before is None
    assert query.page(42, None, None, 1).next_before is not None


def test_pages_stay_stable_while_new_orders_arrive(database, sku):
    placed = [an_order().id for _ in range(4)]
    first = query.page(42, None, None, 2)
    for _ in range(3):
        an_order()
    second = query.page(42, None, first.next_before, 2)
    assert ids(first.orders) + ids(second.orders) == placed[::-1]
    assert second.next_before is None


def test_a_page_of_one_status_holds_only_that(database, sku):
    orders = [an_order() for _ in range(4)]
    for order in orders[:2]:
        cancel(42, order.order_no)
    closed = query.page(42, OrderStatus.CLOSED, None, 20)
    assert ids(closed.orders) == [orders[1].id, orders[0].id]
    first = query.page(42, OrderStatus.PENDING_PAYMENT, None, 1)
    rest = query.page(42, OrderStatus.PENDING_PAYMENT, first.next_before, 1)
    assert ids(first.orders + rest.orders) == [orders[3].id, orders[2].id]
    assert query.page(42, OrderStatus.PAID, None, 20) == query.Page([], None)


def test_every_order_of_a_page_has_its_own_lines(database, sku):
    one, other = an_order({1001: 1}), an_order({1002: 2, 1001: 3})
    lines = {
        o.id: [(line.sku_id, line.quantity) for line in o.lines]
        for o in query.page(42, None, None, 20).orders
    }
    assert lines == {one.id: [(1001, 1)], other.id: [(1001, 3), (1002, 2)]}


@pytest.mark.parametrize("status", list(OrderStatus)[1:])
def test_an_order_in_any_status_can_be_read(database, status):
    before = next(before for before, afters in ORDER_TRANSITIONS.items() if status in afters)
    reason = "EXPIRED" if status is OrderStatus.CLOSED else None
    order_id = insert_row(
        database, "oms_order", status=status, prev_status=before, close_reason=reason
    )
    assert query.reload(order_id).status is status


def test_a_read_during_a_write_sees_the_last_committed_state_and_does_not_wait(database, sku):
    order = an_order()
    with database.another_session() as writer, writer.cursor() as cursor:
        cursor.execute(
            "UPDATE oms_order SET prev_status = status, status = 'PAID', paid_amount = pay_amount"
        )
        cursor.execute("UPDATE ims_sku_stock SET stock = 0, lock_stock = 0")
        found = query.find(42, order.order_no)
        assert found is not None
        assert found.status is OrderStatus.PENDING_PAYMENT
        assert ids(query.page(42, None, None, 20).orders) == [order.id]
        assert query.timeline(order.id)[-1].to_status is OrderStatus.PENDING_PAYMENT
        sku = stock_query.find(1001)
        assert sku is not None
        assert (sku.stock, sku.available) == (1000, 999)
        writer.commit()
    found = query.find(42, order.order_no)
    assert found is not None
    assert found.status is OrderStatus.PAID


def test_a_probe_says_unknown_processing_or_success(database, sku):
    assert query.probe(42, "k") == (RequestState.UNKNOWN, None)
    with database.another_session() as writer, writer.cursor() as cursor:
        cursor.execute(
            "INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state) "
            "VALUES (42, 'k', REPEAT('0', 64), 'PROCESSING')"
        )
        started = time.monotonic()
        assert query.probe(42, "k") == (RequestState.PROCESSING, None)
        assert time.monotonic() - started < 2  # a lock wait would take three seconds
    order = an_order(key="k")
    assert query.probe(42, "k") == (RequestState.SUCCESS, order)
    assert query.probe(7, "k") == (RequestState.UNKNOWN, None)
    assert query.probe(42, "K") == (RequestState.UNKNOWN, None)


def test_a_request_committed_without_its_order_is_a_broken_invariant(database):
    insert_row(database, "oms_order_request", state="PROCESSING", order_id=None)
    with pytest.raises(InvariantBroken, match="without its order"):
        query.probe(42, "k")


def test_a_sku_is_seen_with_what_is_available(database, sku):
    an_order({1001: 3})
    found = stock_query.find(1001)
    assert found is not None
    assert (found.stock, found.lock_stock, found.available) == (1000, 3, 997)
    assert (found.hot, found.on_sale) == (False, True)
    assert stock_query.find(9999) is None
