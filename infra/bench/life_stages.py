"""The whole life of orders through a deployed stack: placed, paid, told by Alipay, confirmed; or
placed, cancelled, released.

Stage by stage, so that each has its rate; what the queues do follows by itself, and how long it
took is read from the rows.
"""

import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from infra.bench.asking import answered
from infra.bench.way import WentWrong
from infra.local.shop import Reply, Shop
from infra.local.waiting import wait_until

SKUS: Final = 20
PRICE: Final = "9.90"
FIRST_MEMBER: Final = 500_000
PATIENCE_SECONDS: Final = 180

UNSETTLED: Final = """
SELECT COUNT(*) AS unsettled
FROM oms_order AS o
JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
WHERE o.order_no IN %s
  AND r.state <> %s
"""
# From the change that asks for it to the hold's last change.
SETTLED_AFTER: Final = """
SELECT TIMESTAMPDIFF(MICROSECOND, e.created_at, r.updated_at) / 1000000 AS seconds
FROM oms_order AS o
JOIN oms_order_event AS e ON e.order_id = o.id AND e.to_status = o.status
JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
WHERE o.order_no IN %s
"""

type Order = tuple[int, str]


@dataclass(frozen=True)
class Stage:
    """``took`` has a call's seconds each; of a queue's work, from what asked for it to its end."""

    path: str
    seconds: float
    took: Sequence[float]

    def document(self, clients: int) -> dict[str, Any]:
        ascending = sorted(self.took)
        return {
            "section": "life",
            "path": self.path,
            "way": "ours: the deployed stack",
            "clients": clients,
            "per_second": round(len(self.took) / self.seconds, 1),
            "p50_ms": round(statistics.median(ascending) * 1000, 1),
            "p99_ms": round(ascending[int(len(ascending) * 0.99)] * 1000, 1),
            "done": len(self.took),
        }


def live(shop: Shop, orders: int, clients: int) -> list[Stage]:
    """Let half of ``orders`` be paid and the other half be cancelled. Raises WentWrong."""
    skus = [shop.new_sku("Of a whole life", PRICE, orders) for _ in range(SKUS)]
    stages, placed = [], list[Order]()

    def place(member: int) -> None:
        key = secrets.token_hex(8)
        reply = _done(lambda: shop.order(member, {skus[member % SKUS]: 1}, key=key))
        placed.append((member, reply.document["order"]["order_no"]))

    members = range(FIRST_MEMBER, FIRST_MEMBER + orders)
    stages.append(_stage("place", place, members, clients))
    paid, cancelled = placed[::2], placed[1::2]
    stages.append(_stage("start payment", lambda order: _start(shop, order), paid, clients))
    stages.append(_stage("pay", lambda order: shop.pay(order[1], PRICE), paid, clients))
    stages.append(_settled(shop, "notice to confirmed", paid, "CONFIRMED"))
    stages.append(_stage("cancel", lambda order: _cancel(shop, order), cancelled, clients))
    stages.append(_settled(shop, "cancel to released", cancelled, "RELEASED"))
    if broken := shop.broken_invariants():
        raise WentWrong(f"these invariants do not hold: {', '.join(broken)}")
    return stages


def _start(shop: Shop, order: Order) -> None:
    member, order_no = order
    _done(lambda: shop.start_payment(member, order_no))


def _cancel(shop: Shop, order: Order) -> None:
    member, order_no = order
    _done(lambda: shop.call("POST", f"/orders/{order_no}/cancel", member))


def _done(ask: Callable[[], Reply]) -> Reply:
    reply, _ = answered(ask)
    if reply.status not in {200, 201}:
        raise WentWrong(f"an answer that nobody expects: {reply}")
    return reply


def _stage[T](path: str, act: Callable[[T], object], of: Sequence[T], clients: int) -> Stage:
    def timed(one: T) -> float:
        began = time.monotonic()
        act(one)
        return time.monotonic() - began

    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        took = list(pool.map(timed, of))
    return Stage(path, time.monotonic() - began, took)


def _settled(shop: Shop, path: str, orders: Sequence[Order], state: str) -> Stage:
    """Wait until every hold is in ``state``."""
    order_nos = tuple(order_no for _, order_no in orders)
    began = time.monotonic()
    wait_until(
        lambda: shop.rows(UNSETTLED, (order_nos, state))[0]["unsettled"] == 0,
        f"{len(order_nos)} holds {state}",
        seconds=PATIENCE_SECONDS,
    )
    seconds = time.monotonic() - began
    took = [float(row["seconds"]) for row in shop.rows(SETTLED_AFTER, (order_nos,))]
    return Stage(path, max(seconds, 0.001), took)
