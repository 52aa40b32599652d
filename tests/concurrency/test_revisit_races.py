"""Goal: who looks at a stored notice again, who delivers one, and who attaches money by hand never
double or lose anything, however they meet.

Method: two sides at a barrier, one order after the other (in_rounds), and two sweeps over all of
it; or the other side in the middle of the first one's transaction (Meanwhile).
"""

from functools import partial

import pytest

from lockstep.alipay.answers import Done, Outcome, Trade, TradeStatus
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.errors import TryAgain
from lockstep.orders import store as orders
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from lockstep.payments.attach import attach
from lockstep.payments.model import Attached, PaymentNotWaiting, PaymentState, Result
from lockstep.payments.revisit import claim_notice
from lockstep.upkeep.sweep import Swept, sweep
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest
from tests.support.channel import nobody
from tests.support.database import Database
from tests.support.threads import Meanwhile, at_once, in_rounds

ORDERS = 40


class Channel:
    """Knows every trade it is told of as paid."""

    def __init__(self) -> None:
        self.trades: dict[str, Trade] = {}

    def knows(self, notice: TradeNotice) -> None:
        self.trades[notice.trade_no] = Trade(
            trade_no=notice.trade_no,
            out_trade_no=notice.out_trade_no,
            status=TradeStatus.TRADE_SUCCESS,
            total_amount=notice.total_amount,
            paid_at=notice.gmt_payment,
            is_settled=True,
        )

    def query(self, *, trade_no: str) -> Outcome[Trade]:
        return Done(self.trades[trade_no])


def paid_and_finished(order: Order) -> tuple[TradeNotice, TradeNotice]:
    paid = a_trade_notice(order)
    finished = a_trade_notice(order, kind=NoticeKind.FINISHED, trade_no=paid.trade_no)
    return paid, finished


def some_told_by_their_end(database: Database, channel: Channel) -> list[TradeNotice]:
    """Orders of which only the end of the refund window was told; the payments' own notices."""
    a_sku(database, stock=ORDERS)
    told = [paid_and_finished(an_order()) for _ in range(ORDERS)]
    for paid, finished in told:
        accept(finished)
        channel.knows(paid)
    return [paid for paid, _ in told]


def look_twice(channel: Channel) -> list[Swept]:
    look = partial(sweep, lambda: True, lambda: channel)  # type: ignore[arg-type, return-value]
    return at_once(look, look)


def all_are_paid_once(database: Database) -> None:
    assert database.count("oms_order", status="PAID") == ORDERS
    assert database.count("oms_order_payment", state="APPLIED") == ORDERS
    assert database.count("oms_order_event", to_status="PAID") == ORDERS
    assert database.count("oms_notice", state="DONE") == database.count("oms_notice")
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)


def test_two_sweeps_at_once_ask_about_each_notice_once(database):
    channel = Channel()
    some_told_by_their_end(database, channel)
    swept = look_twice(channel)
    assert [one.failed for one in swept] == [[], []]
    assert sum(one.notices_decided for one in swept) == ORDERS
    all_are_paid_once(database)


def test_a_sweep_and_the_payments_own_notices_at_once(database):
    channel = Channel()
    notices = some_told_by_their_end(database, channel)

    def deliver() -> list[str]:
        return [accept(notice).value for notice in notices]

    def look() -> list[str]:
        found = sweep(lambda: True, lambda: channel)  # type: ignore[arg-type, return-value]
        return found.failed

    results, failed = at_once(deliver, look)
    assert set(results) <= {"APPLIED", "REPLAYED"}
    # One that met the other side for too long comes again, and finds nothing to do.
    assert all(one.endswith(": TryAgain") for one in failed)
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3) WHERE next_ask_at IS NOT NULL")
    look_twice(channel)
    all_are_paid_once(database)


def test_a_notice_delivered_and_looked_at_at_once_is_decided_once(database):
    a_sku(database, stock=ORDERS)
    notices = [a_trade_notice(an_order()) for _ in range(ORDERS)]
    database.execute("UPDATE oms_order SET order_no = CONCAT('X', id)")
    assert {accept(notice) for notice in notices} == {Result.UNMATCHED}
    database.execute("UPDATE oms_order SET order_no = SUBSTRING_INDEX(reservation_id, '-', 1)")
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3)")
    for outcomes in in_rounds(notices, accept, lambda _: sweep(lambda: True, nobody).failed):
        assert outcomes[0] in {Result.APPLIED, Result.REPLAYED}
        assert outcomes[1] == []
    all_are_paid_once(database)


def test_two_who_attach_one_payment_to_two_orders_do_it_once(database, monkeypatch):
    a_sku(database)
    first, second = an_order(), an_order()
    money = a_trade_notice(out_trade_no="SHOP-7")
    accept(money)

    def give(order: Order, who: str) -> object:
        return attach(money.trade_no, order.order_no, f"operator:{who}", "it is his")

    other = Meanwhile(database, lambda: give(second, "bob"))
    monkeypatch.setattr(orders, "lock_order_of_trade", other.after(orders.lock_order_of_trade))
    assert give(first, "alice") == Attached(PaymentState.APPLIED, repeated=False)
    assert other.outcome() == PaymentNotWaiting(PaymentState.APPLIED)
    assert database.count("oms_order", status="PAID") == 1
    assert_at_rest(database)


def test_money_attached_while_its_notice_comes_again_is_settled_once(database):
    a_sku(database, stock=ORDERS)
    told = []
    for _ in range(ORDERS):
        order = an_order()
        notice = a_trade_notice(out_trade_no=f"SHOP-{order.id}")
        accept(notice)
        told.append((order, notice))

    def give(one: tuple[Order, TradeNotice]) -> object:
        order, notice = one
        return attach(notice.trade_no, order.order_no, "operator:alice", "it is his")

    def deliver(one: tuple[Order, TradeNotice]) -> object:
        return accept(one[1])

    for outcomes in in_rounds(told, give, deliver):
        assert outcomes[0] == Attached(PaymentState.APPLIED, repeated=False)
        assert outcomes[1] in {Result.UNMATCHED, Result.REPLAYED, Result.CONFLICT}
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3) WHERE next_ask_at IS NOT NULL")
    assert sweep(lambda: True, nobody).failed == []
    all_are_paid_once(database)


def test_a_notice_that_somebody_holds_is_left_for_the_next_look(database):
    accept(a_trade_notice())
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3)")
    notice_id = database.value("SELECT id FROM oms_notice")
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute("SELECT id FROM oms_notice FOR UPDATE")
        with pytest.raises(TryAgain):
            claim_notice(notice_id)
    assert claim_notice(notice_id) is not None
