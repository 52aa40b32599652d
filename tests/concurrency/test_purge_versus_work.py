"""Goal: a purge may run at any time, and two of them at once.

Method: purges of small chunks beside members who order, pay and cancel, while old rows are there to
be deleted. At rest the old rows are gone, the new ones are all there, every invariant holds, and
nobody saw a deadlock.
"""

from collections.abc import Callable
from functools import partial

from lockstep.inventory.confirm import confirm
from lockstep.orders.model import Placed
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.upkeep import purge_store
from lockstep.upkeep.purge import Purged, Retention, purge
from tests.support.builders import a_sku, a_trade_notice, assert_at_rest, place_command
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.threads import Deadlocks, Meeting, at_once, crowd

OLD = (
    "INSERT INTO outbox (message_id, queue, group_key, payload, sent_at, next_at) "
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
    "SELECT LEFT(SHA2(i, 256), 32), 'confirm', CONCAT(i, '-1'), '{}', "
    "NOW(3) - INTERVAL 40 DAY, NOW(3) FROM n",
    "INSERT INTO oms_notice "
    "(provider, notify_id, content_hash, kind, app_id, state, created_at) "
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
    "SELECT 'alipay', CONCAT('old', i), SHA2(i, 256), 'OTHER', 'A', 'DONE', "
    "NOW(3) - INTERVAL 40 DAY FROM n",
)


def fill_with_old_rows(database: Database) -> None:
    for statement in OLD:
        database.execute(statement)


def purge_all() -> Purged:
    return purge(Retention(), lambda: True)


def a_member(n: int) -> None:
    outcome = place(place_command({1001: 1}, member_id=n + 1))
    assert isinstance(outcome, Placed)
    if n % 2:
        cancel(n + 1, outcome.order.order_no)
    else:
        accept(a_trade_notice(outcome.order))
        confirm(f"{outcome.order.order_no}-1", outcome.order.id)


def test_purges_beside_orders_payments_and_cancellations_take_only_what_is_old(
    database, monkeypatch
):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 20)
    a_sku(database, stock=1000)
    fill_with_old_rows(database)
    deadlocks = Deadlocks(monkeypatch)
    works: list[Callable[[], object]] = [partial(a_member, n) for n in range(120)]
    for at in (5, 6, 50, 100):
        works.insert(at, purge_all)
    crowd(8, works, lambda work: work())
    assert purge_all() == Purged()
    assert deadlocks.seen == 0
    assert database.count("outbox") == 120
    assert database.count("oms_notice") == 60
    assert_at_rest(database)


def test_two_purges_that_found_the_same_rows_delete_each_once(database, monkeypatch):
    monkeypatch.setattr(purge_store, "CHUNK_SIZE", 100)
    fill_with_old_rows(database)
    deadlocks = Deadlocks(monkeypatch)
    meeting = Meeting().before(purge_store.delete_outbox)
    monkeypatch.setattr(purge_store, "delete_outbox", meeting)
    one, other = at_once(purge_all, purge_all)
    assert (one.outbox + other.outbox, one.notices + other.notices) == (900, 900)
    assert one.is_finished
    assert other.is_finished
    assert deadlocks.seen == 0
    assert (database.count("outbox"), database.count("oms_notice")) == (0, 0)
