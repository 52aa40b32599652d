"""A hold without an order: reserve() in a transaction of its own."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.inventory.model import Held, Refused, Short
from lockstep.inventory.reserve import reserve

HOLD: Final = "202611300100000000420001-1"
UNTIL: Final = datetime(2026, 12, 1, tzinfo=UTC)
LINES: Final = {1001: 2, 1002: 1, 1003: 3}


def reserve_alone(
    lines: Mapping[int, int] = LINES, hold: str = HOLD, order_id: int = 1
) -> Held | Short | Refused:
    """reserve() and commit; on a shortage roll back, as every caller must."""

    def work(tx: Tx) -> Held | Short | Refused:
        outcome = reserve(tx, hold, order_id, lines, UNTIL)
        if isinstance(outcome, Short):
            raise RollBack(outcome)
        return outcome

    return in_transaction(work)
