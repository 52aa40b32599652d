"""The sweep: what expired is closed, what was forgotten is settled, and one bad row stops nothing.

Time passes by SQL: the database's clock alone decides, so moving a row back is waiting.
"""

from datetime import UTC, datetime, timedelta

import pytest

from functions import sweep_expired
from lockstep.db import connection
from lockstep.db.transaction import Tx
from lockstep.inventory.model import ReservationState
from lockstep.inventory.release import release
from lockstep.orders import store as orders_store
from lockstep.orders.close import expire
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.upkeep import restage, store
from lockstep.upkeep import sweep as sweep_module
from lockstep.upkeep.sweep import Swept
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_attempt,
    an_order,
    assert_at_rest,
    deliver_outbox,
    try_hold,
)
from tests.support.channel import cancel, sweep
from tests.support.database import Database
from tests.support.lambda_context import Context

NOTHING_LEFT = {"orders": 0, "holds": 0}


def unlimited() -> bool:
    return True


def age(database: Database, seconds: int) -> None:
    """Let so much time pass for every order, hold and message."""
    for table, columns in {
        "oms_order": ("created_at", "expires_at"),
        "ims_reservation": ("expires_at",),
        "outbox": ("created_at", "next_at"),
    }.items():
        for column in columns:
            sql = f"UPDATE {table} SET {column} = {column} - INTERVAL %s SECOND"  # noqa: S608
            database.execute(sql, (seconds,))


def lose(database: Database) -> None:
    """Every message there is was sent, and is gone for good."""
    database.execute("UPDATE outbox SET sent_at = NOW(3)")


def status_of(database: Database, order: Order) -> tuple[str, str | None]:
    row = database.one("SELECT status, close_reason FROM oms_order WHERE id = %s", (order.id,))
    return row["status"], row["close_reason"]


def hold_of(database: Database, order: Order) -> str:
    sql = "SELECT state FROM ims_reservation WHERE reservation_id = %s"
    return str(database.value(sql, (order.reservation_id,)))


@pytest.fixture
def sku(database):
    return a_sku(database, stock=1000)


# --- expiry --------------------------------------------------------------------------------------


def test_an_unpaid_order_is_closed_at_the_end_of_its_time_and_not_before(database, sku):
    order = an_order()
    age(database, 1799)
    assert sweep(unlimited).orders_closed == 0
    age(database, 1)
    assert sweep(unlimited) == Swept(orders_closed=1, left={"orders": 0, "holds": 0})
    assert status_of(database, order) == ("CLOSED", "EXPIRED")
    event = database.one("SELECT * FROM oms_order_event WHERE to_status = 'CLOSED'")
    assert (event["from_status"], event["actor"], event["reason"]) == (
        "PENDING_PAYMENT",
        "system:sweep_expired",
        "EXPIRED",
    )
    assert_at_rest(database)
    assert database.stock(sku) == (1000, 0)


def set_the_databases_clock(at: datetime) -> None:
    """For this session, which stands still at ``at``; the machine's clock goes on as it does."""
    connection.current().execute("SET timestamp = %s", (at.timestamp(),))


@pytest.mark.parametrize(
    ("placed_at", "day"),
    [
        (datetime(2031, 3, 1, 15, 59, 59, 999000, tzinfo=UTC), "20310301"),  # 23:59:59.999
        (datetime(2031, 3, 1, 16, 0, 1, tzinfo=UTC), "20310302"),  # 00:00:01 in Beijing
        (datetime(2021, 12, 31, 16, 1, tzinfo=UTC), "20220101"),
    ],
)
def test_the_clock_of_the_database_alone_decides_both_ends(database, sku, placed_at, day):
    """Years before and after the machine's own, and around midnight in Beijing."""
    set_the_databases_clock(placed_at)
    order = an_order()
    assert order.created_at == placed_at
    assert order.expires_at == placed_at + timedelta(seconds=1800)
    assert order.order_no.startswith(day)
    set_the_databases_clock(placed_at + timedelta(seconds=1799.999))
    assert sweep(unlimited).orders_closed == 0
    set_the_databases_clock(placed_at + timedelta(seconds=1800))
    assert sweep(unlimited).orders_closed == 1


def test_a_paid_order_does_not_expire_and_its_hold_is_never_released(database, sku):
    order = an_order()
    assert accept(a_trade_notice(order)) is Result.APPLIED
    lose(database)
    age(database, 3600)
    assert sweep(unlimited) == Swept(holds_settled=1, left=NOTHING_LEFT)
    assert status_of(database, order) == ("PAID", None)
    assert hold_of(database, order) == "CONFIRMED"
    assert database.stock(sku) == (999, 0)
    assert_at_rest(database)


def test_of_a_hundred_expired_orders_those_paid_in_its_midst_stay_paid(database, sku, monkeypatch):
    """They were unpaid when the page was read."""
    orders = [an_order(member_id=n) for n in range(1, 101)]
    age(database, 1800)
    read, paid = store.read_expired_orders, orders[::10]

    def read_then_pay(*arguments, **more):
        page = read(*arguments, **more)
        for order in paid if page else ():
            accept(a_trade_notice(order))
        return page

    monkeypatch.setattr(store, "read_expired_orders", read_then_pay)
    swept = sweep(unlimited)
    assert (swept.orders_closed, swept.failed) == (90, [])
    assert {status_of(database, order)[0] for order in paid} == {"PAID"}
    assert_at_rest(database)
    assert database.stock(sku) == (990, 0)


@pytest.mark.parametrize("status", ["PENDING_PAYMENT", "PAYMENT_PROCESSING"])
@pytest.mark.parametrize("state", ["OPEN", "CLOSING"])
def test_an_order_with_a_payment_page_that_may_be_open_waits_for_the_channels_word(
    database, sku, status, state
):
    order = an_order()
    an_attempt(database, order, state=state)
    if status == "PAYMENT_PROCESSING":
        database.execute("UPDATE oms_order SET prev_status = status, status = %s", (status,))
    age(database, 3600)
    assert sweep(unlimited) == Swept(left={"orders": 1, "holds": 1})
    assert status_of(database, order) == (status, None)
    assert hold_of(database, order) == "RESERVED"


@pytest.mark.parametrize("status", ["PENDING_PAYMENT", "PAYMENT_PROCESSING"])
@pytest.mark.parametrize("state", ["CLOSED", "PAID"])
def test_an_order_whose_payment_pages_are_all_over_expires_like_any_other(
    database, sku, status, state
):
    """PAID and yet unpaid: a wrong sum used the page up, and goes back."""
    order = an_order()
    an_attempt(database, order, state=state)
    if status == "PAYMENT_PROCESSING":
        database.execute("UPDATE oms_order SET prev_status = status, status = %s", (status,))
    age(database, 1799)
    assert sweep(unlimited).orders_closed == 0
    age(database, 1)
    assert sweep(unlimited) == Swept(orders_closed=1, left=NOTHING_LEFT)
    assert status_of(database, order) == ("CLOSED", "EXPIRED")
    assert_at_rest(database)
    assert database.stock(sku) == (1000, 0)


def test_an_order_of_several_skus_gives_all_of_them_back(database):
    for sku_id in (1, 2, 3):
        a_sku(database, sku_id)
    an_order({1: 1, 2: 2, 3: 3})
    age(database, 1800)
    sweep(unlimited)
    assert_at_rest(database)
    assert [database.stock(sku_id) for sku_id in (1, 2, 3)] == [(10, 0)] * 3


def test_what_expires_gives_back_its_own_and_nothing_of_anothers(database, sku):
    closed, kept = an_order(member_id=1), an_order(member_id=2)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) WHERE id = %s", (closed.id,))
    assert sweep(unlimited).orders_closed == 1
    assert_at_rest(database)
    assert (hold_of(database, kept), database.stock(sku)) == ("RESERVED", (1000, 1))


def test_a_cancel_and_an_expiry_give_back_once(database, sku):
    order = an_order()
    age(database, 2400)
    sweep(unlimited)
    cancel(42, order.order_no)
    assert sweep(unlimited) == Swept(left=NOTHING_LEFT)
    assert_at_rest(database)
    assert database.stock(sku) == (1000, 0)
    assert status_of(database, order) == ("CLOSED", "EXPIRED")


def test_a_payment_after_the_end_pays_while_the_order_is_open_and_goes_back_once_it_is_closed(
    database, sku
):
    open_still, closed = an_order(member_id=1), an_order(member_id=2)
    age(database, 1800)
    assert accept(a_trade_notice(open_still)) is Result.APPLIED
    assert sweep(unlimited).orders_closed == 1
    assert accept(a_trade_notice(closed)) is Result.REFUND_PENDING
    assert_at_rest(database)
    assert database.stock(sku) == (999, 0)


def test_a_new_order_of_the_same_member_holds_anew_and_the_old_hold_stays_released(database):
    a_sku(database, stock=1)
    old = an_order()
    age(database, 2400)
    assert sweep(unlimited).orders_closed == 1
    new = an_order()
    assert (hold_of(database, old), hold_of(database, new)) == ("RELEASED", "RESERVED")
    assert_at_rest(database)


# --- orders that wait in line --------------------------------------------------------------------


def test_an_order_whose_turn_never_came_is_closed_after_five_minutes(database):
    a_sku(database, 2001, hot=True)
    order = an_order({2001: 1})
    lose(database)
    age(database, 300)
    swept = sweep(unlimited)
    assert (swept.orders_closed, swept.restaged, swept.failed) == (1, 0, [])
    assert status_of(database, order) == ("CLOSED", "OUT_OF_STOCK")
    assert_at_rest(database)
    assert database.stock(2001) == (10, 0)


# --- holds past their time -----------------------------------------------------------------------


def test_a_closed_orders_hold_is_released_by_the_sweep_itself(database, sku):
    order = an_order()
    age(database, 2400)
    assert sweep(unlimited) == Swept(orders_closed=1, holds_settled=1, left=NOTHING_LEFT)
    assert hold_of(database, order) == "RELEASED"
    assert database.stock(sku) == (1000, 0)


def test_a_hold_that_its_order_does_not_name_is_released_whatever_the_orders_status(database, sku):
    """Not on top of a hold of the same lines: only the items of this reservation go back."""
    orders = [an_order(member_id=n) for n in (1, 2)]
    accept(a_trade_notice(orders[0]))
    for order in orders:
        try_hold(f"{order.order_no}-2", order.id, {sku: 5})
    database.execute(
        "UPDATE ims_reservation SET expires_at = NOW(3) WHERE reservation_id LIKE '%%-2'"
    )
    assert sweep(unlimited).holds_settled == 2
    deliver_outbox(database)
    assert database.rows(
        "SELECT RIGHT(reservation_id, 1) AS n, state FROM ims_reservation ORDER BY order_id, n"
    ) == [
        {"n": "1", "state": "CONFIRMED"},
        {"n": "2", "state": "RELEASED"},
        {"n": "1", "state": "RESERVED"},
        {"n": "2", "state": "RELEASED"},
    ]
    assert database.stock(sku) == (999, 1)


def test_a_hold_of_no_order_is_reported_and_not_touched(database, sku):
    try_hold("nobody-1", 7, {sku: 5})
    database.execute("UPDATE ims_reservation SET expires_at = NOW(3)")
    swept = sweep(unlimited)
    assert (swept.failed, swept.holds_settled) == (["nobody-1: InvariantBroken"], 0)
    assert swept.left == {"orders": 0, "holds": 1}
    assert database.stock(sku) == (1000, 5)


def test_of_a_hundred_expired_holds_one_is_broken_and_the_other_99_are_settled(database):
    """Number 37 has a SKU of its own, whose counter says that less is locked than is held."""
    orders = []
    for n in range(1, 101):
        a_sku(database, n)
        orders.append(an_order({n: 1}, member_id=n))
    database.execute("UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 37")
    age(database, 2400)
    swept = sweep_expired.handler({}, Context(milliseconds=50_000))
    assert swept == {
        "orders_closed": 100,
        "holds_settled": 99,
        "restaged": 0,
        "asked": 0,
        "notices_decided": 0,
        "failed": [f"{orders[36].reservation_id}: InvariantBroken"],
        "left": {"orders": 0, "holds": 1},
    }
    assert database.count("ims_reservation", state="RELEASED") == 99
    assert hold_of(database, orders[36]) == ReservationState.RESERVED
    again = sweep_expired.handler({}, Context(milliseconds=50_000))
    assert (again["holds_settled"], again["failed"]) == (0, swept["failed"])
    database.execute("UPDATE ims_sku_stock SET lock_stock = 1 WHERE sku_id = 37")
    assert sweep(unlimited).holds_settled == 1
    assert_at_rest(database)


def test_an_order_that_cannot_be_closed_is_reported_and_the_next_are_closed(
    database, sku, monkeypatch
):
    orders = [an_order(member_id=n) for n in range(1, 6)]
    age(database, 1800)
    bad, expire_order = orders[2], orders_store.expire_order

    def expire_unless_bad(tx: Tx, order_id: int) -> bool:
        if order_id == bad.id:
            tx.execute("UPDATE oms_order SET lock_stock = 1 WHERE id = %s", (order_id,))
        return expire_order(tx, order_id)

    monkeypatch.setattr(orders_store, "expire_order", expire_unless_bad)
    swept = sweep(unlimited)
    assert swept.orders_closed == 4
    [failed] = swept.failed
    assert failed.startswith(f"{bad.reservation_id}: ")
    assert status_of(database, bad) == ("PENDING_PAYMENT", None)


# --- how far it goes -----------------------------------------------------------------------------


def test_it_goes_on_past_full_pages_and_past_rows_that_stay(database, sku, monkeypatch):
    """Rows that nobody can settle stand at the head of the page; all with the same time."""
    monkeypatch.setattr(store, "PAGE_SIZE", 3)
    for n in range(7):
        try_hold(f"nobody{n}-1", 900 + n, {sku: 1})
    for n in range(1, 8):
        an_order(member_id=n)
    database.execute("UPDATE ims_reservation SET expires_at = '2026-11-30'")
    database.execute("UPDATE oms_order SET expires_at = '2026-11-30'")
    swept = sweep(unlimited)
    assert (swept.orders_closed, swept.holds_settled, len(swept.failed)) == (7, 7, 7)
    assert swept.left == {"orders": 0, "holds": 7}


def test_it_stops_when_time_is_short_and_says_what_is_left(database, sku):
    for n in range(1, 6):
        an_order(member_id=n)
    age(database, 2400)
    moments = iter([True] * 3 + [False] * 100)
    swept = sweep(lambda: next(moments))
    assert (swept.orders_closed, swept.holds_settled) == (2, 0)
    assert swept.left == {"orders": 3, "holds": 5}
    assert sweep(unlimited).left == NOTHING_LEFT
    assert_at_rest(database)


def test_a_report_names_a_hundred_failures_at_most(database, sku, monkeypatch):
    monkeypatch.setattr(sweep_module, "_FAILED_MAX", 2)
    for n in range(4):
        try_hold(f"nobody{n}-1", 900 + n, {sku: 1})
    database.execute("UPDATE ims_reservation SET expires_at = NOW(3)")
    assert len(sweep(unlimited).failed) == 2


# --- what was lost -------------------------------------------------------------------------------


def a_lost_confirm(database: Database) -> Order:
    order = an_order()
    accept(a_trade_notice(order))
    lose(database)
    return order


def staged(database: Database, queue: str) -> int:
    return database.count("outbox", queue=queue)


def test_a_lost_confirm_is_said_again_after_a_minute(database, sku):
    order = a_lost_confirm(database)
    age(database, 59)
    assert sweep(unlimited) == Swept(left=NOTHING_LEFT)
    age(database, 2)
    assert sweep(unlimited) == Swept(restaged=1, left=NOTHING_LEFT)
    assert staged(database, "confirm") == 2
    assert_at_rest(database)
    assert hold_of(database, order) == "CONFIRMED"
    age(database, 3600)
    assert sweep(unlimited) == Swept(left=NOTHING_LEFT)


def test_a_lost_release_is_said_again_after_a_minute(database, sku):
    order = an_order()
    cancel(42, order.order_no)
    lose(database)
    age(database, 61)
    assert sweep(unlimited) == Swept(restaged=1, left=NOTHING_LEFT)
    assert_at_rest(database)
    assert (hold_of(database, order), database.stock(sku)) == ("RELEASED", (1000, 0))


def test_a_lost_hold_is_said_again_after_a_minute(database):
    a_sku(database, 2001, hot=True)
    order = an_order({2001: 1})
    lose(database)
    age(database, 59)
    assert sweep(unlimited).restaged == 0
    age(database, 2)
    assert sweep(unlimited) == Swept(restaged=1, left=NOTHING_LEFT)
    assert_at_rest(database)
    assert status_of(database, order) == ("PENDING_PAYMENT", None)


def test_a_hold_that_is_not_named_is_said_to_be_released_before_its_time_is_over(database, sku):
    order = an_order()
    try_hold(f"{order.order_no}-2", order.id, {sku: 5})
    assert sweep(unlimited) == Swept(restaged=1, left=NOTHING_LEFT)
    deliver_outbox(database)
    assert hold_of(database, order) == "RESERVED"
    assert database.stock(sku) == (1000, 1)


def test_what_is_open_or_settled_is_not_said_again(database, sku):
    an_order(member_id=1)
    settled = [an_order(member_id=n) for n in (2, 3)]
    accept(a_trade_notice(settled[0]))
    cancel(3, settled[1].order_no)
    deliver_outbox(database)
    age(database, 600)
    assert sweep(unlimited) == Swept(left=NOTHING_LEFT)


def test_it_is_said_again_at_growing_distances_of_at_most_an_hour(database, sku):
    a_lost_confirm(database)
    database.execute("UPDATE ims_reservation SET expires_at = NOW(3) + INTERVAL 30 DAY")
    pauses = []
    for _ in range(10):
        waited = 0
        while True:
            waited += 30
            database.execute("UPDATE outbox SET created_at = created_at - INTERVAL 30 SECOND")
            if sweep(unlimited).restaged:
                break
        lose(database)
        pauses.append(waited)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


def test_a_command_of_another_queue_does_not_delay_it(database, sku):
    """A release that was refused a moment ago says nothing about the confirm."""
    order = a_lost_confirm(database)
    age(database, 61)
    database.execute(
        "INSERT INTO outbox (message_id, queue, group_key, payload, next_at, sent_at) "
        "VALUES (%s, 'release', %s, '{}', NOW(3), NOW(3))",
        ("0" * 32, order.reservation_id),
    )
    assert sweep(unlimited).restaged == 1


def test_a_stale_page_says_nothing_of_what_was_settled_meanwhile(database, sku, monkeypatch):
    order = an_order()
    cancel(42, order.order_no)
    lose(database)
    age(database, 61)
    read = store.read_unsettled_holds

    def read_then_release(*arguments):
        page = read(*arguments)
        release(order.reservation_id or "", order.id)
        return page

    monkeypatch.setattr(store, "read_unsettled_holds", read_then_release)
    assert sweep(unlimited) == Swept(left=NOTHING_LEFT)


def test_a_replay_has_an_id_of_its_own_so_that_no_queue_drops_it(database, sku):
    a_lost_confirm(database)
    age(database, 61)
    sweep(unlimited)
    rows = database.rows("SELECT message_id, group_key, payload FROM outbox ORDER BY id")
    assert len({row["message_id"] for row in rows}) == 2
    assert len({row["group_key"] for row in rows}) == 1


# --- what was found has changed by the time its order is locked -----------------------------------


def found_hold(order: Order, order_id: int | None = None) -> store.OpenHold:
    hold_id = order.reservation_id or ""
    where = order.id if order_id is None else order_id
    return store.OpenHold(hold_id, where, order.status, is_named=True, mark=store.Mark())


def found_waiting(order: Order, order_id: int | None = None) -> store.OverdueOrder:
    where = order.id if order_id is None else order_id
    return store.OverdueOrder(where, order.reservation_id or "", store.Mark())


def test_nothing_is_done_for_an_order_that_is_gone(database, sku):
    order = an_order()
    assert not expire(order.id + 1)
    assert not restage.restage_hold(found_hold(order, order.id + 1))
    assert not restage.restage_reserve(found_waiting(order, order.id + 1))
    assert not restage.restage_reinstatement(found_waiting(order, order.id + 1))
    gone = store.OpenHold("nobody-1", order.id, order.status, is_named=True, mark=store.Mark())
    assert not restage.restage_hold(gone)
    assert database.count("outbox") == 0


@pytest.mark.parametrize("settled_as", ["RELEASED", "CONFIRMED"])
def test_a_hold_that_was_settled_meanwhile_is_not_counted(database, sku, monkeypatch, settled_as):
    """Neither as it should be, nor otherwise."""
    cancel(42, an_order().order_no)
    age(database, 3600)
    look = store.read_overdue_holds

    def look_too_early(*arguments):
        page = look(*arguments)
        database.execute("UPDATE ims_reservation SET state = %s", (settled_as,))
        return page

    monkeypatch.setattr(store, "read_overdue_holds", look_too_early)
    swept = sweep(unlimited)
    assert (swept.holds_settled, swept.failed) == (0, [])


def test_nothing_is_said_again_of_an_order_that_waits_for_it_no_more(database, sku):
    order = an_order()
    assert not restage.restage_hold(found_hold(order))
    assert not restage.restage_reserve(found_waiting(order))
    assert not restage.restage_reinstatement(found_waiting(order))
    assert database.count("outbox") == 0


def test_what_was_said_a_moment_ago_is_not_said_again(database, sku):
    order = an_order()
    accept(a_trade_notice(order))
    assert not restage.restage_hold(found_hold(order))
    assert database.count("outbox") == 1
