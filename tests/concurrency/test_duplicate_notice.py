"""Goal: money that arrives is recorded once and pays one order once, however its notices come.

Method: deliveries of notices start at a barrier on connections of their own, against each other and
against members who look at the order. Every 1213 of the engine is counted, retried or not.
"""

from collections import Counter
from typing import Final

from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed
from lockstep.orders.model import Order, OrderStatus
from lockstep.orders.query import find, page, timeline
from lockstep.payments.accept import accept
from lockstep.payments.model import PaymentState, Result
from lockstep.payments.query import payments_of
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest
from tests.support.threads import Deadlocks, crowd, in_rounds

DELIVERIES: Final = 8


def test_the_same_notice_from_8_connections_at_once_pays_once(database, monkeypatch):
    a_sku(database, stock=100)
    deadlocks = Deadlocks(monkeypatch)
    notices = [a_trade_notice(an_order()) for _ in range(15)]
    for results in in_rounds(notices, *[accept] * DELIVERIES):
        assert Counter(results) == {Result.APPLIED: 1, Result.REPLAYED: DELIVERIES - 1}
    assert deadlocks.seen == 0
    assert database.count("oms_notice") == len(notices)
    assert database.count("oms_order_payment") == len(notices)
    assert database.count("oms_order_payment", state="APPLIED") == len(notices)
    assert database.count("oms_order_event", to_status="PAID") == len(notices)
    assert_at_rest(database)


def test_of_three_trades_of_one_order_at_once_one_pays_and_the_others_go_back(database):
    a_sku(database, stock=100)
    orders = [an_order() for _ in range(15)]
    for results in in_rounds(orders, *[lambda order: accept(a_trade_notice(order))] * 3):
        assert Counter(results) == {Result.APPLIED: 1, Result.REFUND_PENDING: 2}
    assert database.count("oms_order_payment", state="APPLIED", reason=None) == 15
    second = database.count("oms_order_payment", state="REFUND_PENDING", reason="SECOND_PAYMENT")
    assert second == 30
    assert_at_rest(database)


def test_a_trade_of_no_order_from_8_connections_at_once_is_one_payment(database):
    trades = [f"T{number}" for number in range(15)]
    for results in in_rounds(
        trades, *[lambda trade: accept(a_trade_notice(trade_no=trade))] * DELIVERIES
    ):
        assert results == [Result.UNMATCHED] * DELIVERIES
    assert database.count("oms_order_payment") == len(trades)
    assert database.count("oms_order_payment", state="UNMATCHED", order_id=None) == len(trades)
    assert database.count("oms_notice", state="UNMATCHED") == len(trades) * DELIVERIES
    assert_at_rest(database)


def test_a_stored_notice_that_fits_after_all_is_decided_once(database):
    a_sku(database, stock=100)
    orders = [an_order() for _ in range(15)]
    notices = [a_trade_notice(order, out_trade_no=f"late{order.id}") for order in orders]
    assert {accept(notice) for notice in notices} == {Result.UNMATCHED}
    database.execute(
        "INSERT INTO oms_payment_attempt "
        "(order_id, out_trade_no, product, amount, state, expires_at) "
        "SELECT id, CONCAT('late', id), 'page', pay_amount, 'OPEN', expires_at FROM oms_order"
    )
    for results in in_rounds(notices, *[accept] * DELIVERIES):
        assert Counter(results) == {Result.APPLIED: 1, Result.REPLAYED: DELIVERIES - 1}
    assert database.count("oms_order_payment", state="APPLIED") == 15
    assert database.count("oms_notice", state="DONE") == 15
    assert_at_rest(database)


def test_a_paid_order_confirmed_while_its_notice_is_repeated_loses_nothing(database):
    a_sku(database, stock=100)
    paid = [(order, a_trade_notice(order)) for order in (an_order() for _ in range(20))]
    assert {accept(notice) for _, notice in paid} == {Result.APPLIED}
    for results in in_rounds(
        paid,
        lambda each: accept(each[1]),
        lambda each: accept(a_trade_notice(each[0], trade_no=each[1].trade_no)),
        lambda each: confirm(str(each[0].reservation_id), each[0].id),
    ):
        assert results == [Result.REPLAYED, Result.REPLAYED, Confirmed(repeated=False)]
    assert_at_rest(database)
    assert database.stock(1001) == (80, 0)


def test_an_order_can_be_read_at_any_moment_while_it_is_paid(database):
    a_sku(database, stock=1000)
    orders = crowd(4, range(1, 501), lambda member: an_order(member_id=member))

    def look(order: Order) -> tuple[OrderStatus, list[PaymentState]]:
        [listed] = page(order.member_id, None, None, limit=10).orders
        found = find(order.member_id, order.order_no)
        assert found is not None
        assert found.id == listed.id == order.id
        assert timeline(order.id)[0].to_status is OrderStatus.PENDING_PAYMENT
        states = [payment.state for payment in payments_of(order.id)]
        return found.status, states

    unpaid, paid = OrderStatus.PENDING_PAYMENT, OrderStatus.PAID
    for result, seen in in_rounds(orders, lambda order: accept(a_trade_notice(order)), look):
        assert result is Result.APPLIED
        assert seen in (
            (unpaid, []),
            (unpaid, [PaymentState.APPLIED]),  # paid between the two looks
            (paid, [PaymentState.APPLIED]),
        )
    assert [look(order) for order in orders] == [(paid, [PaymentState.APPLIED])] * 500
    assert_at_rest(database)
