"""The purge: old rows go, a bounded number at a time, and no promise goes with them."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from infra.local import invariants
from lockstep.db.transaction import Reader, read
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Released
from lockstep.inventory.release import release
from lockstep.messaging.contracts import QUEUE_OF
from lockstep.orders.hold import hold
from lockstep.orders.model import NotWaiting, Placed, Replayed
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.upkeep import purge_store
from lockstep.upkeep.purge import Purged, Retention, purge
from tests.support import bulk
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_order,
    assert_at_rest,
    deliver_outbox,
    place_command,
)
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.plans import plan_of

# What tells a row's age, in every table that is purged.
AGE = (
    "UPDATE outbox SET sent_at = sent_at - INTERVAL 1 YEAR, created_at = created_at - INTERVAL 1 "
    "YEAR",
    "UPDATE oms_notice SET created_at = created_at - INTERVAL 1 YEAR",
    "UPDATE ims_reservation SET created_at = created_at - INTERVAL 1 YEAR",
    "UPDATE message_refusal SET created_at = created_at - INTERVAL 1 YEAR",
)


def a_year_passes(database: Database) -> None:
    for statement in AGE:
        database.execute(statement)


def purge_all(retention: Retention | None = None) -> Purged:
    return purge(retention or Retention(), lambda: True)


def old_messages(database: Database, count: int, *, days: int = 40, prefix: str = "") -> None:
    """So many messages that were sent so long ago, of orders that are long gone."""
    database.execute("SET SESSION cte_max_recursion_depth = 20000")
    database.execute(
        "INSERT INTO outbox (message_id, queue, group_key, payload, sent_at, next_at) "
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) "
        "SELECT LEFT(SHA2(CONCAT(%s, i), 256), 32), 'confirm', CONCAT(%s, i, '-1'), '{}', "
        "NOW(3) - INTERVAL %s DAY, NOW(3) FROM n",
        (count, prefix, prefix, days),
    )


def test_what_is_old_and_ended_goes(database):
    a_sku(database)
    paid, cancelled = an_order(), an_order()
    accept(a_trade_notice(paid))
    cancel(42, cancelled.order_no)
    release("9-1", 9)
    deliver_outbox(database)
    database.execute(
        "INSERT INTO message_refusal (message_id, type, code) VALUES ('m', 'ReserveStock', 'X')"
    )
    assert purge_all() == Purged()
    a_year_passes(database)
    assert purge_all() == Purged(outbox=2, notices=1, tombstones=1, refusals=1)
    assert purge_all() == Purged()
    assert invariants.broken(database.rows) == {}


def test_nothing_but_these_rows_goes(database):
    """A request row lives as long as its order: an old key still gives the old order."""
    a_sku(database)
    command = place_command({1001: 2}, key="mine")
    outcome = place(command)
    assert isinstance(outcome, Placed)
    other = an_order()
    accept(a_trade_notice(outcome.order))
    cancel(42, other.order_no)
    deliver_outbox(database)
    a_year_passes(database)
    kept = [
        row["name"]
        for row in database.rows(
            "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = %s",
            (database.name,),
        )
        if row["name"] not in {"outbox", "oms_notice"}
    ]
    before = database.dump(kept)
    assert before["oms_order_request"]
    purged = purge_all()
    assert (purged.outbox, purged.notices) == (2, 1)
    assert database.dump(kept) == before
    again = place(command)
    assert isinstance(again, Replayed)
    assert again.order.id == outcome.order.id
    assert_at_rest(database)


def test_a_purged_notice_that_comes_again_changes_nothing(database):
    a_sku(database)
    order = an_order()
    notice = a_trade_notice(order)
    assert accept(notice) is Result.APPLIED
    deliver_outbox(database)
    a_year_passes(database)
    assert purge_all().notices == 1
    before = database.dump(["oms_order", "oms_order_payment", "oms_order_event", "ims_sku_stock"])
    assert accept(notice) is Result.REPLAYED
    assert database.dump(list(before)) == before
    assert_at_rest(database)


def test_after_its_tombstone_went_a_reserve_that_comes_all_the_same_holds_nothing(database):
    """The order is closed: that alone refuses it."""
    a_sku(database, hot=True)
    order = an_order()
    hold_id = f"{order.order_no}-1"
    cancel(42, order.order_no)
    assert release(hold_id, order.id) == Released(repeated=False)
    database.execute("UPDATE outbox SET sent_at = NOW(3)")
    a_year_passes(database)
    assert purge_all() == Purged(outbox=2, tombstones=1)
    assert database.count("ims_reservation") == 0
    assert hold(order.id) == NotWaiting()
    assert database.stock(1001) == (10, 0)


def test_many_rows_go_in_transactions_of_a_bounded_size(database, monkeypatch):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 100)
    old_messages(database, 250)
    sizes: list[int] = []
    delete = purge_store.delete_outbox

    def watched(tx, ids):
        sizes.append(len(ids))
        return delete(tx, ids)

    monkeypatch.setattr(purge_store, "delete_outbox", watched)
    assert purge_all().outbox == 250
    assert sizes == [100, 100, 50]


def test_a_purge_whose_time_is_over_leaves_the_rest_to_the_next(database, monkeypatch):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 100)
    old_messages(database, 250)
    looks = iter([True, True, False, False, False, False])
    assert purge(Retention(), lambda: next(looks)) == Purged(outbox=200, is_finished=False)
    assert database.count("outbox") == 50
    assert purge_all() == Purged(outbox=50)


def test_rows_that_are_kept_do_not_stand_in_the_way_of_others(database, monkeypatch):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 10)
    a_sku(database, stock=100)
    for _ in range(25):
        accept(a_trade_notice(an_order()))
    database.execute("UPDATE outbox SET sent_at = NOW(3)")
    a_year_passes(database)
    old_messages(database, 25)
    assert purge_all().outbox == 25
    assert database.count("outbox") == 25  # their holds are not sold yet


def test_the_next_look_for_notices_begins_where_the_last_one_ended(database):
    """Or each would come through all that are kept, as these are: their money fits no order."""
    for _ in range(20):
        accept(a_trade_notice())
    database.execute("UPDATE oms_notice SET state = 'DONE'")
    a_year_passes(database)

    def rows_read(reader: Reader) -> int:
        counted = reader.all("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(row["Value"]) for row in counted)

    def look(reader: Reader) -> int:
        before = rows_read(reader)
        assert purge_store.find_notices(reader, datetime.now(UTC), 30).ids == ()
        return rows_read(reader) - before

    nothing_between = read(lambda reader: -rows_read(reader) + rows_read(reader))
    assert read(look) - nothing_between < 10


def test_messages_of_the_same_moment_all_go(database, monkeypatch):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 10)
    old_messages(database, 45)
    database.execute("UPDATE outbox SET sent_at = '2020-01-01'")
    assert purge_all() == Purged(outbox=45)


def test_a_hold_that_is_settled_at_last_lets_its_messages_go(database):
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order))
    database.execute("UPDATE outbox SET sent_at = NOW(3)")
    a_year_passes(database)
    assert purge_all().outbox == 0
    confirm(f"{order.order_no}-1", order.id)
    assert purge_all().outbox == 1


def test_what_was_said_about_a_refund_stays_until_the_refund_has_ended(database):
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    accept(a_trade_notice(order))
    deliver_outbox(database)
    database.execute("UPDATE outbox SET sent_at = NOW(3)")
    a_year_passes(database)
    assert purge_all().outbox == 1
    assert database.value("SELECT queue FROM outbox") == "refund"
    database.execute("UPDATE oms_refund SET state = 'FAILED'")
    assert purge_all().outbox == 1


def test_every_queue_has_its_rule():
    """A queue without one would keep its messages for ever."""
    for queue in QUEUE_OF.values():
        assert f"'{queue}'" in purge_store.FIND_OUTBOX


@pytest.mark.parametrize(
    "days",
    [
        {"queue_days": 0},
        {"dead_letter_days": 0},
        {"outbox_days": 21},
        {"refusal_days": 21},
        {"notice_days": 1},
        {"queue_days": 9, "dead_letter_days": 14},
    ],
)
def test_a_retention_that_breaks_a_promise_is_refused(days):
    with pytest.raises(ValueError, match="is the least that is safe"):
        Retention(**days)


def test_a_message_lives_in_its_queue_as_a_dead_letter_and_after_a_redrive():
    assert Retention().message_days == 4 + 14 + 4
    assert Retention(outbox_days=22, refusal_days=22, notice_days=2).message_days == 22


PLANNED = {
    "FIND_OUTBOX": {
        "b": "ix_outbox_due",
        "r": "uk_reservation",
        "o": "uk_order_no",
        "f": "uk_refund_request",
    },
    "FIND_NOTICES": {"n": "ix_notice_state", "p": "uk_payment_trade"},
    "FIND_TOMBSTONES": {"r": "ix_reservation_expiry", "b": "ix_outbox_group"},
    "FIND_REFUSALS": {"message_refusal": "ix_refusal_created"},
    "DELETE_OUTBOX": {"outbox": "PRIMARY"},
    "DELETE_NOTICES": {"oms_notice": "PRIMARY"},
    "DELETE_TOMBSTONES": {"ims_reservation": "PRIMARY"},
    "DELETE_REFUSALS": {"message_refusal": "PRIMARY"},
}


@pytest.fixture(scope="module")
def filled() -> Iterator[Database]:
    database = Database.create("lockstep_explain_purge")
    bulk.fill(database)
    for statement in AGE:
        database.execute(f"{statement} WHERE id % 50 = 0")
    database.execute(
        "INSERT INTO ims_reservation (reservation_id, order_id, n, state) "
        "VALUES ('t-1', 10000000, 1, 'RELEASED')"
    )
    database.rows(f"ANALYZE TABLE {bulk.TABLES}")
    yield database
    database.drop()


@pytest.mark.parametrize("name", PLANNED)
def test_old_rows_are_found_by_a_key_and_deleted_by_the_primary_one(filled, name):
    by_age = {"at": datetime(2020, 1, 1, tzinfo=UTC), "days": 30, "limit": 500}
    by_id = (tuple(range(1, 501)),)
    sql = getattr(purge_store, name)
    plan = plan_of(filled, sql, by_id if name.startswith("DELETE") else by_age)
    assert (plan.scanned, plan.keys, plan.sorts) == ((), PLANNED[name], False)
