"""Goal: whoever else is at work, a refund happens once, and never to what is shipped meanwhile.

Method: real threads on real connections that meet at barriers; a channel that holds its answer back
while the engine is asked what is open and what is locked.
"""

import threading
from collections import Counter
from decimal import Decimal

import pytest

from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import Asked, AskRefund, NotRefundable, RefundTooLarge, ask_refund
from lockstep.payments.refund import Tried
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, deliver_outbox
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.engine import held
from tests.support.refund_channel import (
    LOSE_THE_ANSWER,
    RefundChannel,
    refund_rows,
    the_refund,
    time_passes,
)
from tests.support.threads import PATIENCE_SECONDS, at_once, crowd

ALL = Decimal("9.90")


@pytest.fixture
def channel() -> RefundChannel:
    channel = RefundChannel()
    channel.paid()
    return channel


@pytest.fixture
def late(database: Database) -> int:
    """Money that came too late; its refund."""
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    accept(a_trade_notice(order, trade_no="T1"))
    return the_refund(database)


@pytest.fixture
def paid(database: Database) -> Order:
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order, trade_no="T1"))
    deliver_outbox(database)
    return order


def ask(order: Order, key: str, amount: str | None = None) -> object:
    part = None if amount is None else Decimal(amount)
    return ask_refund(AskRefund(order.order_no, key, "alice", "broken", part))


def test_nothing_is_open_and_nothing_locked_while_the_channel_is_asked(database, channel, late):
    """I5: the channel may take its time; nobody waits for it."""
    called, go_on = threading.Event(), threading.Event()

    def stand() -> None:
        called.set()
        assert go_on.wait(PATIENCE_SECONDS)

    channel.during = stand
    for calls in ("refund", "query_refund"):
        called.clear()
        go_on.clear()
        if calls == "refund":
            channel.faults.append(LOSE_THE_ANSWER)
        result: list[Tried] = []
        worker = threading.Thread(target=lambda r=result: r.append(channel.try_refund(late)))
        worker.start()
        assert called.wait(PATIENCE_SECONDS)
        assert held(database) == (0, 0)
        go_on.set()
        worker.join(PATIENCE_SECONDS)
        assert channel.calls[-1][0] == calls
        time_passes(database)
    assert result == [Tried.DONE]


def test_workers_that_get_one_refund_at_once_call_once(database, channel, late):
    tried = at_once(*[lambda: channel.try_refund(late)] * 8)
    assert Counter(tried)[Tried.DONE] == 1
    assert set(tried) <= {Tried.DONE, Tried.NOT_DUE, Tried.ENDED}
    assert len(channel.calls) == 1
    assert_at_rest(database)


def test_refunds_of_one_trade_are_called_one_after_the_other(database, channel, paid):
    """One in flight a trade, and 3 s between two of them."""
    for key in "abc":
        ask(paid, key, "3.00")
    ids = [row["id"] for row in database.rows("SELECT id FROM oms_refund ORDER BY id")]
    in_flight: list[int] = []

    def look() -> None:
        with database.another_session() as session, session.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) AS n FROM oms_refund WHERE state IN ('CALLING', 'UNKNOWN')"
            )
            row = cursor.fetchone()
            in_flight.append(row["n"] if row else 0)

    channel.during = look
    tried = crowd(6, ids * 4, channel.try_refund)
    assert Counter(tried)[Tried.DONE] == 1
    assert len(channel.calls) == 1
    assert channel.try_refund(ids[-1]) in {Tried.NOT_DUE, Tried.ENDED}
    for _ in range(2):
        # The wait is over, the last call is not 3 s old.
        database.execute("UPDATE oms_refund SET next_try_at = NOW(3) WHERE state = 'DUE'")
        assert {channel.try_refund(i) for i in ids} <= {Tried.DEFERRED, Tried.ENDED}
        time_passes(database)
        tried = crowd(6, ids * 4, channel.try_refund)
        assert Counter(tried)[Tried.DONE] == 1
    assert set(in_flight) == {1}
    assert channel.total() == Decimal("9.00")
    assert_at_rest(database)


def test_operators_at_once_never_ask_for_more_than_was_paid(database, channel, paid):
    keys = [f"k{n}" for n in range(8)]
    outcomes = crowd(8, keys, lambda key: ask(paid, key, "3.00"))
    kinds = Counter(type(outcome) for outcome in outcomes)
    assert kinds == {Asked: 3, RefundTooLarge: 5}
    channel.work_off(database, rounds=30)
    assert channel.total() == Decimal("9.00")
    assert_at_rest(database)


@pytest.mark.parametrize("trial", range(10))
def test_an_order_is_shipped_or_refunded_in_whole_never_both(database, channel, paid, trial):
    """D11: whoever is first; the guard names the states, and the other one finds another."""

    def ship() -> object:
        with database.another_session() as session, session.cursor() as cursor:
            shipped = cursor.execute(
                "UPDATE oms_order SET prev_status = status, status = 'SHIPPED' "
                "WHERE id = %s AND status = 'PAID'",
                (paid.id,),
            )
            if shipped:
                cursor.execute(
                    "INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason) "
                    "VALUES (%s, 'PAID', 'SHIPPED', 'test', 'SHIPPED')",
                    (paid.id,),
                )
            session.commit()
            return shipped

    shipped, asked = at_once(ship, lambda: ask(paid, "all"))
    assert isinstance(asked, Asked)
    trail = database.rows(
        "SELECT from_status, to_status FROM oms_order_event WHERE order_id = %s "
        "AND from_status IN ('PAID', 'SHIPPED') ORDER BY id",
        (paid.id,),
    )
    path = [(row["from_status"], row["to_status"]) for row in trail]
    if shipped:
        assert path == [("PAID", "SHIPPED"), ("SHIPPED", "REFUNDING")]
    else:
        assert path == [("PAID", "REFUNDING")]
    assert isinstance(ask(paid, "again"), NotRefundable)
    channel.work_off(database)
    assert database.value("SELECT status FROM oms_order") == "REFUNDED"
    assert_at_rest(database)


@pytest.mark.parametrize("trial", range(5))
def test_a_try_whose_lease_ran_out_meets_the_next_one(database, channel, late, trial):
    """The first worker stands still for so long that a second one is sent."""
    second: list[Tried] = []

    def stand() -> None:
        channel.during = lambda: None
        time_passes(database)
        worker = threading.Thread(target=lambda: second.append(channel.try_refund(late)))
        worker.start()
        worker.join(PATIENCE_SECONDS)

    channel.during = stand
    if trial % 2:
        channel.faults.append(LOSE_THE_ANSWER)
    first = channel.try_refund(late)
    assert second == [Tried.DUE]  # it asked, and nothing had been done yet
    assert first is (Tried.OVERTAKEN if trial % 2 else Tried.DONE)
    channel.work_off(database)
    assert sum(channel.executed.values()) == 1
    assert refund_rows(database)[0][1:] == (ALL, "DONE", None)
    assert_at_rest(database)
