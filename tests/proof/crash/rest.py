"""What must hold when a life is over, whatever happened in it."""

import re
from typing import Final

from tests.proof.world import World
from tests.support.histories import DROPPED, what_is_left

type Rows = dict[str, list[str]]

# How often a message was sent, and in whose name, is the way and not where it led.
_OF_THE_WAY: Final = DROPPED | {"attempts", "correlation_id"}
# That an order waited for an answer of Alipay's is in its trail, and nowhere else once it came.
_WAITS: Final = '"to_status": "PAYMENT_PROCESSING"'
_WAITED: Final = re.compile(r'("(?:from|prev)_status": )"PAYMENT_PROCESSING"')
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+]+")


def rows(world: World) -> Rows:
    """To compare two lives by: Alipay numbers its trades and notices anew in each."""
    trades = world.books.trades()
    named = {trade.trade_no: f"trade {n}" for n, trade in enumerate(trades, 1)}
    notices = world.database.rows("SELECT notify_id FROM oms_notice")
    named |= {row["notify_id"]: "a notice" for row in notices}
    left = what_is_left(world.database, _OF_THE_WAY, named)
    return {
        table: sorted(
            _WAITED.sub(r'\1"PENDING_PAYMENT"', _TIME.sub("a time", row))
            for row in left[table]
            if _WAITS not in row
        )
        for table in left
    }


def ends(world: World) -> str:
    """The orders' statuses and the payments' states with what went back, ``PAID, APPLIED 0.00``."""
    orders = world.database.rows("SELECT status FROM oms_order ORDER BY id")
    payments = "SELECT state, refunded_amount FROM oms_order_payment ORDER BY id"
    words = [row["status"] for row in orders]
    words += [" ".join(map(str, row.values())) for row in world.database.rows(payments)]
    return ", ".join(words)


def check_sends(world: World) -> None:
    """A message that a queue took was written, and one that is marked as sent was taken."""
    staged = world.database.rows("SELECT message_id, sent_at FROM outbox")
    assert world.wire.taken <= {row["message_id"] for row in staged}, "sent, and not written"
    marked = {row["message_id"] for row in staged if row["sent_at"] is not None}
    assert marked <= world.wire.taken, "marked as sent, and not sent"
