"""Goal: where the books of money contradict themselves, whoever finds it stops and says so.

Method: somebody breaks the state by plain SQL, where need be in the middle of the operation, with
the lock gone that should have kept them out. What is meant to find it raises InvariantBroken, which
the function counts, and leaves the books as that somebody left them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from lockstep import observability
from lockstep.errors import InvariantBroken
from lockstep.orders import store as orders
from lockstep.payments import ask, refund_store, refundable_store, reinstate_store, store
from lockstep.payments.ask_refund import AskRefund, ask_refund
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried
from lockstep.payments.reinstate import reinstate
from tests.concurrency.taking_away import Clause
from tests.support.builders import a_sku
from tests.support.channel import start
from tests.support.database import Database
from tests.support.lambda_context import Context
from tests.support.late import an_expired_order, reinstating
from tests.support.notices import the_order
from tests.support.reading import SIGNER as ALIPAY
from tests.support.refund_channel import RefundChannel, the_refund

_BOOKS: Final = (
    "oms_order",
    "oms_order_event",
    "oms_order_payment",
    "oms_notice",
    "oms_payment_attempt",
    "oms_refund",
    "oms_money_entry",
    "ims_reservation",
    "ims_sku_stock",
    "outbox",
)


class Breaker:
    """Breaks the state once, and keeps the books as they were from then on."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.left: object = None

    def breaks(self, sql: str) -> None:
        if self.left is None:
            assert self.database.execute(sql), f"nothing to break: {sql}"
            self.left = self.books()

    def after[**P, R](self, step: Callable[P, R], sql: str) -> Callable[P, R]:
        """``step``, and the state broken right after it."""

        def stepped(*args: P.args, **kwargs: P.kwargs) -> R:
            result = step(*args, **kwargs)
            self.breaks(sql)
            return result

        return stepped

    def books(self) -> object:
        return self.database.dump(_BOOKS)


@pytest.fixture
def breaker(database: Database) -> Breaker:
    return Breaker(database)


@pytest.fixture
def order_id(database: Database) -> int:
    a_sku(database)
    return the_order(database)


@pytest.fixture
def without_locks(database: Database) -> Iterator[Callable[..., None]]:
    """Statements that do not lock, for this test."""
    with ExitStack() as gone:
        yield lambda *clause: gone.enter_context(Clause(*clause)(database))


def assert_stopped(breaker: Breaker, act: Callable[[], object], why: str) -> None:
    counted: list[tuple[str, ...]] = []

    def handler(*_: Any) -> object:
        return act()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observability, "count", lambda *words: counted.append(words))
        with pytest.raises(InvariantBroken, match=why):
            observability.observed(handler)({}, Context())
    assert counted.count(("InvariantBroken",)) == 1
    assert breaker.books() == breaker.left


def test_a_payment_is_not_matched_twice_though_its_lock_failed(
    database, breaker, order_id, monkeypatch, without_locks
):
    assert ALIPAY.accept(out_trade_no="O7") is Result.UNMATCHED
    database.execute("UPDATE oms_order SET order_no = 'O7'")
    without_locks(store, "LOCK_PAYMENT", "FOR UPDATE OF p")
    matched = "UPDATE oms_order_payment SET order_id = 7, state = 'APPLIED'"
    monkeypatch.setattr(store, "lock_payment", breaker.after(store.lock_payment, matched))
    assert_stopped(breaker, lambda: ALIPAY.accept(out_trade_no="O7"), "was matched")


def test_late_money_is_not_settled_twice_though_the_lock_of_its_order_failed(
    database, breaker, monkeypatch
):
    reinstating(monkeypatch)
    order_id = an_expired_order(database)
    assert ALIPAY.accept() is Result.REINSTATE_PENDING
    look = breaker.after(
        reinstate_store.read_late_payments,
        "UPDATE oms_order_payment SET state = 'REFUND_PENDING', reason = 'LATE_PAYMENT'",
    )
    monkeypatch.setattr(reinstate_store, "read_late_payments", look)
    assert_stopped(breaker, lambda: reinstate(order_id), "was settled")


def test_late_money_of_an_order_that_is_gone_stays_as_it_is(database, breaker, monkeypatch):
    reinstating(monkeypatch)
    order_id = an_expired_order(database)
    assert ALIPAY.accept() is Result.REINSTATE_PENDING
    breaker.breaks("DELETE FROM oms_order")
    assert_stopped(breaker, lambda: reinstate(order_id), "does not exist")


def test_no_more_of_a_payment_goes_back_than_is_left_of_it(database, breaker, order_id):
    ALIPAY.accept()
    ask_refund(AskRefund("O1", "k1", "alice", "broken"))
    channel = RefundChannel()
    channel.paid()
    channel.during = lambda: breaker.breaks("UPDATE oms_order_payment SET refunded_amount = 0.01")
    assert_stopped(breaker, lambda: channel.try_refund(the_refund(database)), "than was paid")


def test_a_refund_that_is_gone_while_the_channel_is_asked_is_no_ordinary_end(
    database, breaker, order_id
):
    """Money went back: that nobody writes it down must not pass for an ordinary end."""
    ALIPAY.accept()
    ask_refund(AskRefund("O1", "k1", "alice", "broken"))
    refund_id, channel = the_refund(database), RefundChannel()
    channel.paid()
    channel.during = lambda: breaker.breaks("DELETE FROM oms_refund")
    assert_stopped(breaker, lambda: channel.try_refund(refund_id), "is gone")


def test_an_order_that_changed_though_it_is_locked_is_not_refunded(
    database, breaker, order_id, monkeypatch, without_locks
):
    ALIPAY.accept()
    without_locks(orders, "LOCK_ORDER_BY_NO", "FOR UPDATE")
    look = breaker.after(
        refundable_store.read_applied,
        "UPDATE oms_order SET prev_status = 'PAID', status = 'REFUNDING'",
    )
    monkeypatch.setattr(refundable_store, "read_applied", look)
    asked = AskRefund("O1", "k1", "alice", "broken")
    assert_stopped(breaker, lambda: ask_refund(asked), "changed though it is locked")


def test_an_order_that_waits_for_its_payment_without_an_end_is_not_paid(
    database, breaker, order_id
):
    breaker.breaks("UPDATE oms_order SET expires_at = NULL")
    assert_stopped(breaker, lambda: start("O1"), "without an end")


def test_an_attempt_that_is_gone_is_not_asked_about(database, breaker, order_id):
    start("O1")
    attempt_id = database.value("SELECT id FROM oms_payment_attempt")
    breaker.breaks("DELETE FROM oms_payment_attempt")
    assert_stopped(breaker, lambda: ask.claim(attempt_id, order_id, "test"), "is gone")


@pytest.mark.parametrize("state", ["DUE", "UNKNOWN"])
def test_a_refund_that_another_took_though_it_is_locked_is_left_to_them(
    database, breaker, order_id, monkeypatch, without_locks, state
):
    """It is no contradiction to find that: the row itself says whose it is."""
    ALIPAY.accept()
    ask_refund(AskRefund("O1", "k1", "alice", "broken"))
    database.execute("UPDATE oms_refund SET state = %s", (state,))
    database.execute("UPDATE oms_refund SET called_at = NOW(3) - INTERVAL 1 MINUTE")
    refund_id, channel = the_refund(database), RefundChannel()
    without_locks(refundable_store, "LOCK_REFUNDABLE", "FOR UPDATE")
    taken = "UPDATE oms_refund SET next_try_at = NOW(3) + INTERVAL 1 MINUTE"
    look = breaker.after(refund_store.read_refunds, taken)
    monkeypatch.setattr(refund_store, "read_refunds", look)
    assert channel.try_refund(refund_id) is Tried.NOT_DUE
    assert channel.calls == []
    assert breaker.books() == breaker.left
