"""in_transaction(): committed as a whole, rerun as a whole, or nothing left of it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockstep.db import connection
from lockstep.db.errors import ConnectionLost, Contended, DatabaseFault
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.errors import InvariantBroken, TimeShort, TryAgain
from tests.support.builders import a_sku
from tests.support.database import forget_settings
from tests.support.waiting import until_someone_waits_for_a_row

RAISE_STOCK = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = %s"
READ_STOCK = "SELECT stock FROM ims_sku_stock WHERE sku_id = %s"
LOCK_SKU = "SELECT * FROM ims_sku_stock WHERE sku_id = %s FOR UPDATE"


@pytest.fixture
def skus(database, monkeypatch):
    """Two SKUs of stock 10, and a session that waits one second for a lock."""
    a_sku(database, 1001)
    a_sku(database, 1002)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    forget_settings()
    return database


@pytest.fixture
def no_second_run(monkeypatch):
    """The pause before a second run would outlast the time that is allowed."""
    monkeypatch.setattr("lockstep.db.transaction._PAUSE_SECONDS_MIN", 60.0)


def stock_of(tx: Tx, sku_id: int) -> int:
    row = tx.one(READ_STOCK, (sku_id,))
    assert row is not None
    return int(row["stock"])


def test_what_work_wrote_is_there_and_what_it_returned_comes_back(skus):
    def work(tx):
        tx.execute(RAISE_STOCK, (1001,))
        return "done"

    assert in_transaction(work) == "done"
    assert skus.stock(1001) == (11, 0)


def test_a_lock_wait_that_ends_undoes_the_earlier_statements_and_runs_all_again(skus):
    """1205 by itself rolls back one statement only; what came before would be committed twice."""
    seen = []
    with skus.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute(LOCK_SKU, (1002,))

        def work(tx):
            seen.append(stock_of(tx, 1001))
            if len(seen) == 2:
                blocker.rollback()
            tx.execute(RAISE_STOCK, (1001,))
            tx.execute(RAISE_STOCK, (1002,))

        in_transaction(work)
    assert seen == [10, 10]
    assert (skus.stock(1001), skus.stock(1002)) == ((11, 0), (11, 0))


def test_when_the_time_is_over_a_lock_wait_is_to_be_tried_again_and_leaves_nothing(
    skus, no_second_run
):
    runs = []

    def work(tx):
        runs.append(1)
        tx.execute(RAISE_STOCK, (1001,))
        tx.execute(RAISE_STOCK, (1002,))

    with skus.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute(LOCK_SKU, (1002,))
        with pytest.raises(TryAgain, match="1205") as raised:
            in_transaction(work)
        assert isinstance(raised.value.__cause__, Contended)
    assert len(runs) == 1
    assert skus.stock(1001) == (10, 0)


def test_a_deadlock_is_run_again_as_a_whole(skus):
    """Two transactions take two rows crosswise; the engine ends one, which then runs alone."""
    both_hold_one = threading.Barrier(2)
    runs = []

    def work(tx: Tx, first: int, second: int) -> None:
        runs.append(first)
        tx.execute(RAISE_STOCK, (first,))
        if runs.count(first) == 1:
            both_hold_one.wait(5)
        tx.execute(RAISE_STOCK, (second,))

    def cross(first, second):
        in_transaction(lambda tx: work(tx, first, second))
        connection.discard()

    with ThreadPoolExecutor(2) as pool:
        for ending in [pool.submit(cross, 1001, 1002), pool.submit(cross, 1002, 1001)]:
            ending.result(20)
    assert len(runs) == 3
    assert (skus.stock(1001), skus.stock(1002)) == ((12, 0), (12, 0))


def test_a_deadlock_without_time_left_is_to_be_tried_again(skus, no_second_run):
    """The other side has changed more, so it is ours that the engine ends."""
    with skus.another_session() as other, other.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("UPDATE ims_sku_stock SET title = 'x' WHERE sku_id = 1002")
        cursor.execute("UPDATE ims_stock_entry SET reason = 'weightier'")

        def work(tx):
            tx.execute(RAISE_STOCK, (1001,))
            pool.submit(cursor.execute, LOCK_SKU, (1001,))
            until_someone_waits_for_a_row(skus)
            tx.execute(RAISE_STOCK, (1002,))

        with pytest.raises(TryAgain, match="1213"):
            in_transaction(work)
    assert (skus.stock(1001), skus.stock(1002)) == ((10, 0), (10, 0))


def test_an_idle_session_that_died_is_replaced_once_and_work_runs_once(skus):
    idle = connection.current()
    skus.execute(f"KILL {idle.thread_id}")
    runs = []

    def work(tx):
        runs.append("begun")
        runs.append(tx.execute(RAISE_STOCK, (1001,)))

    in_transaction(work)
    assert runs == ["begun", 1]
    assert connection.current() is not idle
    assert skus.stock(1001) == (11, 0)


def test_a_session_that_dies_in_the_middle_takes_its_statements_along_and_all_runs_again(skus):
    runs = []

    def work(tx):
        runs.append(connection.current().thread_id)
        tx.execute(RAISE_STOCK, (1001,))
        if len(runs) == 1:
            skus.execute(f"KILL {runs[0]}")
        tx.execute(RAISE_STOCK, (1002,))

    in_transaction(work)
    assert len(set(runs)) == 2
    assert (skus.stock(1001), skus.stock(1002)) == ((11, 0), (11, 0))


def test_a_session_that_dies_when_no_time_is_left_is_to_be_tried_again(skus, no_second_run):
    def work(tx):
        tx.execute(RAISE_STOCK, (1001,))
        skus.execute(f"KILL {connection.current().thread_id}")
        tx.execute(RAISE_STOCK, (1001,))

    with pytest.raises(TryAgain) as raised:
        in_transaction(work)
    assert isinstance(raised.value.__cause__, ConnectionLost)
    assert skus.stock(1001) == (10, 0)


def test_roll_back_leaves_nothing_and_answers(skus):
    actions = []

    def work(tx):
        tx.after_commit(lambda: actions.append("sent"))
        tx.execute(RAISE_STOCK, (1001,))
        raise RollBack("refused")

    assert in_transaction(work) == "refused"
    assert skus.stock(1001) == (10, 0)
    assert actions == []


@pytest.mark.parametrize("fault", [ValueError, InvariantBroken, KeyboardInterrupt])
def test_whatever_work_raises_leaves_nothing_and_is_not_run_again(skus, fault):
    runs = []

    def work(tx):
        runs.append(tx.execute(RAISE_STOCK, (1001,)))
        raise fault("stop")

    with pytest.raises(fault):
        in_transaction(work)
    assert runs == [1]
    assert skus.stock(1001) == (10, 0)
    # No transaction is left open on the kept session.
    assert connection.current().execute(RAISE_STOCK, (1001,)) == 1
    assert skus.stock(1001) == (11, 0)


def test_a_broken_check_leaves_nothing(skus):
    def work(tx):
        tx.execute(RAISE_STOCK, (1001,))
        tx.execute("UPDATE ims_sku_stock SET lock_stock = -1 WHERE sku_id = 1002")

    with pytest.raises(InvariantBroken, match="ck_sku_stock"):
        in_transaction(work)
    assert skus.stock(1001) == (10, 0)


def test_actions_run_after_the_commit_in_the_order_they_were_given(skus):
    seen = []

    def work(tx):
        tx.execute(RAISE_STOCK, (1001,))
        tx.after_commit(lambda: seen.append(skus.stock(1001)))
        tx.after_commit(lambda: seen.append("second"))
        seen.append(skus.stock(1001))

    in_transaction(work)
    assert seen == [(10, 0), (11, 0), "second"]


def test_a_run_that_was_rolled_back_leaves_no_action_behind(skus):
    runs: list[int] = []
    actions: list[int] = []

    def work(tx):
        run = len(runs)
        runs.append(run)
        tx.after_commit(lambda: actions.append(run))
        if run == 0:
            raise Contended("as if")

    in_transaction(work)
    assert actions == [1]


@pytest.mark.parametrize(
    "use",
    [
        lambda tx: tx.execute(RAISE_STOCK, (1001,)),
        lambda tx: tx.insert("INSERT INTO oms_order_transition VALUES ('PAID', 'CLOSED')"),
        lambda tx: tx.insert_many("INSERT INTO ims_hot_turn VALUES (%s)", [(1,)]),
        lambda tx: tx.one(READ_STOCK, (1001,)),
        lambda tx: tx.all(READ_STOCK, (1001,)),
    ],
)
def test_no_statement_starts_once_the_time_is_over(skus, monkeypatch, use):
    def work(tx):
        tx.execute(RAISE_STOCK, (1001,))
        monkeypatch.setattr(tx, "_deadline", 0.0)
        before = connection.current().round_trips
        with pytest.raises(TimeShort):
            use(tx)
        assert connection.current().round_trips == before
        use(tx)

    with pytest.raises(TimeShort):
        in_transaction(work)
    assert skus.stock(1001) == (10, 0)


def test_the_pauses_between_runs_end_within_the_time(skus, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr("lockstep.db.transaction.time.sleep", pauses.append)
    clock = iter(range(10_000))
    monkeypatch.setattr("lockstep.db.transaction.time.monotonic", lambda: next(clock) / 100)

    def work(tx):
        raise Contended("always")

    with pytest.raises(TryAgain):
        in_transaction(work, within_seconds=0.5)
    assert len(pauses) > 3
    assert all(0.01 <= pause <= 0.32 for pause in pauses)
    assert max(pauses) > min(pauses)


def test_a_session_that_cannot_roll_back_is_dropped(skus, monkeypatch):
    session = connection.current()
    real = session.execute

    def refuse(sql, arguments=()):
        if sql == "ROLLBACK":
            raise DatabaseFault("no")
        return real(sql, arguments)

    monkeypatch.setattr(session, "execute", refuse)
    with pytest.raises(ZeroDivisionError):
        in_transaction(lambda tx: tx.execute(RAISE_STOCK, (1001,)) // 0)
    assert connection.current() is not session
    assert skus.stock(1001) == (10, 0)


def test_a_transaction_without_a_statement_does_not_go_to_the_database(skus):
    trips = connection.current().round_trips
    assert in_transaction(lambda _: "nothing") == "nothing"
    with pytest.raises(ZeroDivisionError):
        in_transaction(lambda _: 1 // 0)
    assert connection.current().round_trips == trips


def test_begin_takes_no_round_trip_of_its_own(skus):
    before = connection.current().round_trips
    in_transaction(lambda tx: tx.execute(RAISE_STOCK, (1001,)))
    assert connection.current().round_trips - before == 2
