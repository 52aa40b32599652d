"""Goal: starts, cancels, sweeps and payments that meet while the channel is asked decide an order
once, and the channel's books and ours tell one story.

Method: two threads, each with a connection of its own, meet at a barrier before every order. The
channel keeps books under a lock of its own: a trade that it closed cannot be paid, and one that was
paid cannot be closed. Nothing sleeps.
"""

import threading
from collections.abc import Callable
from typing import Final

import pytest

from lockstep.alipay.answers import Done, Outcome, Trade
from lockstep.orders.model import CancelOutcome, Closed, NotCancellable, Order, OrderStatus
from lockstep.orders.query import find
from lockstep.payments.accept import accept
from lockstep.payments.ask import Concluded, claim, conclude
from lockstep.payments.conversation import converse
from lockstep.payments.model import Result, Started, StartOutcome
from lockstep.upkeep import store
from lockstep.upkeep.sweep import Swept
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest
from tests.support.channel import (
    NOT_EXIST,
    NOT_WAITING,
    ScriptedChannel,
    cancel,
    closed,
    paid,
    start,
    sweep,
    waiting,
)
from tests.support.database import Database
from tests.support.threads import Meeting, at_once, crowd, in_rounds

ORDERS: Final = 100
# Some more round trips than it takes to begin a cancel or an expiry.
LOOKS: Final = 12
OVER: Final = (
    "UPDATE oms_payment_attempt SET expires_at = NOW(3) - INTERVAL 1 MINUTE, next_ask_at = NOW(3)",
    "UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 MINUTE",
)
BOTH_PAID_AND_CLOSED: Final = """
SELECT COUNT(*)
FROM oms_order
WHERE paid_at IS NOT NULL AND close_reason IS NOT NULL
"""


class Books(ScriptedChannel):
    """A channel that remembers what was paid and what was closed."""

    def __init__(self) -> None:
        super().__init__(query=self._find, close=self._end)
        self.paid: set[str] = set()
        self.closed: set[str] = set()
        self._turning = threading.Lock()

    def pay(self, order: Order) -> Result | None:
        """As its member would: None if the channel takes no money for it any more. Every other
        member looks at the order for a while, so that both sides win some."""
        for _ in range(order.id % 2 * LOOKS):
            find(order.member_id, order.order_no)
        with self._turning:
            if order.order_no in self.closed:
                return None
            self.paid.add(order.order_no)
        return accept(a_trade_notice(order, trade_no=f"trade-{order.order_no}"))

    def _find(self, out_trade_no: str) -> Outcome[Trade]:
        with self._turning:
            said = {True: paid, False: waiting}[out_trade_no in self.paid]
            return closed(out_trade_no) if out_trade_no in self.closed else said(out_trade_no)

    def _end(self, out_trade_no: str) -> Outcome[None]:
        with self._turning:
            if out_trade_no in self.paid:
                return NOT_WAITING
            self.closed.add(out_trade_no)
            return Done(None)


def some_orders(database: Database, how_many: int = ORDERS) -> list[Order]:
    a_sku(database, stock=how_many)
    return crowd(4, range(1, how_many + 1), lambda member: an_order(member_id=member))


def with_pages(orders: list[Order]) -> list[Order]:
    for order in orders:
        assert isinstance(begin(order), Started)
    return orders


def begin(order: Order) -> StartOutcome:
    return start(order.order_no, member_id=order.member_id)


def give_up(channel: ScriptedChannel) -> Callable[[Order], CancelOutcome]:
    return lambda order: cancel(order.member_id, order.order_no, channel)


def ask_about(database: Database, channel: ScriptedChannel) -> Callable[[Order], Concluded | None]:
    """Claim, converse and conclude one order's page; None if another was first."""
    rows = database.rows("SELECT order_id, id FROM oms_payment_attempt")
    pages = {row["order_id"]: row["id"] for row in rows}

    def run(order: Order) -> Concluded | None:
        question = claim(pages[order.id], order.id, "sweep")
        if isinstance(question, Concluded):
            return None
        return conclude(question, converse(channel, question, within_seconds=8), "sweep")

    return run


def assert_books_agree(database: Database, books: Books) -> None:
    rows = database.rows("SELECT order_no, status FROM oms_order")
    assert {row["order_no"] for row in rows if row["status"] == "PAID"} == books.paid
    assert {row["order_no"] for row in rows if row["status"] == "CLOSED"} == books.closed
    assert database.count("oms_order_payment") == len(books.paid)
    assert database.count("oms_order_payment", state="APPLIED") == len(books.paid)
    assert database.value(BOTH_PAID_AND_CLOSED) == 0
    assert database.value("SELECT COUNT(next_ask_at) FROM oms_payment_attempt") == 0
    assert_at_rest(database)


# --- start ---------------------------------------------------------------------------------------


# --- cancel --------------------------------------------------------------------------------------


def test_a_cancel_and_a_payment_at_once_exclude_each_other_in_both_books(database):
    orders = with_pages(some_orders(database))
    books = Books()
    pairs = in_rounds(orders, books.pay, give_up(books))
    for order, (result, outcome) in zip(orders, pairs, strict=True):
        if result is None:
            assert outcome == Closed(order.id, repeated=False)
        else:
            assert result in {Result.APPLIED, Result.REPLAYED}
            assert outcome == NotCancellable(OrderStatus.PAID)
    assert books.paid
    assert books.closed
    assert_books_agree(database, books)


@pytest.mark.parametrize("close", [NOT_WAITING, Done(None), NOT_EXIST])
def test_a_notice_that_comes_while_the_channel_is_asked_wins_whatever_the_channel_said(
    database, close
):
    """Also where its answers contradict the notice: recorded money is never un-recorded."""
    [order] = with_pages(some_orders(database, 1))
    results = []

    def pay_meanwhile() -> None:
        results.append(accept(a_trade_notice(order, trade_no="T1", notify_id="N1")))

    channel = ScriptedChannel(query=waiting, close=close, while_asked=pay_meanwhile)
    assert cancel(order.member_id, order.order_no, channel) == NotCancellable(OrderStatus.PAID)
    assert results[0] is Result.APPLIED
    assert set(results[1:]) <= {Result.REPLAYED}
    attempt = database.one("SELECT state, next_ask_at FROM oms_payment_attempt")
    assert tuple(attempt.values()) == ("PAID", None)
    assert_at_rest(database)


# --- expiry --------------------------------------------------------------------------------------


def test_an_expiry_and_a_payment_at_once_exclude_each_other_in_both_books(database):
    orders = with_pages(some_orders(database))
    for statement in OVER:
        database.execute(statement)
    books = Books()
    for result, concluded in in_rounds(orders, books.pay, ask_about(database, books)):
        if result is None:
            assert concluded == Concluded(OrderStatus.CLOSED, has_closed=True)
        else:
            assert result in {Result.APPLIED, Result.REPLAYED}
            assert concluded in (None, Concluded(OrderStatus.PAID, has_closed=False))
    assert books.paid
    assert books.closed
    assert_books_agree(database, books)


def test_of_orders_paid_in_the_midst_of_a_sweep_none_is_closed(database):
    """Each tenth is paid while the channel is asked about some other."""
    orders = with_pages(some_orders(database, 40))
    for statement in OVER:
        database.execute(statement)
    books, late = Books(), iter(orders[::10])
    lock = threading.Lock()

    def one_more_is_paid() -> None:
        with lock:
            order = next(late, None)
            if order is not None and order.order_no not in books.closed:
                books.paid.add(order.order_no)

    books._while_asked = one_more_is_paid
    swept = sweep(lambda: True, books)
    assert (swept.asked, swept.failed) == (40, [])
    assert swept.orders_closed == 40 - len(books.paid)
    assert_books_agree(database, books)


def test_a_notice_and_a_poll_at_once_record_one_payment(database):
    orders = with_pages(some_orders(database))
    database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3)")
    books = Books()
    for order in orders:
        books.paid.add(order.order_no)
    for result, _ in in_rounds(orders, books.pay, ask_about(database, books)):
        assert result in {Result.APPLIED, Result.REPLAYED}
    assert database.count("oms_order_event", to_status="PAID") == ORDERS
    assert_books_agree(database, books)


def test_two_sweeps_at_once_never_ask_about_one_page_twice(database, monkeypatch):
    """Both have the same page of attempts before either claims one."""
    with_pages(some_orders(database, 60))
    for statement in OVER:
        database.execute(statement)
    monkeypatch.setattr(store, "read_due_attempts", Meeting().after(store.read_due_attempts))
    books = Books()

    def sweep_all() -> Swept:
        return sweep(lambda: True, books)

    one, two = at_once(sweep_all, sweep_all)
    assert one.asked + two.asked == 60
    assert one.orders_closed + two.orders_closed == 60
    assert (one.failed, two.failed) == ([], [])
    assert len(books.calls) == len(set(books.calls)) == 120
    assert_books_agree(database, books)
