"""reserve(): every line or none, once per reservation, and never after a release."""

import pytest

from lockstep.errors import InvariantBroken
from lockstep.fingerprint import merge_lines
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import (
    Confirmed,
    Held,
    Refusal,
    Refused,
    Released,
    ReservationState,
    Short,
)
from lockstep.inventory.release import release
from tests.support.builders import a_sku
from tests.support.database import Database
from tests.support.holds import HOLD, LINES, UNTIL, reserve_alone

SECOND_HOLD = "202611300100000000420001-2"


@pytest.fixture
def skus(database):
    for sku_id in LINES:
        a_sku(database, sku_id)
    return database


def locked(database: Database) -> dict[int, int]:
    rows = database.rows("SELECT sku_id, lock_stock FROM ims_sku_stock ORDER BY sku_id")
    return {row["sku_id"]: row["lock_stock"] for row in rows}


NOTHING = {1001: 0, 1002: 0, 1003: 0}


def test_the_first_reserve_holds_every_line(skus):
    assert reserve_alone() == Held(repeated=False, state=ReservationState.RESERVED)
    assert locked(skus) == LINES
    row = skus.one("SELECT * FROM ims_reservation")
    assert (row["reservation_id"], row["order_id"], row["n"]) == (HOLD, 1, 1)
    assert row["state"] == "RESERVED"
    assert row["expires_at"] == UNTIL.replace(tzinfo=None)
    items = skus.rows("SELECT sku_id, quantity FROM ims_reservation_item")
    assert {item["sku_id"]: item["quantity"] for item in items} == LINES
    assert skus.stock(1001) == (10, 2)


def test_a_repeated_reserve_says_reserved_and_holds_nothing_twice(skus):
    reserve_alone()
    for _ in range(3):
        assert reserve_alone() == Held(repeated=True, state=ReservationState.RESERVED)
    assert locked(skus) == LINES


def test_a_repeat_in_another_order_of_lines_is_the_same_request(skus):
    reserve_alone()
    assert reserve_alone(dict(reversed(LINES.items()))) == Held(
        repeated=True, state=ReservationState.RESERVED
    )


def test_after_a_confirm_a_reserve_says_confirmed_and_holds_nothing(skus):
    reserve_alone()
    confirm(HOLD, 1)
    assert reserve_alone() == Held(repeated=True, state=ReservationState.CONFIRMED)
    assert locked(skus) == NOTHING


def test_after_a_release_a_reserve_is_refused_by_name(skus):
    reserve_alone()
    release(HOLD, 1)
    assert reserve_alone() == Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    assert locked(skus) == NOTHING


def test_a_release_that_came_first_refuses_the_late_reserve(skus):
    assert release(HOLD, 1) == Released(repeated=False)
    assert reserve_alone() == Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    assert locked(skus) == NOTHING
    assert skus.count("ims_reservation_item") == 0
    assert skus.value("SELECT state FROM ims_reservation") == "RELEASED"


@pytest.mark.parametrize(
    ("lines", "order_id"),
    [
        ({1001: 3, 1002: 1, 1003: 3}, 1),
        ({1001: 2, 1002: 1}, 1),
        (LINES, 2),
    ],
)
def test_the_same_id_with_other_lines_or_for_another_order_is_a_conflict(skus, lines, order_id):
    reserve_alone()
    assert reserve_alone(lines, order_id=order_id) == Refused(
        Refusal.IDEMPOTENCY_PARAMETER_CONFLICT
    )
    assert locked(skus) == LINES


def test_the_same_number_of_an_order_under_another_id_is_a_broken_invariant(skus):
    reserve_alone()
    with pytest.raises(InvariantBroken, match="another id"):
        reserve_alone(hold="elsewhere-1")
    assert locked(skus) == LINES


@pytest.mark.parametrize("short", LINES)
def test_one_short_line_leaves_no_line_held(skus, short):
    skus.execute("UPDATE ims_sku_stock SET stock = 0 WHERE sku_id = %s", (short,))
    assert reserve_alone() == Short(short)
    assert locked(skus) == NOTHING
    assert skus.count("ims_reservation") == 0
    assert skus.count("ims_reservation_item") == 0


def test_the_last_unit_can_be_held_and_not_one_more(skus):
    assert isinstance(reserve_alone({1001: 10}), Held)
    assert reserve_alone({1001: 1}, SECOND_HOLD) == Short(1001)
    assert skus.stock(1001) == (10, 10)


def test_what_others_hold_is_not_available(skus):
    reserve_alone({1001: 8})
    assert reserve_alone({1001: 3}, "other-1", order_id=2) == Short(1001)
    assert isinstance(reserve_alone({1001: 2}, "other-1", order_id=2), Held)
    assert skus.stock(1001) == (10, 10)


def test_a_sku_that_does_not_exist_is_short(skus):
    assert reserve_alone({1001: 1, 9999: 1}) == Short(9999)
    assert locked(skus) == NOTHING


def test_a_fresh_hold_after_a_release_has_the_next_number(skus):
    reserve_alone()
    release(HOLD, 1)
    assert reserve_alone(hold=SECOND_HOLD) == Held(repeated=False, state=ReservationState.RESERVED)
    states = skus.rows("SELECT n, state FROM ims_reservation ORDER BY n")
    assert states == [{"n": 1, "state": "RELEASED"}, {"n": 2, "state": "RESERVED"}]
    # A late command for the first is answered from the first.
    assert release(HOLD, 1) == Released(repeated=True)
    assert confirm(HOLD, 1) == Refused(Refusal.RESERVATION_NOT_RESERVED)
    assert locked(skus) == LINES
    assert confirm(SECOND_HOLD, 1) == Confirmed(repeated=False)


def test_lines_from_an_iterator_are_held_like_those_from_a_list(skus):
    pairs = [(1001, 1), (1002, 2), (1001, 3)]
    reserve_alone(merge_lines(pairs), "list-1", order_id=1)
    from_list = locked(skus)
    reserve_alone(merge_lines(iter(pairs)), "iterator-1", order_id=2)
    assert from_list == {1001: 4, 1002: 2, 1003: 0}
    assert locked(skus) == {sku_id: 2 * quantity for sku_id, quantity in from_list.items()}
