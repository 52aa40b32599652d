"""Every order of arrivals is counted, and lived to the same end in either way."""

from tests.proof.arrivals.orders import count_orders
from tests.proof.arrivals.section import SECTION
from tests.proof.section import Extent, Form, Tally


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
