"""Goal: every condition of the purge is missed when it is gone.

Method: see guards.py. Each proof makes one row that must stay and asks how many went.
"""

from typing import Final

import pytest

from lockstep.db.transaction import in_transaction
from lockstep.inventory.release import release
from lockstep.messaging import outbox
from lockstep.messaging.contracts import ReserveStock
from lockstep.payments.accept import accept
from lockstep.upkeep import purge_store as store
from lockstep.upkeep.purge import Purged, Retention, purge
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.raw_rows import insert_row

AGED: Final = (
    "UPDATE outbox SET sent_at = sent_at - INTERVAL 1 YEAR, created_at = created_at - INTERVAL 1 "
    "YEAR",
    "UPDATE oms_notice SET created_at = created_at - INTERVAL 1 YEAR",
    "UPDATE ims_reservation SET created_at = created_at - INTERVAL 1 YEAR",
)


def purge_after_a_year(database: Database) -> Purged:
    for statement in AGED:
        database.execute(statement)
    return purge(Retention(), lambda: True)


def stage_reserve(reservation_id: str) -> None:
    command = ReserveStock(reservation_id=reservation_id, order_id=1)
    in_transaction(lambda tx: outbox.stage(tx, command))


def sent(database: Database, *, days: int = 0) -> None:
    database.execute("UPDATE outbox SET sent_at = NOW(3) - INTERVAL %s DAY", (days,))


def a_message_that_was_never_sent(database: Database) -> Purged:
    stage_reserve("1-1")
    return purge_after_a_year(database)


def a_message_of_29_days(database: Database) -> Purged:
    stage_reserve("1-1")
    sent(database, days=29)
    return purge(Retention(), lambda: True)


def what_was_said_about_a_hold_that_is_not_settled(database: Database) -> Purged:
    """How often it was said is how long restaging waits."""
    a_sku(database)
    accept(a_trade_notice(an_order()))
    sent(database)
    database.execute("DELETE FROM oms_notice")
    return purge_after_a_year(database)


def what_was_said_about_an_order_that_waits(database: Database) -> Purged:
    a_sku(database, hot=True)
    order = an_order()
    assert order.status == "RESERVING"
    sent(database)
    return purge_after_a_year(database)


def what_was_said_about_a_refund_that_is_due(database: Database) -> Purged:
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    accept(a_trade_notice(order))
    database.execute("DELETE FROM outbox WHERE queue <> 'refund'")
    sent(database)
    return purge_after_a_year(database)


def a_message_of_a_queue_without_a_rule(database: Database) -> Purged:
    stage_reserve("1-1")
    sent(database)
    database.execute("UPDATE outbox SET queue = 'another'")
    return purge_after_a_year(database)


def a_notice_that_is_not_decided(database: Database) -> Purged:
    """Money of no order is settled by a person; its payment is not what keeps the notice here."""
    accept(a_trade_notice())
    database.execute("DELETE FROM oms_order_payment")
    return purge_after_a_year(database)


def a_notice_of_29_days(database: Database) -> Purged:
    a_sku(database)
    accept(a_trade_notice(an_order()))
    database.execute("UPDATE oms_notice SET created_at = NOW(3) - INTERVAL 29 DAY")
    return purge(Retention(), lambda: True)


def a_notice_of_money_that_must_go_back(database: Database) -> Purged:
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    accept(a_trade_notice(order))
    assert database.value("SELECT state FROM oms_order_payment") == "REFUND_PENDING"
    return purge_after_a_year(database)


def a_notice_while_other_money_fits_no_order(database: Database) -> Purged:
    """Another trade of the channel, and the same number at another channel."""
    a_sku(database)
    accept(a_trade_notice(an_order(), trade_no="T1"))
    for changed in ({"trade_no": "T2"}, {"provider": "another", "trade_no": "T1"}):
        insert_row(database, "oms_order_payment", state="UNMATCHED", order_id=None, **changed)
    database.execute("DELETE FROM outbox")
    return purge_after_a_year(database)


def a_tombstone_of_21_days(database: Database) -> Purged:
    release("9-1", 9)
    database.execute("UPDATE ims_reservation SET created_at = NOW(3) - INTERVAL 21 DAY")
    return purge(Retention(), lambda: True)


def a_tombstone_whose_reserve_was_never_sent(database: Database) -> Purged:
    stage_reserve("9-1")
    release("9-1", 9)
    return purge_after_a_year(database)


def a_tombstone_whose_reserve_was_sent_21_days_ago(database: Database) -> Purged:
    stage_reserve("9-1")
    release("9-1", 9)
    database.execute("UPDATE ims_reservation SET created_at = NOW(3) - INTERVAL 1 YEAR")
    sent(database, days=21)
    return purge(Retention(), lambda: True)


def a_released_hold_that_held_something(database: Database) -> Purged:
    release("9-1", 9)
    database.execute("UPDATE ims_reservation SET request_hash = %s", ("0" * 64,))
    return purge_after_a_year(database)


def a_released_hold_with_its_time(database: Database) -> Purged:
    release("9-1", 9)
    database.execute("UPDATE ims_reservation SET expires_at = NOW(3)")
    return purge_after_a_year(database)


def a_tombstone_while_another_hold_is_asked_for(database: Database) -> Purged:
    """Neither its own release, which is not sent yet, nor another order's command keeps it."""
    stage_reserve("8-1")
    database.execute(
        "INSERT INTO outbox (message_id, queue, group_key, payload, next_at) "
        "VALUES (REPEAT('0', 32), 'release', '9-1', '{}', NOW(3))"
    )
    release("9-1", 9)
    return purge_after_a_year(database)


def a_hold_without_its_time(database: Database) -> Purged:
    """Reserved, and all the rest as of a tombstone."""
    release("9-1", 9)
    database.execute("ALTER TABLE ims_reservation DROP CHECK ck_reservation_hash")
    database.execute("UPDATE ims_reservation SET state = 'RESERVED'")
    try:
        return purge_after_a_year(database)
    finally:
        database.execute("DELETE FROM ims_reservation")
        database.execute(
            "ALTER TABLE ims_reservation ADD CONSTRAINT ck_reservation_hash "
            "CHECK (request_hash IS NOT NULL OR state = 'RELEASED')"
        )


def a_refusal_of_89_days(database: Database) -> Purged:
    database.execute(
        "INSERT INTO message_refusal (message_id, type, code, created_at) "
        "VALUES ('m', 'ReserveStock', 'X', NOW(3) - INTERVAL 89 DAY)"
    )
    return purge(Retention(), lambda: True)


def younger(column: str) -> str:
    return f"AND {column} < TIMESTAMPADD(DAY, -%(days)s, NOW(3))"


HOLD_IS_SETTLED: Final = """
  AND NOT EXISTS (
      SELECT 1
      FROM ims_reservation AS r FORCE INDEX (uk_reservation)
      WHERE r.reservation_id = b.group_key
        AND r.state = 'RESERVED')"""
ORDER_IS_SERVED: Final = """
  AND NOT EXISTS (
      SELECT 1
      FROM oms_order AS o FORCE INDEX (uk_order_no)
      WHERE o.order_no = SUBSTRING_INDEX(b.group_key, '-', 1)
        AND o.status = 'RESERVING')"""
REFUND_HAS_ENDED: Final = """
  AND NOT EXISTS (
      SELECT 1
      FROM oms_refund AS f FORCE INDEX (uk_refund_request)
      WHERE f.payment_id = IF(b.queue = 'refund', CAST(b.group_key AS UNSIGNED), 0)
        AND f.state IN ('DUE', 'CALLING', 'UNKNOWN'))"""
NOTHING: Final = Purged()

GUARDS: Final = (
    Guard(
        "outbox: sent",
        a_message_that_was_never_sent,
        NOTHING,
        (
            (Clause(store, "FIND_OUTBOX", "b.sent_at >= %(at)s", "TRUE"), NOTHING),
            (
                Clause(store, "FIND_OUTBOX", younger("b.sent_at"), younger("b.created_at")),
                Purged(outbox=1),
            ),
        ),
    ),
    Guard(
        "outbox: old",
        a_message_of_29_days,
        NOTHING,
        ((Clause(store, "FIND_OUTBOX", younger("b.sent_at")), Purged(outbox=1)),),
    ),
    Guard(
        "outbox: its hold is settled",
        what_was_said_about_a_hold_that_is_not_settled,
        NOTHING,
        ((Clause(store, "FIND_OUTBOX", HOLD_IS_SETTLED), Purged(outbox=1)),),
    ),
    Guard(
        "outbox: its order waits no more",
        what_was_said_about_an_order_that_waits,
        NOTHING,
        ((Clause(store, "FIND_OUTBOX", ORDER_IS_SERVED), Purged(outbox=1)),),
    ),
    Guard(
        "outbox: about no refund that may still be tried",
        what_was_said_about_a_refund_that_is_due,
        NOTHING,
        ((Clause(store, "FIND_OUTBOX", REFUND_HAS_ENDED), Purged(outbox=1)),),
    ),
    Guard(
        "outbox: a queue with a rule",
        a_message_of_a_queue_without_a_rule,
        NOTHING,
        (
            (
                Clause(
                    store,
                    "FIND_OUTBOX",
                    "AND b.queue IN ('reserve', 'confirm', 'release', 'refund')",
                ),
                Purged(outbox=1),
            ),
        ),
    ),
    Guard(
        "notices: decided",
        a_notice_that_is_not_decided,
        NOTHING,
        ((Clause(store, "FIND_NOTICES", "n.state = 'DONE'", "TRUE"), Purged(notices=1)),),
    ),
    Guard(
        "notices: old",
        a_notice_of_29_days,
        NOTHING,
        ((Clause(store, "FIND_NOTICES", younger("n.created_at")), Purged(notices=1)),),
    ),
    Guard(
        "notices: their money has come to rest",
        a_notice_of_money_that_must_go_back,
        NOTHING,
        (
            (
                Clause(
                    store,
                    "FIND_NOTICES",
                    "p.state NOT IN ('APPLIED', 'REFUNDED')",
                    "FALSE",
                ),
                Purged(notices=1),
            ),
        ),
    ),
    Guard(
        "notices: no other channel's money",
        a_notice_while_other_money_fits_no_order,
        Purged(notices=1),
        ((Clause(store, "FIND_NOTICES", "p.provider = n.provider", "TRUE"), NOTHING),),
    ),
    Guard(
        "notices: no other trade's money",
        a_notice_while_other_money_fits_no_order,
        Purged(notices=1),
        ((Clause(store, "FIND_NOTICES", "AND p.trade_no = n.trade_no"), NOTHING),),
    ),
    Guard(
        "tombstones: old",
        a_tombstone_of_21_days,
        NOTHING,
        ((Clause(store, "FIND_TOMBSTONES", younger("r.created_at")), Purged(tombstones=1)),),
    ),
    Guard(
        "tombstones: no reserve is to be sent",
        a_tombstone_whose_reserve_was_never_sent,
        NOTHING,
        (
            (
                Clause(store, "FIND_TOMBSTONES", "b.sent_at IS NULL OR "),
                Purged(tombstones=1),
            ),
        ),
    ),
    Guard(
        "tombstones: no reserve is under way",
        a_tombstone_whose_reserve_was_sent_21_days_ago,
        NOTHING,
        (
            (
                Clause(
                    store,
                    "FIND_TOMBSTONES",
                    " OR b.sent_at >= TIMESTAMPADD(DAY, -%(days)s, NOW(3))",
                ),
                Purged(tombstones=1),
            ),
        ),
    ),
    Guard(
        "tombstones: never held anything",
        a_released_hold_that_held_something,
        NOTHING,
        ((Clause(store, "FIND_TOMBSTONES", "AND r.request_hash IS NULL"), Purged(tombstones=1)),),
    ),
    Guard(
        "tombstones: as the key finds them",
        a_released_hold_with_its_time,
        NOTHING,
        ((Clause(store, "FIND_TOMBSTONES", "AND r.expires_at IS NULL"), Purged(tombstones=1)),),
    ),
    Guard(
        "tombstones: released",
        a_hold_without_its_time,
        NOTHING,
        ((Clause(store, "FIND_TOMBSTONES", "r.state = 'RELEASED'", "TRUE"), Purged(tombstones=1)),),
    ),
    Guard(
        "tombstones: no other command keeps one",
        a_tombstone_while_another_hold_is_asked_for,
        Purged(tombstones=1),
        ((Clause(store, "FIND_TOMBSTONES", "b.queue = 'reserve'", "TRUE"), NOTHING),),
    ),
    Guard(
        "tombstones: no other hold's command keeps one",
        a_tombstone_while_another_hold_is_asked_for,
        Purged(tombstones=1),
        ((Clause(store, "FIND_TOMBSTONES", "AND b.group_key = r.reservation_id"), NOTHING),),
    ),
    Guard(
        "refusals: old",
        a_refusal_of_89_days,
        NOTHING,
        (
            (
                Clause(store, "FIND_REFUSALS", younger("created_at").removeprefix("AND "), "TRUE"),
                Purged(refusals=1),
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_row_goes_when_the_condition_is_gone(database, guard):
    assert_missed(guard, database)
