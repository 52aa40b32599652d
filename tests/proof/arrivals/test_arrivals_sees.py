"""The section about arrival orders sees the faults that it is there for, and replays what it saw.

A fault is planted, and the life in which it matters is lived in its fixed share.
"""

import pytest

from tests.proof.arrivals import plants
from tests.proof.arrivals.orders import count_orders
from tests.proof.arrivals.section import SECTION
from tests.proof.section import Extent, Form, Tally, proved

EXTENT = Extent(Form.FIXED)

PLANTED = [
    (plants.a_release_without_a_tombstone, "cancelled-in-line", "release-1: acknowledged"),
    (plants.a_release_of_what_was_ordered, "cancelled-in-line", "stock of SKU 1001"),
    (plants.a_confirm_that_is_skipped_too_early, "its-hold-comes-late", "refused for good"),
    (plants.a_confirm_that_is_done_too_early, "its-hold-comes-late", "confirm-1: acknowledged"),
    (plants.a_stored_notice_that_is_replayed, "its-order-comes-late", "in other rows, at once"),
    (plants.a_notice_that_is_left_waiting, "given-back-in-parts", "in other rows, at once"),
    (
        plants.a_refund_that_is_done_again,
        "refunded-in-part-by-an-operator",
        "refunds at Alipay's",
    ),
]


@pytest.mark.parametrize(
    ("plant", "life", "seen"), PLANTED, ids=[plant.__name__ for plant, _, _ in PLANTED]
)
def test_it_sees(database, plant, life, seen):
    with plant():
        faults = proved(SECTION, life, database, EXTENT).faults
        assert any(seen in fault.why for fault in faults), faults
        fault = next(fault for fault in faults if seen in fault.why)
        with pytest.raises(AssertionError, match=seen):
            SECTION.replay(database, life, fault.case)
    SECTION.replay(database, life, fault.case)


def test_every_order_is_counted_though_many_are_lived_together(database):
    """Of three arrivals that come twice each: 6! / 2!3 orders, by the formula and by the ways that
    lead to the ends."""
    tally = Tally()
    SECTION.prove(database, "paid", Extent(Form.BOUNDED), tally)
    assert tally.faults == []
    assert tally.tried == tally.possible == count_orders(3, 2) == 90


def test_orders_that_are_lived_together_end_as_each_alone(database):
    """The long form's own way: one by one, from the beginning."""
    tally = Tally()
    SECTION.prove(database, "cancelled-in-line", Extent(Form.LONG, seed=3), tally)
    assert (tally.faults, tally.tried) == ([], 20)
