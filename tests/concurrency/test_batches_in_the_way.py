"""Goal: batches of confirms and releases that name the same holds wait for each other, and for
whoever comes to one of them alone; never in a circle, and never for a hold that is not theirs.

Method: the engine's own lock tables say who waits behind whom; nothing sleeps. A third session
holds the second of two reservations until both batches wait. Whoever names them the other way round
must wait at the first of them all the same. A negative control locks in that other order, and must
see the deadlock.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from lockstep.db import connection
from lockstep.inventory import batch_store
from lockstep.inventory.confirm import confirm, confirm_all
from lockstep.inventory.model import Confirmed, HoldName, Refusal, Refused, Released
from lockstep.inventory.release import release, release_all
from tests.support.builders import a_sku, an_order, assert_at_rest, deliver_outbox, try_hold
from tests.support.channel import cancel, sweep
from tests.support.database import Database
from tests.support.threads import (
    PATIENCE_SECONDS,
    Deadlocks,
    Meanwhile,
    Meeting,
    at_once,
    in_rounds,
)

NAMES: Final = [HoldName(f"{letter}-1", n) for n, letter in enumerate("ABC", 1)]
A, B, C = NAMES
CONFIRMED: Final = Confirmed(repeated=False)
RELEASED: Final = Released(repeated=False)
RELEASED_BEFORE: Final = Released(repeated=True)
NOT_RESERVED: Final = Refused(Refusal.RESERVATION_NOT_RESERVED)
CANNOT_RELEASE: Final = Refused(Refusal.RESERVATION_CANNOT_RELEASE)

LOCK_ONE: Final = "SELECT id FROM ims_reservation WHERE reservation_id = %s FOR UPDATE"
# At which reservation a session waits: the engine shows the key that it waits for.
WAITS_AT: Final = """
SELECT l.lock_data
FROM performance_schema.data_lock_waits AS w
JOIN performance_schema.threads AS t ON t.thread_id = w.requesting_thread_id
JOIN performance_schema.data_locks AS l ON l.engine_lock_id = w.requesting_engine_lock_id
WHERE t.processlist_id = %s
"""

type End = Callable[[Sequence[HoldName]], object]


def sell(commands: Sequence[HoldName]) -> object:
    return confirm_all(commands, lambda: True)


def give_back(commands: Sequence[HoldName]) -> object:
    return release_all(commands, lambda: True)


@pytest.fixture
def holds(database: Database) -> Database:
    """Two pieces each for A-1, B-1 and C-1."""
    a_sku(database, 1001)
    a_sku(database, 1002)
    for name in NAMES:
        try_hold(*name, {1001: 1, 1002: 1})
    return database


def waits_at(database: Database, session_id: int) -> str | None:
    """The name of the reservation, as soon as there is one."""
    rows = database.rows(WAITS_AT, (session_id,))
    return rows[0]["lock_data"].split(",")[0].strip("'") if rows else None


class Batch:
    """``end`` of ``commands`` in a thread of its own."""

    def __init__(self, end: End, commands: Sequence[HoldName]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self.session_id = self._pool.submit(lambda: connection.current().thread_id).result()
        self._came_to = self._pool.submit(end, commands)

    def outcomes(self) -> object:
        try:
            return self._came_to.result(PATIENCE_SECONDS)
        finally:
            self._pool.submit(connection.discard)
            self._pool.shutdown()

    def waits_at(self, database: Database) -> str:
        while (name := waits_at(database, self.session_id)) is None:
            assert not self._came_to.done(), "it did not wait"
        return name


def behind_each_other(
    database: Database, first: End, second: End
) -> tuple[list[str], list[object]]:
    """``second`` names B-1 before A-1 and comes first. At which holds they stood while somebody
    held B-1, and what they came to after that."""
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute(LOCK_ONE, ("B-1",))
        backwards = Batch(second, [B, A])
        stood = [backwards.waits_at(database)]
        forwards = Batch(first, [A, B])
        stood.append(forwards.waits_at(database))
        blocker.rollback()
    return stood, [forwards.outcomes(), backwards.outcomes()]


@pytest.mark.parametrize(
    ("first", "second", "outcomes"),
    [
        (sell, give_back, [[NOT_RESERVED] * 2, [RELEASED] * 2]),
        (give_back, sell, [[CANNOT_RELEASE] * 2, [CONFIRMED] * 2]),
        (give_back, give_back, [[RELEASED_BEFORE] * 2, [RELEASED] * 2]),
    ],
)
def test_batches_that_name_the_same_holds_in_other_orders_lock_them_in_one(
    holds, monkeypatch, first, second, outcomes
):
    deadlocks = Deadlocks(monkeypatch)
    assert behind_each_other(holds, first, second) == (["B-1", "A-1"], outcomes)
    assert deadlocks.seen == 0
    assert_at_rest(holds)


def test_without_that_order_they_deadlock_and_are_decided_again(holds, monkeypatch):
    deadlocks, lock = Deadlocks(monkeypatch), batch_store.lock_reservations

    def lock_as_named(tx: Any, names: Sequence[str]) -> Any:
        if names[0] != "B-1":
            return lock(tx, names)
        backwards = batch_store.LOCK_RESERVATIONS.replace(
            "ORDER BY r.reservation_id", "ORDER BY r.reservation_id DESC"
        )
        tx.all(backwards, (tuple(names),))
        return lock(tx, names)

    monkeypatch.setattr(batch_store, "lock_reservations", lock_as_named)
    stood, outcomes = behind_each_other(holds, give_back, sell)
    assert stood == ["B-1", "B-1"]
    assert outcomes in (
        [[CANNOT_RELEASE] * 2, [CONFIRMED] * 2],
        [[RELEASED] * 2, [NOT_RESERVED] * 2],
    )
    assert deadlocks.seen == 1
    assert_at_rest(holds)


def test_a_batch_keeps_nobody_from_a_hold_that_lies_between_its_own(holds, monkeypatch):
    other = Meanwhile(holds, lambda: confirm(*B))
    monkeypatch.setattr(
        batch_store, "lock_reservations", other.after(batch_store.lock_reservations)
    )
    assert sell([A, C]) == [CONFIRMED] * 2
    assert (other.outcome(), other.had_to_wait) == (CONFIRMED, False)
    assert holds.stock(1001) == (7, 0)


@pytest.mark.parametrize(
    ("batch", "alone", "outcomes"),
    [
        (sell, lambda: confirm(*B), ([CONFIRMED] * 3, Confirmed(repeated=True))),
        (sell, lambda: release(*B), ([CONFIRMED] * 3, CANNOT_RELEASE)),
        (give_back, lambda: confirm(*B), ([RELEASED] * 3, NOT_RESERVED)),
        (give_back, lambda: release(*B), ([RELEASED] * 3, RELEASED_BEFORE)),
    ],
)
def test_who_comes_alone_waits_for_the_batch_and_sees_what_it_did(
    holds, monkeypatch, batch, alone, outcomes
):
    other = Meanwhile(holds, alone)
    monkeypatch.setattr(
        batch_store, "lock_reservations", other.after(batch_store.lock_reservations)
    )
    came_to = batch(NAMES)
    assert (came_to, other.outcome()) == outcomes
    assert other.had_to_wait
    assert_at_rest(holds)


def test_a_cancel_does_not_wait_for_a_batch_and_its_release_is_told_the_end(database, monkeypatch):
    """The order is cancelled while its hold is in the batch, which gives it back already."""
    a_sku(database)
    order = an_order()
    name = HoldName(order.reservation_id or "", order.id)
    other = Meanwhile(database, lambda: cancel(order.member_id, order.order_no))
    monkeypatch.setattr(
        batch_store, "lock_reservations", other.after(batch_store.lock_reservations)
    )
    assert give_back([name]) == [RELEASED]
    other.outcome()
    assert not other.had_to_wait
    deliver_outbox(database)
    assert database.stock(1001) == (10, 0)
    assert_at_rest(database)


def test_a_sweep_that_comes_to_a_hold_of_a_batch_waits_and_gives_nothing_twice(
    database, monkeypatch
):
    a_sku(database)
    orders = [an_order(member_id=member) for member in (1, 2)]
    for order in orders:
        cancel(order.member_id, order.order_no)
    database.execute("UPDATE ims_reservation SET expires_at = NOW(3) - INTERVAL 1 SECOND")
    other = Meanwhile(database, lambda: sweep(lambda: True))
    monkeypatch.setattr(
        batch_store, "lock_reservations", other.after(batch_store.lock_reservations)
    )
    names = [HoldName(order.reservation_id or "", order.id) for order in orders]
    assert give_back(names) == [RELEASED] * 2
    assert other.outcome().failed == []
    assert other.had_to_wait
    assert database.stock(1001) == (10, 0)
    assert_at_rest(database)


def test_batches_of_tombstones_that_overlap_leave_each_once(database, monkeypatch):
    """Both look before either writes."""
    deadlocks = Deadlocks(monkeypatch)
    a_sku(database)
    looked = Meeting().after(batch_store.lock_reservations)
    monkeypatch.setattr(batch_store, "lock_reservations", looked)
    outcomes = at_once(lambda: give_back(NAMES), lambda: give_back(NAMES[::-1]))
    assert sorted(outcomes, key=str) == [[RELEASED] * 3, [RELEASED_BEFORE] * 3]
    assert database.count("ims_reservation", state="RELEASED") == 3
    assert deadlocks.seen == 0


def test_storms_of_batches_over_the_same_holds_and_skus_never_deadlock(database, monkeypatch):
    for sku_id in (1001, 1002, 1003):
        a_sku(database, sku_id, stock=1000)
    deadlocks = Deadlocks(monkeypatch)
    rounds = []
    for n in range(0, 240, 12):
        names = [HoldName(f"order{serial}-1", serial) for serial in range(n + 1, n + 13)]
        for name in names[:10]:  # the last two come too early
            try_hold(*name, {1001: 1, 1002: 1, 1003: 1})
        rounds.append(names)
    in_rounds(
        rounds,
        lambda names: sell(names[::2] + names[1::2]),
        lambda names: give_back(names[::-1]),
        lambda names: [confirm(*name) for name in names[3:6]],
        lambda names: [release(*name) for name in names[8:4:-1]],
    )
    assert deadlocks.seen == 0
    assert database.count("ims_reservation", state="RESERVED") == 0
    sold = database.count("ims_reservation", state="CONFIRMED")
    assert database.stock(1001) == database.stock(1003) == (1000 - sold, 0)
    assert_at_rest(database)
