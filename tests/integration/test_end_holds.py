"""confirm_all() and release_all(): a batch comes to what its commands come to one by one, in one
transaction; one of them spoils no other."""

from collections.abc import Sequence
from functools import partial

import pymysql
import pytest

from functions import confirm_stock, release_stock
from lockstep.db import connection, transaction
from lockstep.db.transaction import in_transaction
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory import batch_store, end_holds
from lockstep.inventory.confirm import confirm, confirm_all
from lockstep.inventory.model import Confirmed, HoldName, Refusal, Refused, Released
from lockstep.inventory.release import release, release_all
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock
from lockstep.observability import metrics
from tests.support.batches import batch, failed_ids, record_of
from tests.support.builders import a_sku, try_hold
from tests.support.database import Database, forget_settings
from tests.support.dying import count_round_trips
from tests.support.lambda_context import Context

SKUS = (1001, 1002, 1003)
# The text of a statement from which on a proxy pins its connection.
PINS_FROM = 16 * 1024

CONFIRMED, CONFIRMED_BEFORE = Confirmed(repeated=False), Confirmed(repeated=True)
RELEASED, RELEASED_BEFORE = Released(repeated=False), Released(repeated=True)
NOT_RESERVED = Refused(Refusal.RESERVATION_NOT_RESERVED)
CANNOT_RELEASE = Refused(Refusal.RESERVATION_CANNOT_RELEASE)
CONFLICT = Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)


@pytest.fixture
def holds(database: Database) -> Database:
    """Orders 1 to 5 know A-1 and B-1, which are held, C-1 sold, D-1 given back and E-1, whose
    release came first."""
    for sku_id in SKUS:
        a_sku(database, sku_id)
    try_hold("A-1", 1, {1001: 2, 1002: 1})
    try_hold("B-1", 2, {1001: 1, 1003: 3})
    try_hold("C-1", 3, {1001: 1})
    try_hold("D-1", 4, {1001: 1})
    confirm("C-1", 3)
    release("D-1", 4)
    release("E-1", 5)
    return database


def named(*commands: tuple[str, int]) -> list[HoldName]:
    return [HoldName(*command) for command in commands]


def always() -> bool:
    return True


def counters(database: Database) -> list[tuple[int, int]]:
    return [database.stock(sku_id) for sku_id in SKUS]


def states(database: Database) -> dict[str, str]:
    rows = database.rows("SELECT reservation_id, state FROM ims_reservation")
    return {row["reservation_id"]: row["state"] for row in rows}


HELD = [(9, 3), (10, 1), (10, 3)]


def test_a_batch_of_confirms_judges_each_by_its_own_hold(holds):
    assert counters(holds) == HELD
    commands = named(
        ("A-1", 1),
        ("A-1", 1),
        ("B-1", 9),
        ("B-1", 2),
        ("C-1", 3),
        ("D-1", 4),
        ("E-1", 5),
        ("F-1", 6),
    )
    assert confirm_all(commands, always) == [
        CONFIRMED,
        CONFIRMED_BEFORE,
        CONFLICT,
        CONFIRMED,
        CONFIRMED_BEFORE,
        NOT_RESERVED,
        NOT_RESERVED,
        NOT_RESERVED,
    ]
    assert counters(holds) == [(6, 0), (9, 0), (7, 0)]
    assert "F-1" not in states(holds)


def test_a_batch_of_releases_judges_each_by_its_own_hold(holds):
    commands = named(
        ("F-1", 6),
        ("F-1", 6),
        ("F-1", 7),
        ("B-1", 9),
        ("A-1", 1),
        ("A-1", 1),
        ("C-1", 3),
        ("D-1", 4),
        ("E-1", 5),
    )
    assert release_all(commands, always) == [
        RELEASED,
        RELEASED_BEFORE,
        CONFLICT,
        CONFLICT,
        RELEASED,
        RELEASED_BEFORE,
        CANNOT_RELEASE,
        RELEASED_BEFORE,
        RELEASED_BEFORE,
    ]
    assert counters(holds) == [(9, 1), (10, 0), (10, 3)]
    assert states(holds)["F-1"] == "RELEASED"
    assert holds.count("ims_reservation_item", reservation_id="F-1") == 0


@pytest.mark.parametrize("end_all", [confirm_all, release_all])
def test_a_batch_that_comes_again_changes_nothing(holds, end_all):
    commands = named(("A-1", 1), ("F-1", 6), ("B-1", 2))
    end_all(commands, always)
    before = counters(holds), states(holds)
    again = end_all(commands, always)
    assert all(isinstance(it, Refused) or it.repeated for it in again)
    assert (counters(holds), states(holds)) == before


def test_a_tombstone_that_contradicts_its_order_spoils_no_other(holds, monkeypatch):
    """Order 1 knows its number 1 as A-1. What is refused to it, another order may have."""
    monkeypatch.setattr(end_holds, "count_fault", _never)
    commands = named(("X-1", 1), ("F-1", 6), ("G-1", 6), ("X-1", 7), ("X-1", 7), ("A-1", 1))
    outcomes = [CONFLICT, RELEASED, CONFLICT, RELEASED, RELEASED_BEFORE, RELEASED]
    assert release_all(commands, always) == outcomes
    assert counters(holds) == [(9, 1), (10, 0), (10, 3)]
    found = states(holds)
    assert (found["F-1"], found["X-1"], "G-1" in found) == ("RELEASED", "RELEASED", False)


def _never(*_: object) -> None:
    raise AssertionError("nothing was to be decided again")


def test_a_hold_that_comes_between_the_look_and_the_tombstones_is_released_too(holds, monkeypatch):
    real, looks = batch_store.lock_reservations, []

    def look(tx, reservation_ids):
        looks.append(reservation_ids)
        found = real(tx, reservation_ids)
        return {name: hold for name, hold in found.items() if len(looks) > 1 or name != "B-1"}

    monkeypatch.setattr(batch_store, "lock_reservations", look)
    commands = named(("A-1", 1), ("F-1", 6), ("B-1", 2))
    assert release_all(commands, always) == [RELEASED, RELEASED, RELEASED]
    assert len(looks) == 2
    assert counters(holds) == [(9, 0), (10, 0), (10, 0)]


def test_a_hold_that_is_not_as_it_was_seen_is_a_broken_invariant(holds, monkeypatch):
    """Under its lock it cannot change; should it, nothing is sold."""
    seen = in_transaction(lambda tx: batch_store.lock_reservations(tx, ["B-1"]))
    release("B-1", 2)
    monkeypatch.setattr(batch_store, "lock_reservations", lambda *_: dict(seen))
    with pytest.raises(InvariantBroken, match="changed under its lock"):
        confirm("B-1", 2)


# --- one that cannot be decided -------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []
    monkeypatch.setattr(metrics, "add_metric", lambda name, unit, value: seen.append((name, value)))
    return seen


@pytest.mark.parametrize(
    ("end_all", "ended", "left"),
    [
        (confirm_all, CONFIRMED, [(7, 1), (9, 0), (10, 0)]),
        (release_all, RELEASED, [(9, 1), (10, 0), (10, 0)]),
    ],
)
def test_after_a_fault_each_is_decided_alone(holds, counted, end_all, ended, left):
    """Less is locked of SKU 1003 than B-1 holds."""
    holds.execute("UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 1003")
    first, broken, last = end_all(named(("A-1", 1), ("B-1", 2), ("F-1", 6)), always)
    assert (first, isinstance(broken, InvariantBroken)) == (ended, True)
    assert "[1001, 1003]" in str(broken)
    assert last == (NOT_RESERVED if ended is CONFIRMED else RELEASED)
    assert counters(holds) == left
    assert states(holds)["B-1"] == "RESERVED"
    redone = [("BatchRedone", 1), ("InvariantBroken", 1)]
    name = type(ended).__name__
    assert [one for one in counted if one[0] != "StockRefused"] == [
        *redone,
        (f"Stock{name}", 1 if ended is CONFIRMED else 2),
    ]


def test_the_function_hands_back_only_the_one_that_is_broken(holds):
    holds.execute("UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 1003")
    commands = [
        ReleaseStock(reservation_id=hold, order_id=order_id)
        for hold, order_id in (("A-1", 1), ("B-1", 2), ("C-1", 3), ("F-1", 6))
    ]
    records = [record_of(f"m{n}", command) for n, command in enumerate(commands, 1)]
    assert failed_ids(release_stock.handler(batch(*records), Context())) == ["m2"]
    [refused] = holds.rows("SELECT reservation_id, code FROM message_refusal")
    assert refused == {"reservation_id": "C-1", "code": "RESERVATION_CANNOT_RELEASE"}


def test_without_time_nobody_is_decided_alone_and_all_come_again(holds):
    holds.execute("UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 1003")
    before = holds.dump(["ims_sku_stock", "ims_reservation"])
    outcomes = confirm_all(named(("A-1", 1), ("B-1", 2)), lambda: False)
    assert [type(outcome) for outcome in outcomes] == [InvariantBroken, InvariantBroken]
    assert holds.dump(["ims_sku_stock", "ims_reservation"]) == before


def test_one_that_was_alone_is_not_decided_again(holds, monkeypatch):
    monkeypatch.setattr(end_holds, "count_fault", _never)
    holds.execute("UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 1003")
    [broken] = confirm_all(named(("B-1", 2)), always)
    assert isinstance(broken, InvariantBroken)


def test_where_the_database_is_away_all_fail_at_once(holds, monkeypatch):
    monkeypatch.setattr(end_holds, "in_transaction", partial(in_transaction, within_seconds=0.1))
    monkeypatch.setattr(end_holds, "count_fault", _never)
    monkeypatch.setenv("DATABASE_PORT", "1")
    forget_settings()
    connection.discard()
    with pytest.raises(TryAgain):
        confirm_all(named(("A-1", 1), ("B-1", 2)), always)
    commands = [ConfirmStock(reservation_id=hold, order_id=1) for hold in ("A-1", "B-1")]
    records = [record_of(f"m{n}", command) for n, command in enumerate(commands, 1)]
    assert failed_ids(confirm_stock.handler(batch(*records), Context())) == ["m1", "m2"]


# --- what a batch costs ---------------------------------------------------------------------------


def ten_holds(lines: dict[int, int]) -> Sequence[HoldName]:
    names = named(*[(f"T{n}-1", n) for n in range(10, 20)])
    for name in names:
        try_hold(*name, lines)
    return names


@pytest.mark.parametrize("lines", [{1001: 1}, {1001: 1, 1002: 1, 1003: 1}], ids=["one", "three"])
@pytest.mark.parametrize("end_all", [confirm_all, release_all])
def test_ten_holds_cost_the_round_trips_of_one(database, lines, end_all):
    for sku_id in SKUS:
        a_sku(database, sku_id)
    commands = ten_holds(lines)
    assert count_round_trips(lambda: end_all(commands, always)) == 5
    assert set(states(database).values()) == {"CONFIRMED" if end_all is confirm_all else "RELEASED"}


def test_ten_tombstones_cost_four_round_trips(database):
    commands = named(*[(f"T{n}-1", n) for n in range(10, 20)])
    assert count_round_trips(lambda: release_all(commands, always)) == 4


def test_no_statement_of_a_batch_is_so_long_that_a_proxy_pins_its_connection(database, monkeypatch):
    """The bound that is stated, of ids as long as they may be."""
    a_sku(database, stock=1000)
    longest, query = [0], pymysql.connections.Connection.query

    def measured(session, sql, *more):
        longest[0] = max(longest[0], len(sql))
        return query(session, sql, *more)

    monkeypatch.setattr(pymysql.connections.Connection, "query", measured)
    for first, end_all in ((10**18, confirm_all), (2 * 10**18, release_all)):
        serials = range(first, first + end_holds.TOGETHER_MAX)
        commands = named(*[(f"{end_all.__name__[:2]}{n:030d}-9999", n) for n in serials])
        if end_all is confirm_all:
            for command in commands:
                try_hold(*command, {1001: 1})
        outcomes = end_all(commands, always)
        assert {type(outcome) for outcome in outcomes} == {
            Confirmed if end_all is confirm_all else Released
        }
    assert 10_000 < longest[0] < PINS_FROM


def test_a_promise_of_one_statement_is_held_to(database):
    def two(tx):
        tx.execute("DELETE FROM ims_sku_stock")
        tx.execute("DELETE FROM ims_sku_stock")

    with pytest.raises(InvariantBroken, match="one statement"):
        transaction.in_one_statement(two)
