"""A COMMIT that got lost, or whose answer did: a proxy between cuts the session there.

That every operation still ends in the rows that it should is shown by the proof's section "crash".
"""

import pytest

from lockstep.db import connection
from lockstep.db.transaction import in_transaction
from tests.support.builders import a_sku
from tests.support.database import forget_settings
from tests.support.flaky_proxy import Cut, between

RAISE_STOCK = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = 1001"


@pytest.fixture
def proxy(database, monkeypatch):
    """The product's sessions come by way of the proxy."""
    with between(database) as proxy:
        monkeypatch.setenv("DATABASE_PORT", str(proxy.port))
        forget_settings()
        yield proxy
        connection.discard()


@pytest.mark.parametrize(("cut", "raised_by"), [(Cut.BEFORE_COMMIT, 1), (Cut.AFTER_COMMIT, 2)])
def test_work_without_a_business_key_runs_again_though_it_was_committed(
    database, proxy, cut, raised_by
):
    """The contract of in_transaction, on a connection that is really cut."""
    a_sku(database)
    proxy.arm(cut)
    in_transaction(lambda tx: tx.execute(RAISE_STOCK))
    assert proxy.cuts == 1
    assert database.stock(1001) == (10 + raised_by, 0)
