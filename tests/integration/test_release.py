"""release(): a hold is given back once, from its own items; before a hold, a tombstone."""

import pytest

from functions import release_stock
from lockstep.db.transaction import in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory import batch_store
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import HoldName, Refusal, Refused, Released, ReservationState
from lockstep.inventory.release import release
from lockstep.messaging.contracts import ReleaseStock
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.flows import a_notice

HOLD = "202611300100000000420001-1"
CANNOT = Refused(Refusal.RESERVATION_CANNOT_RELEASE)
LINES = {1001: 2, 1002: 1, 1003: 3}


@pytest.fixture
def order(database):
    for sku_id in LINES:
        a_sku(database, sku_id)
    return an_order(LINES)


def counters(database: Database) -> list[tuple[int, int]]:
    return [database.stock(sku_id) for sku_id in LINES]


HELD = [(10, 2), (10, 1), (10, 3)]
FREE = [(10, 0), (10, 0), (10, 0)]
SOLD = [(8, 0), (9, 0), (7, 0)]


def test_every_line_of_a_hold_is_given_back_together(database, order):
    assert counters(database) == HELD
    assert release(order.reservation_id, order.id) == Released(repeated=False)
    assert counters(database) == FREE
    assert database.value("SELECT state FROM ims_reservation") == "RELEASED"


def test_a_repeated_release_says_released_and_gives_nothing_twice(database, order):
    release(order.reservation_id, order.id)
    for _ in range(3):
        assert release(order.reservation_id, order.id) == Released(repeated=True)
    assert counters(database) == FREE


def test_after_a_confirm_a_release_is_refused_by_name_and_changes_nothing(database, order):
    confirm(order.reservation_id, order.id)
    assert release(order.reservation_id, order.id) == CANNOT
    assert counters(database) == SOLD
    assert database.value("SELECT state FROM ims_reservation") == "CONFIRMED"


def test_three_releases_with_a_confirm_between_never_go_below_zero(database, order):
    release(order.reservation_id, order.id)
    assert confirm(order.reservation_id, order.id) == Refused(Refusal.RESERVATION_NOT_RESERVED)
    release(order.reservation_id, order.id)
    release(order.reservation_id, order.id)
    assert counters(database) == FREE


def test_a_release_before_the_hold_leaves_a_tombstone(database):
    assert release(HOLD, 7) == Released(repeated=False)
    row = database.one("SELECT * FROM ims_reservation")
    assert (row["reservation_id"], row["order_id"], row["n"]) == (HOLD, 7, 1)
    assert (row["state"], row["request_hash"], row["expires_at"]) == ("RELEASED", None, None)
    assert database.count("ims_reservation_item") == 0
    assert release(HOLD, 7) == Released(repeated=True)
    assert database.count("ims_reservation") == 1


def test_a_release_in_the_name_of_another_order_is_a_conflict(database, order):
    assert release(order.reservation_id, order.id + 1) == Refused(
        Refusal.IDEMPOTENCY_PARAMETER_CONFLICT
    )
    assert counters(database) == HELD


def test_another_orders_hold_of_the_same_sku_stays(database, order):
    other = an_order({1001: 4}, member_id=7)
    cancel(order.member_id, order.order_no)
    release(order.reservation_id, order.id)
    release(order.reservation_id, order.id)
    assert database.stock(1001) == (10, 4)
    assert state_of(database, other.reservation_id) is ReservationState.RESERVED
    assert_at_rest(database)


def state_of(database: Database, reservation_id: str | None) -> ReservationState:
    return ReservationState(
        database.value(
            "SELECT state FROM ims_reservation WHERE reservation_id = %s", (reservation_id,)
        )
    )


def test_what_is_given_back_is_what_the_hold_itself_says(database, order):
    database.execute("UPDATE oms_order_item SET quantity = 1, amount = price")
    release(order.reservation_id, order.id)
    assert counters(database) == FREE


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ims_sku_stock SET lock_stock = 2 WHERE sku_id = 1003",
        "DELETE FROM ims_sku_stock WHERE sku_id = 1003",
    ],
)
def test_less_locked_than_the_hold_is_a_broken_invariant_and_nothing_changes(
    database, order, damage
):
    database.execute(damage)
    before = database.dump(["ims_sku_stock", "ims_reservation", "ims_reservation_item"])
    with pytest.raises(InvariantBroken, match=r"SKU .*1003"):
        release(order.reservation_id, order.id)
    after = database.dump(["ims_sku_stock", "ims_reservation", "ims_reservation_item"])
    assert after == before


def test_a_hold_that_came_between_the_look_and_the_tombstone_is_released(
    database, order, monkeypatch
):
    """The look finds nothing, the tombstone meets the hold: all runs again and releases it."""
    real = batch_store.lock_reservations
    looks = []

    def look(tx, reservation_ids):
        looks.append(reservation_ids)
        return {} if len(looks) == 1 else real(tx, reservation_ids)

    monkeypatch.setattr(batch_store, "lock_reservations", look)
    assert release(order.reservation_id, order.id) == Released(repeated=False)
    assert len(looks) == 2
    assert counters(database) == FREE


def test_a_tombstone_never_writes_over_a_hold(database, order):
    with pytest.raises(InvariantBroken, match="uk_reservation"):
        in_transaction(
            lambda tx: batch_store.insert_tombstones(tx, [HoldName(order.reservation_id, order.id)])
        )
    assert state_of(database, order.reservation_id) is ReservationState.RESERVED


def test_the_consumer_answers_none_for_a_release_and_its_repeat_and_names_a_refusal(
    database, order
):
    command = ReleaseStock(reservation_id=order.reservation_id, order_id=order.id)
    cancel(order.member_id, order.order_no)
    assert release_stock.decide([command, command], lambda: True) == [None, None]
    assert release_stock.decide([command], lambda: True) == [None]
    sold = an_order()
    confirm(sold.reservation_id or "", sold.id)
    stray = ReleaseStock(reservation_id=sold.reservation_id or "", order_id=sold.id)
    assert release_stock.decide([stray], lambda: True) == [Refusal.RESERVATION_CANNOT_RELEASE]


def test_a_paid_orders_hold_is_not_given_back_once_it_is_sold(database, order):
    accept(a_notice(database))
    confirm(order.reservation_id, order.id)
    assert release(order.reservation_id, order.id) == CANNOT
    assert_at_rest(database)


def test_a_number_that_the_order_knows_under_another_name_leaves_no_tombstone(database, order):
    order_id = database.value("SELECT id FROM oms_order")
    other = Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    assert release("another-1", order_id) == other
    assert database.count("ims_reservation") == 1
    assert counters(database) == HELD
