"""A COMMIT that got lost, or whose answer did: each operation still ends in the rows it should.

A proxy between cuts the session at the COMMIT; the operation itself finds out by its business key.
"""

import pytest

from lockstep.db import connection
from lockstep.db.transaction import in_transaction
from tests.support.builders import a_sku, assert_at_rest
from tests.support.database import forget_settings
from tests.support.flaky_proxy import Cut, between
from tests.support.flows import FLOWS, TALKS
from tests.support.histories import what_is_left

RAISE_STOCK = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = 1001"


@pytest.fixture
def proxy(database, monkeypatch):
    """The product's sessions come by way of the proxy."""
    with between(database) as proxy:
        monkeypatch.setenv("DATABASE_PORT", str(proxy.port))
        forget_settings()
        yield proxy
        connection.discard()


@pytest.mark.parametrize("cut", Cut)
@pytest.mark.parametrize("flow", FLOWS + TALKS, ids=str)
def test_an_operation_ends_in_the_same_rows_as_without_the_fault(database, proxy, flow, cut):
    """A sweep whose claim was committed finds its own lease: the sweep after it asks."""
    flow.prepare(database)
    assert flow.done(flow.run(database))
    assert_at_rest(database)
    expected = what_is_left(database)

    database.empty()
    flow.prepare(database)
    proxy.arm(cut)
    assert flow.done(flow.run(database)) or (flow in TALKS and flow.done(flow.run(database)))
    assert proxy.cuts == 1
    assert_at_rest(database)
    assert what_is_left(database) == expected


@pytest.mark.parametrize(("cut", "raised_by"), [(Cut.BEFORE_COMMIT, 1), (Cut.AFTER_COMMIT, 2)])
def test_work_without_a_business_key_runs_again_though_it_was_committed(
    database, proxy, cut, raised_by
):
    """The contract of in_transaction, and the proof that the proxy loses what it says."""
    a_sku(database)
    proxy.arm(cut)
    in_transaction(lambda tx: tx.execute(RAISE_STOCK))
    assert proxy.cuts == 1
    assert database.stock(1001) == (10 + raised_by, 0)
