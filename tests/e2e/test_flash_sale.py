"""A flash sale on the deployed template: more members than units, all at once.

Small, for every run of the tests; `make bench-life` holds it with 5,000 orders for 1,000 units.
"""

import pytest

from infra.bench import flash_sale

ORDERS, UNITS, CLIENTS = 300, 60, 8
# Not even rung for again before this.
UNTIL_THE_SWEEP_SECONDS = 60


@pytest.fixture(scope="module")
def sale(shop):
    return flash_sale.hold(shop, ORDERS, UNITS, CLIENTS)


def test_exactly_as_many_have_a_hold_as_there_were_units(sale):
    assert sale.wrong == []
    assert (sale.held, sale.refused_at_once + sale.refused_in_line) == (UNITS, ORDERS - UNITS)


def test_every_order_in_line_is_decided_because_the_queue_rang(sale):
    """The sweep rings only for who has waited a minute."""
    assert sale.longest_wait < UNTIL_THE_SWEEP_SECONDS


def test_orders_in_line_are_decided_together(sale):
    assert sale.decisions < sale.held + sale.refused_in_line
