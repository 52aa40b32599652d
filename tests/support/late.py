"""An order that expired, and money for it that was paid in time all the same."""

import pytest

from lockstep.orders.close import expire
from tests.support.builders import a_sku
from tests.support.database import Database, forget_settings
from tests.support.notices import the_order

# After the base notice's gmt_payment: 2026-10-24 10:00:05 in Beijing.
IN_TIME = "2026-10-24 02:00:05"
TOO_LATE = "2026-10-24 02:00:04.999"


def reinstating(monkeypatch: pytest.MonkeyPatch, policy: str = "REINSTATE") -> None:
    """Let the deployment revive expired orders whose money was in time."""
    monkeypatch.setenv("LATE_PAYMENT_POLICY", policy)
    forget_settings()


def an_expired_order(
    database: Database, order_no: str = "O1", *, expired_at: str = IN_TIME, stock: int = 10
) -> int:
    """Order ``order_no`` of 9.90, one of SKU 1001, closed as EXPIRED; its id. Its hold is still
    RESERVED: nobody has carried out its release."""
    if not database.count("ims_sku_stock", sku_id=1001):
        a_sku(database, stock=stock)
    order_id = the_order(database, order_no)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) WHERE id = %s", (order_id,))
    assert expire(order_id)
    database.execute("UPDATE oms_order SET expires_at = %s WHERE id = %s", (expired_at, order_id))
    return order_id
