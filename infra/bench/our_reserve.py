"""Our reserve: orders wait for hot SKUs, and workers of ``reserve_stock`` decide them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from functions import reserve_stock
from infra.bench import our_rows
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.ours import events_of, own_session
from infra.bench.way import PLENTY, Verdict
from infra.local.lambda_events import Context
from infra.measuring.ground import Ground
from lockstep.db import connection
from lockstep.db.transaction import in_transaction
from lockstep.messaging.consumer import MESSAGE_SECONDS
from lockstep.messaging.contracts import ReserveStock
from lockstep.orders import hold

# What SQS hands over of a FIFO queue.
EVENT_MAX: Final = 10
# Of how many orders a worker asks at once which is the first that still waits.
LOOK_MAX: Final = 1000
DEPLOYED: Final = hold.BATCH_MAX
WAITING: Final = """
SELECT id
FROM oms_order
WHERE id IN %s
  AND status = 'RESERVING'
ORDER BY id
LIMIT 1
"""


@dataclass(frozen=True)
class OurReserve:
    """``orders`` wait and are decided, ``batch_max`` in a transaction (None: as it is deployed).

    A client is a worker. It is handed the event of the first ten that still wait, and looks for
    them in between, on the clock. A latency is that of a transaction, the wait for a turn included.
    """

    orders: int
    batch_max: int | None = None
    skus: int = 1
    stock: int = PLENTY

    name: ClassVar[str] = "ours: reserve_stock"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        our_rows.clear(ground)
        our_rows.add_skus(ground, self.skus, self.stock, hot=True)
        our_rows.add_orders(ground, "RESERVING", self.orders, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        events = {
            order_id: event
            for order_ids, event in events_of(ReserveStock, self.orders, EVENT_MAX, seat)
            for order_id in order_ids
        }
        queue, context = sorted(events), Deadline(seconds=seat.seconds)
        vars(hold).update(BATCH_MAX=self.batch_max or DEPLOYED, in_transaction=_timed)
        _transactions.took = []

        def act() -> int | None:
            first = _first_waiting(queue)
            if first is None:
                return None
            reserve_stock.handler(events[first], context)
            return EVENT_MAX

        with own_session():
            yield Client(act, _transactions.took)

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        """How many were decided, only the tables know: a call decides more than it is handed."""
        [decided] = ground.row("SELECT COUNT(*) FROM oms_order WHERE status <> 'RESERVING'")
        [over] = ground.row("SELECT SUM(GREATEST(lock_stock - stock, 0)) FROM ims_sku_stock")
        broken = our_rows.broken(ground, at_rest=decided == self.orders)
        if not decided:
            broken.append("nothing was decided")
        return Verdict(decided, int(over), broken)


def _first_waiting(order_ids: list[int]) -> int | None:
    """The first that still waits; whoever does not is taken off."""
    while order_ids:
        row = connection.current().one(WAITING, (tuple(order_ids[:LOOK_MAX]),))
        if row is not None:
            del order_ids[: order_ids.index(row["id"])]
            return order_ids[0]
        del order_ids[:LOOK_MAX]
    return None


@dataclass
class Deadline(Context):
    """Of a function that begins no transaction once ``seconds`` are over since it first looked."""

    seconds: float = 0
    _end: float | None = field(default=None, init=False)

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        if self._end is None:
            self._end = time.monotonic() + self.seconds + MESSAGE_SECONDS
        return int((self._end - time.monotonic()) * 1000)


_transactions: Final = threading.local()


def _timed(*arguments: Any, **named: Any) -> Any:
    began = time.monotonic()
    try:
        return in_transaction(*arguments, **named)
    finally:
        _transactions.took.append(time.monotonic() - began)
