"""Goal: while the channel holds its answer back, no transaction is open and no row is locked.

Method: the channel waits for the test, which meanwhile looks into the engine's own tables of
transactions and locks, and then does what other members and the channel would do.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from lockstep.alipay.answers import Done
from lockstep.db import connection
from lockstep.orders.model import Order, Placed
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.payments.refund import try_refund
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, place_command
from tests.support.channel import ScriptedChannel, cancel, start, sweep, waiting
from tests.support.database import Database
from tests.support.engine import held
from tests.support.local_alipay import LocalAlipay, local_alipay
from tests.support.refund_channel import the_refund
from tests.support.threads import PATIENCE_SECONDS


class SlowChannel(ScriptedChannel):
    """Answers once it is let go."""

    def __init__(self) -> None:
        super().__init__(
            query=waiting, close=Done(None), precreate=Done("q"), while_asked=self._hold_back
        )
        self.asked, self.let_go = threading.Event(), threading.Event()

    def _hold_back(self) -> None:
        self.asked.set()
        assert self.let_go.wait(PATIENCE_SECONDS)


def scan(order: Order, channel: ScriptedChannel) -> object:
    return start(order.order_no, "qr", channel)


def give_up(order: Order, channel: ScriptedChannel) -> object:
    return cancel(order.member_id, order.order_no, channel)


def expire(_: Order, channel: ScriptedChannel) -> object:
    return sweep(lambda: True, channel)


def alone[T](work: Callable[[], T]) -> T:
    """In a thread that leaves no session behind."""
    try:
        return work()
    finally:
        connection.discard()


@contextmanager
def in_the_middle_of(
    work: Callable[[Order, ScriptedChannel], object], order: Order
) -> Iterator[Future[object]]:
    """``work`` in a thread of its own, while the channel does not answer."""
    channel = SlowChannel()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(alone, lambda: work(order, channel))
        try:
            assert channel.asked.wait(PATIENCE_SECONDS)
            yield future
        finally:
            channel.let_go.set()


@pytest.fixture
def order(database: Database) -> Order:
    """With a page whose time is over."""
    a_sku(database)
    order = an_order()
    start(order.order_no)
    return order


def time_is_over(database: Database) -> None:
    for table in ("oms_order", "oms_payment_attempt"):
        database.execute(f"UPDATE {table} SET expires_at = NOW(3) - INTERVAL 1 MINUTE")  # noqa: S608
    database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3)")


@pytest.mark.parametrize("work", [scan, give_up, expire])
def test_no_transaction_is_open_and_no_row_locked_while_the_channel_is_asked(database, order, work):
    if work is expire:
        time_is_over(database)
    with in_the_middle_of(work, order) as future:
        assert held(database) == (0, 0)
        assert not future.done()
    future.result(PATIENCE_SECONDS)


@contextmanager
def held_back_by(alipay: LocalAlipay, method: str, work: Callable[[], object]) -> Iterator[None]:
    """``work`` in a thread of its own, while the local Alipay keeps its answer to ``method``."""
    alipay.faults.add(method, "hold")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(alone, work)
        try:
            assert alipay.faults.wait_until_held(PATIENCE_SECONDS)
            yield
            assert not future.done()
        finally:
            alipay.service.release()
        future.result(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("work", "method"),
    [
        (scan, "alipay.trade.precreate"),
        (give_up, "alipay.trade.query"),
        (give_up, "alipay.trade.close"),
        (expire, "alipay.trade.query"),
    ],
)
def test_nothing_is_held_while_the_local_alipay_is_asked_over_http(database, order, work, method):
    if work is expire:
        time_is_over(database)
    with (
        local_alipay() as alipay,
        held_back_by(alipay, method, lambda: work(order, alipay.gateway)),
    ):
        assert held(database) == (0, 0)


def test_nothing_is_held_while_the_local_alipay_gives_money_back(database, order):
    accept(a_trade_notice(order))  # what comes now is a second payment
    with local_alipay() as alipay:
        trade = alipay.pay(order.order_no, "9.90")
        accept(a_trade_notice(order, trade_no=trade.trade_no))
        refund_id = the_refund(database)
        work = partial(try_refund, refund_id, alipay.gateway)
        with held_back_by(alipay, "alipay.trade.refund", work):
            assert held(database) == (0, 0)
    assert database.count("oms_refund", state="DONE") == 1


def test_the_engine_would_show_a_transaction_and_its_locks(database, order):
    with database.another_session() as somebody, somebody.cursor() as cursor:
        cursor.execute("SELECT * FROM oms_order WHERE id = %s FOR UPDATE", (order.id,))
        open_transactions, locks = held(database)
        assert (open_transactions, locks > 0) == (1, True)


@pytest.mark.parametrize("work", [give_up, expire])
def test_others_buy_and_the_order_itself_is_paid_meanwhile(database, order, work):
    if work is expire:
        time_is_over(database)
    with in_the_middle_of(work, order):
        assert isinstance(place(place_command(member_id=7)), Placed)
        assert accept(a_trade_notice(order)) is Result.APPLIED
    assert database.value("SELECT status FROM oms_order WHERE id = %s", (order.id,)) == "PAID"
    assert_at_rest(database)
    assert database.stock(1001) == (9, 1)
