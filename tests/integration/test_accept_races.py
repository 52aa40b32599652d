"""A notice and whoever is in its way: what each lock of the accepting transaction is for.

Goal: a decision is made on what is true once the lock is held, never on what was read before.
Method: the other side stands still in the middle of its transaction, the notice runs until the
engine shows it waiting for that very lock, then the other side goes on. No clock is involved.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from threading import Event

import pytest

from lockstep.db import connection
from lockstep.payments import accept as accept_module
from lockstep.payments import store
from lockstep.payments.model import Result
from tests.support.builders import a_sku, assert_at_rest
from tests.support.database import Database
from tests.support.notices import (
    Changes,
    notice_rows,
    order_row,
    payment_row,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

WAITING_FOR = """
SELECT COUNT(*) AS waiting
FROM performance_schema.data_lock_waits AS w
JOIN performance_schema.data_locks AS l ON l.engine_lock_id = w.requesting_engine_lock_id
WHERE l.object_schema = DATABASE() AND l.object_name = %s
"""
PATIENCE_SECONDS = 10


class Deliveries:
    """Notices delivered by a process of their own each."""

    def __init__(self, database: Database, pool: ThreadPoolExecutor) -> None:
        self._database = database
        self._pool = pool

    def start(self, **changes: str | None) -> Future[Result]:
        return self._pool.submit(self._deliver, changes)

    def waits_for(self, table: str, running: Future[Result]) -> None:
        """Come back once somebody waits for a row of ``table``; nobody may have answered."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self._database.value(WAITING_FOR, (table,)) == 0:
            assert not running.done(), "it did not wait"
            assert time.monotonic() < until, "nobody came to wait"

    def _deliver(self, changes: Changes) -> Result:
        try:
            return ALIPAY.accept(**changes)
        finally:
            connection.discard()


@pytest.fixture
def alipay(database, monkeypatch) -> Iterator[Deliveries]:
    # Deleted rows that are not purged yet make an INSERT of their key lock the gap as well: what a
    # test before this one left would be waited for.
    for table in ("oms_notice", "oms_order_payment"):
        database.execute(f"TRUNCATE TABLE {table}")
    # A wait is ended by the test, not by the three seconds of a notice.
    monkeypatch.setattr(accept_module, "WITHIN_SECONDS", PATIENCE_SECONDS)
    with ThreadPoolExecutor(4) as pool:
        yield Deliveries(database, pool)


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def test_the_trail_tells_the_status_that_was_left(database, order_id, alipay):
    with database.another_session() as asking, asking.cursor() as cursor:
        cursor.execute(
            "UPDATE oms_order SET prev_status = status, status = 'PAYMENT_PROCESSING' "
            "WHERE id = %s",
            (order_id,),
        )
        payment = alipay.start()
        alipay.waits_for("oms_order", payment)
        asking.commit()
        assert payment.result() is Result.APPLIED
    assert trail(database, order_id)[0][:2] == ("PAYMENT_PROCESSING", "PAID")


def hold_before_commit(monkeypatch: pytest.MonkeyPatch, go_on: Event) -> Event:
    """Let the first payment stand still once all but its COMMIT is done; set when it does."""
    insert = store.insert_payment
    standing = Event()

    def insert_and_stand(*arguments):
        payment_id = insert(*arguments)
        if not standing.is_set():
            standing.set()
            assert go_on.wait(PATIENCE_SECONDS)
        return payment_id

    monkeypatch.setattr(store, "insert_payment", insert_and_stand)
    return standing


@pytest.mark.parametrize("second", [{}, {"notify_id": "N2"}])
def test_an_unmatched_payment_told_twice_at_once_is_one(database, alipay, monkeypatch, second):
    """No order, no lock: the two meet at the inbox, or at the trade's uncommitted row."""
    go_on = Event()
    standing = hold_before_commit(monkeypatch, go_on)
    first = alipay.start()
    assert standing.wait(PATIENCE_SECONDS)
    other = alipay.start(**second)
    alipay.waits_for("oms_order_payment" if second else "oms_notice", other)
    go_on.set()
    assert (first.result(), other.result()) == (Result.UNMATCHED, Result.UNMATCHED)
    assert database.count("oms_order_payment") == 1
    assert {row[1] for row in notice_rows(database)} == {"UNMATCHED"}


def test_two_that_both_saw_no_payment_meet_at_the_trades_unique_key(database, alipay, monkeypatch):
    look = store.lock_payment
    looked: list[bool] = []

    def look_then_let_another_record_it(tx, provider, trade_no):
        found = look(tx, provider, trade_no)
        looked.append(found[0] is None)
        if len(looked) == 1:
            assert alipay.start(notify_id="N2").result() is Result.UNMATCHED
        return found

    monkeypatch.setattr(store, "lock_payment", look_then_let_another_record_it)
    assert alipay.start().result() is Result.UNMATCHED
    assert looked == [True, True, False]
    assert database.count("oms_order_payment") == 1
    assert sorted(notice_rows(database)) == [
        ("N1", "UNMATCHED", "NO_SUCH_ORDER"),
        ("N2", "UNMATCHED", "NO_SUCH_ORDER"),
    ]


def test_a_stored_notice_decided_twice_at_once_is_decided_once(database, alipay):
    ALIPAY.accept()
    a_sku(database)
    order_id = the_order(database)
    with database.another_session() as holding, holding.cursor() as cursor:
        cursor.execute("SELECT id FROM oms_order WHERE id = %s FOR UPDATE", (order_id,))
        first = alipay.start()
        alipay.waits_for("oms_order", first)
        second = alipay.start()
        alipay.waits_for("oms_notice", second)
        holding.rollback()
        assert {first.result(), second.result()} == {Result.APPLIED, Result.REPLAYED}
    assert notice_rows(database) == [("N1", "DONE", None)]
    assert len(trail(database, order_id)) == 1
    assert_at_rest(database)


def test_a_payment_waits_for_whoever_refunds_it(database, alipay):
    ALIPAY.accept()
    a_sku(database)
    the_order(database)
    with database.another_session() as refunding, refunding.cursor() as cursor:
        cursor.execute("SELECT id FROM oms_order_payment WHERE trade_no = 'T1' FOR UPDATE")
        again = alipay.start()
        alipay.waits_for("oms_order_payment", again)
        cursor.execute(
            "UPDATE oms_order_payment SET state = 'REFUNDED', refunded_amount = amount "
            "WHERE trade_no = 'T1'"
        )
        refunding.commit()
        assert again.result() is Result.REPLAYED
    assert order_row(database) == ("PENDING_PAYMENT", None, Decimal("0.00"), Decimal("0.00"))
    assert payment_row(database)["order_id"] is None
    assert staged(database) == []
