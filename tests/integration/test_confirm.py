"""confirm(): a hold becomes a sale, once; too early is told from too late by the order alone."""

import pytest

from functions import confirm_stock
from lockstep.errors import InvariantBroken
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Refusal, Refused
from lockstep.inventory.release import release
from lockstep.messaging.consumer import Answer, DeliverAgain
from lockstep.messaging.contracts import ConfirmStock
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.flows import LINES, a_notice

NOT_RESERVED = Refused(Refusal.RESERVATION_NOT_RESERVED)


@pytest.fixture
def order(database):
    """Two of SKU 1001 and one of SKU 1002, held and not paid."""
    a_sku(database, 1001)
    a_sku(database, 1002)
    return an_order(LINES)


def counters(database: Database) -> tuple[tuple[int, int], tuple[int, int]]:
    return database.stock(1001), database.stock(1002)


HELD = ((10, 2), (10, 1))
SOLD = ((8, 0), (9, 0))


def test_a_hold_becomes_a_sale(database, order):
    assert counters(database) == HELD
    assert confirm(order.reservation_id, order.id) == Confirmed(repeated=False)
    assert counters(database) == SOLD
    assert database.value("SELECT state FROM ims_reservation") == "CONFIRMED"


def test_a_repeated_confirm_says_confirmed_and_takes_nothing_twice(database, order):
    confirm(order.reservation_id, order.id)
    for _ in range(3):
        assert confirm(order.reservation_id, order.id) == Confirmed(repeated=True)
    assert counters(database) == SOLD


def test_after_a_release_a_confirm_is_refused_by_name(database, order):
    release(order.reservation_id, order.id)
    assert confirm(order.reservation_id, order.id) == NOT_RESERVED
    assert counters(database) == ((10, 0), (10, 0))


def test_a_confirm_that_comes_before_the_hold_is_refused_and_leaves_nothing(database):
    assert confirm("202611300100000000420001-1", 1) == NOT_RESERVED
    assert database.count("ims_reservation") == 0


def test_a_tombstone_is_not_confirmed(database):
    release("202611300100000000420001-1", 1)
    assert confirm("202611300100000000420001-1", 1) == NOT_RESERVED


def test_a_confirm_in_the_name_of_another_order_is_a_conflict(database, order):
    assert confirm(order.reservation_id, order.id + 1) == Refused(
        Refusal.IDEMPOTENCY_PARAMETER_CONFLICT
    )
    assert counters(database) == HELD


def test_what_is_sold_is_what_the_hold_itself_says(database, order):
    """Lines written over later, by whoever, do not change what was held."""
    database.execute("UPDATE oms_order_item SET quantity = 5, amount = price * 5")
    confirm(order.reservation_id, order.id)
    assert counters(database) == SOLD


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ims_sku_stock SET lock_stock = 0 WHERE sku_id = 1002",
        "UPDATE ims_sku_stock SET lock_stock = 0, stock = 0 WHERE sku_id = 1002",
        "DELETE FROM ims_sku_stock WHERE sku_id = 1002",
    ],
)
def test_counters_below_the_hold_are_a_broken_invariant_and_nothing_changes(
    database, order, damage
):
    database.execute(damage)
    before = database.dump(["ims_sku_stock", "ims_reservation", "ims_reservation_item"])
    with pytest.raises(InvariantBroken, match=r"SKU .*1002"):
        confirm(order.reservation_id, order.id)
    after = database.dump(["ims_sku_stock", "ims_reservation", "ims_reservation_item"])
    assert after == before


def command(order: Order) -> ConfirmStock:
    return ConfirmStock(reservation_id=order.reservation_id or "", order_id=order.id)


def decided(one: ConfirmStock) -> Answer:
    [answer] = confirm_stock.decide([one], lambda: True)
    return answer


def test_too_early_is_delivered_again_while_the_order_is_paid(database, order):
    """The order is paid and its hold is not there: the stock must come, so the command waits."""
    accept(a_notice(database))
    database.execute("DELETE FROM ims_reservation_item")
    database.execute("DELETE FROM ims_reservation")
    too_early = decided(command(order))
    assert isinstance(too_early, DeliverAgain)
    assert order.reservation_id in str(too_early)


def test_a_paid_order_whose_hold_was_released_is_never_acknowledged(database, order):
    release(order.reservation_id, order.id)
    accept(a_notice(database))
    assert isinstance(decided(command(order)), DeliverAgain)
    assert counters(database) == ((10, 0), (10, 0))


def test_too_late_is_refused_for_good_where_the_order_is_closed(database, order):
    cancel(order.member_id, order.order_no)
    release(order.reservation_id, order.id)
    assert decided(command(order)) is Refusal.RESERVATION_NOT_RESERVED


def test_a_confirm_for_an_order_that_does_not_exist_is_refused_for_good(database):
    stray = ConfirmStock(reservation_id="202611300100000000420001-1", order_id=1)
    assert decided(stray) is Refusal.RESERVATION_NOT_RESERVED


def test_a_conflict_is_refused_for_good_also_while_the_order_is_paid(database, order):
    accept(a_notice(database))
    other = an_order()
    stray = ConfirmStock(reservation_id=other.reservation_id or "", order_id=order.id)
    assert decided(stray) is Refusal.IDEMPOTENCY_PARAMETER_CONFLICT


def test_a_paid_orders_hold_is_confirmed_and_the_repeat_is_no_refusal(database, order):
    accept(a_notice(database))
    assert decided(command(order)) is None
    assert decided(command(order)) is None
    assert counters(database) == SOLD
    assert_at_rest(database)
