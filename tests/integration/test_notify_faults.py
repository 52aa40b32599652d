"""The notify function while something fails: `success` only for what is committed, no row twice.

A notice is resent until it is answered `success`, so the proof is always the same: whatever broke,
the next delivery finds or makes exactly the rows of a delivery that nothing disturbed.
"""

import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from functions import alipay_notify
from lockstep.db import connection, errors, transaction
from lockstep.errors import InvariantBroken
from lockstep.orders import store as orders
from lockstep.payments.accept import WITHIN_SECONDS
from tests.support.builders import a_sku, assert_at_rest
from tests.support.database import forget_settings
from tests.support.notices import (
    FAILURE,
    SUCCESS,
    Changes,
    an_attempt,
    books,
    closed_unpaid,
    order_row,
    refunded,
    refunded_in_full,
    staged,
    the_order,
    trail,
)
from tests.support.packets import take_apart
from tests.support.reading import SIGNER as ALIPAY

MONEY_TABLES = ("oms_notice", "oms_order_payment", "oms_order", "oms_order_event", "outbox")
BUDGET_SECONDS = 3.0
# The engine ends a wait up to a second late, and a busy machine comes on top. Waiting without the
# limits would take 50 s a row.
BUSY_SECONDS = 5.0


@pytest.fixture(autouse=True)
def order_id(database, monkeypatch) -> int:
    """Order O1 of 9.90, one of SKU 1001 held; Alipay's key, app and payee configured."""
    ALIPAY.configure(monkeypatch)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")  # as the function has it
    forget_settings()
    connection.discard()
    a_sku(database)
    return the_order(database)


class Died(BaseException):
    """The process ended here."""


def die_at(monkeypatch: pytest.MonkeyPatch, statement: int, *, unsent: bool) -> None:
    """End the process at its n-th statement: before it is sent, or before its answer arrives."""
    send = connection.Connection._run
    sent = 0

    def send_or_die(self: connection.Connection, text: str) -> Any:
        nonlocal sent
        sent += 1
        if sent < statement:
            return send(self, text)
        if sent == statement and not unsent:
            send(self, text)
        raise Died

    take_apart(monkeypatch)
    monkeypatch.setattr(connection.Connection, "_run", send_or_die)


def lose_the_connection(monkeypatch: pytest.MonkeyPatch, *, sent: bool, times: int) -> None:
    """Lose the session at COMMIT: before it was sent, or before its answer arrived."""
    run = connection.Connection.execute

    def execute(self: connection.Connection, sql: Any, arguments: Any = ()) -> int:
        nonlocal times
        if sql != "COMMIT" or times == 0:
            return run(self, sql, arguments)
        times -= 1
        if sent:
            run(self, sql, arguments)
        raise errors.ConnectionLost("2013: lost connection during query")

    monkeypatch.setattr(connection.Connection, "execute", execute)


# --- crashes -------------------------------------------------------------------------------------

HISTORIES: dict[str, list[Changes]] = {
    "a payment": [{}],
    "a repeated payment": [{}, {}],
    "a payment whose refund was told first": [refunded("3.00"), {}],
    "a full refund": [{}, refunded_in_full()],
    "an unpaid close": [closed_unpaid()],
}


@pytest.mark.parametrize("unsent", [True, False])
@pytest.mark.parametrize("history", HISTORIES)
def test_a_process_that_dies_at_any_statement_leaves_nothing_half_done(database, history, unsent):
    *before, last = HISTORIES[history]

    def live(statement: int | None) -> bool:
        """Deliver the last notice of a history; True if it was answered."""
        database.empty()
        a_sku(database)
        an_attempt(database, the_order(database), "O1")
        for changes in before:
            ALIPAY.notify(**changes)
        with pytest.MonkeyPatch.context() as fate:
            if statement is not None:
                die_at(fate, statement, unsent=unsent)
            try:
                return ALIPAY.notify(**last) == SUCCESS
            except Died:
                return False
            finally:
                connection.discard()

    assert live(None)
    expected = books(database)
    statement = 1
    while not live(statement):
        assert ALIPAY.notify(**last) == SUCCESS
        assert books(database) == expected, statement
        assert_at_rest(database)
        statement += 1
    assert statement > 4


def test_a_commit_that_was_never_sent_is_made_up_for(database, order_id, monkeypatch):
    lose_the_connection(monkeypatch, sent=False, times=1)
    assert ALIPAY.notify() == SUCCESS
    assert order_row(database)[0] == "PAID"
    assert len(trail(database, order_id)) == 1
    assert staged(database) == ["confirm"]
    assert_at_rest(database)


def test_a_commit_whose_answer_was_lost_is_found_again(database, order_id, monkeypatch):
    lose_the_connection(monkeypatch, sent=True, times=1)
    assert ALIPAY.notify() == SUCCESS
    assert order_row(database)[0] == "PAID"
    assert database.count("oms_order_payment") == database.count("oms_notice") == 1
    assert len(trail(database, order_id)) == 1
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_a_session_that_ended_while_it_was_idle_is_replaced(database):
    ALIPAY.notify()
    database.execute("KILL %s", (connection.current().thread_id,))
    assert ALIPAY.notify(notify_id="N2", trade_no="T2") == SUCCESS
    assert database.count("oms_order_payment") == 2


def test_what_is_not_committed_is_not_acknowledged(database, monkeypatch):
    before = database.dump(MONEY_TABLES)
    with monkeypatch.context() as fate:
        lose_the_connection(fate, sent=False, times=1000)
        begun = time.monotonic()
        assert ALIPAY.notify() == FAILURE
        assert time.monotonic() - begun < BUDGET_SECONDS + BUSY_SECONDS
    connection.discard()
    assert database.dump(MONEY_TABLES) == before
    assert ALIPAY.notify() == SUCCESS
    assert order_row(database)[0] == "PAID"


def test_a_broken_invariant_is_no_success_and_leaves_nothing(database):
    before = database.dump(MONEY_TABLES)
    database.execute(
        "DELETE FROM oms_order_transition WHERE from_status = 'PENDING_PAYMENT' "
        "AND to_status = 'PAID'"
    )
    try:
        assert ALIPAY.notify() == FAILURE
        assert database.dump(MONEY_TABLES) == before
    finally:
        database.execute("INSERT INTO oms_order_transition VALUES ('PENDING_PAYMENT', 'PAID')")
    assert ALIPAY.notify() == SUCCESS


@pytest.mark.parametrize("fault", [InvariantBroken("x"), ValueError("x"), MemoryError()])
def test_no_fault_escapes_the_function(monkeypatch, fault):
    def broken(_notice: object) -> None:
        raise fault

    monkeypatch.setattr(alipay_notify, "accept", broken)
    assert ALIPAY.notify() == FAILURE


# --- three seconds -------------------------------------------------------------------------------


def test_a_database_that_is_down_is_a_failure_in_time(database, monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("DATABASE_PORT", str(nobody.getsockname()[1]))
            forget_settings()
            connection.discard()
            begun = time.monotonic()
            assert ALIPAY.notify() == FAILURE
            assert time.monotonic() - begun < BUDGET_SECONDS + BUSY_SECONDS
    forget_settings()
    assert ALIPAY.notify() == SUCCESS


@pytest.mark.parametrize(
    "row",
    [
        "SELECT * FROM oms_order WHERE order_no = 'O1' FOR UPDATE",
        "SELECT * FROM oms_notice WHERE notify_id = 'N1' FOR UPDATE",
        "SELECT * FROM oms_order_payment WHERE trade_no = 'T1' FOR UPDATE",
    ],
)
def test_a_row_that_stays_locked_is_a_failure_in_time(database, monkeypatch, row):
    database.execute("UPDATE oms_order SET order_no = 'O0'")
    ALIPAY.notify()  # unmatched, so that the next delivery needs all three rows
    database.execute("UPDATE oms_order SET order_no = 'O1'")
    before = database.dump(MONEY_TABLES)
    started = watch_statements(monkeypatch)
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute(row)
        begun = time.monotonic()
        assert ALIPAY.notify() == FAILURE
        assert time.monotonic() - begun < BUDGET_SECONDS + BUSY_SECONDS
    assert max(started) - begun < WITHIN_SECONDS + BUSY_SECONDS
    assert database.dump(MONEY_TABLES) == before
    assert ALIPAY.notify() == SUCCESS
    assert order_row(database)[0] == "PAID"


def watch_statements(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each statement starts, but for BEGIN and ROLLBACK, which decide nothing."""
    run = connection.Connection._run
    started: list[float] = []

    def note_and_run(self: connection.Connection, text: str) -> Any:
        if text not in {"BEGIN", "ROLLBACK"}:
            started.append(time.monotonic())
        return run(self, text)

    take_apart(monkeypatch)
    monkeypatch.setattr(connection.Connection, "_run", note_and_run)
    return started


def test_no_statement_starts_once_the_time_is_over(database, monkeypatch):
    """The clock jumps while the order is being locked: nothing may follow, not even a retry."""
    before = database.dump(MONEY_TABLES)
    late = 0.0
    lock = orders.lock_order_of_trade

    def lock_for_long(tx, *trade):
        nonlocal late
        late = WITHIN_SECONDS
        return lock(tx, *trade)

    slow_clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late, sleep=pytest.fail)
    with monkeypatch.context() as fate:
        fate.setattr(transaction, "time", slow_clock)
        fate.setattr(orders, "lock_order_of_trade", lock_for_long)
        started = watch_statements(fate)
        assert ALIPAY.notify() == FAILURE
    assert len(started) == 1
    assert database.dump(MONEY_TABLES) == before
    assert ALIPAY.notify() == SUCCESS
