"""A flash sale through a deployed stack: many members order one piece of a hot SKU at once.

Each keeps asking with one idempotency key until there is an answer. An order that was taken waits
in line, and its trail tells when it was decided; whoever finds the SKU sold out may be refused
before. Afterwards exactly as many orders have a hold as there were units, everybody else was told
OUT_OF_STOCK, and every invariant holds.
"""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from infra.bench.asking import answered
from infra.bench.way import WentWrong
from infra.local.shop import Reply, Shop
from infra.local.waiting import wait_until

FIRST_MEMBER: Final = 100_000
# From the end of the burst to the last decision.
PATIENCE_SECONDS: Final = 120
WAIT_SECONDS_MOST: Final = 60
# Of those that were refused after they had been taken, so many ask the API what became of them.
ASKING: Final = 20

WAITING: Final = """
SELECT COUNT(*) AS waiting
FROM oms_order
WHERE turn_sku_id = %s
  AND status = 'RESERVING'
"""
DECIDED: Final = """
SELECT o.order_no, o.member_id, o.status, o.close_reason,
       TIMESTAMPDIFF(MICROSECOND, o.created_at, e.created_at) / 1000000 AS waited,
       e.created_at AS decided_at
FROM oms_order AS o
LEFT JOIN oms_order_event AS e ON e.order_id = o.id AND e.from_status = 'RESERVING'
WHERE o.turn_sku_id = %s
ORDER BY o.id
"""

type Word = Literal["taken", "refused"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a member was told in the end, after how many asks and how long."""

    word: Word
    asks: int
    seconds: float


@dataclass(frozen=True)
class Sale:
    """``burst`` is from the first request to the last answer, ``until_last`` to the last decision;
    ``longest_wait`` is from a taken order's time to its decision's, in seconds."""

    orders: int
    units: int
    clients: int
    held: int
    refused_at_once: int
    refused_in_line: int
    burst: float
    until_last: float
    longest_wait: float
    longest_answer: float
    decisions: int
    asked_again: int
    wrong: list[str] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.orders / self.burst

    def document(self) -> dict[str, Any]:
        return {
            "orders": self.orders,
            "units": self.units,
            "clients": self.clients,
            "held": self.held,
            "refused_at_the_gate": self.refused_at_once,
            "refused_in_line": self.refused_in_line,
            "orders_per_second": round(self.per_second, 1),
            "burst_seconds": round(self.burst, 1),
            "until_last_decision_seconds": round(self.until_last, 1),
            "longest_wait_seconds": round(self.longest_wait, 1),
            "longest_answer_seconds": round(self.longest_answer, 1),
            "decisions": self.decisions,
            "asked_again": self.asked_again,
            "wrong": self.wrong,
        }


def hold(shop: Shop, orders: int, units: int, clients: int) -> Sale:
    """Sell ``units`` to ``orders`` members, of whom ``clients`` ask at a time."""
    sku_id = shop.new_sku("Of a flash sale", "9.90", units, hot=True)
    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        members = range(FIRST_MEMBER, FIRST_MEMBER + orders)
        told = list(pool.map(lambda member: _buy(shop, sku_id, member), members))
    burst = time.monotonic() - began
    wait_until(
        lambda: shop.rows(WAITING, (sku_id,))[0]["waiting"] == 0,
        "the last order's turn",
        seconds=PATIENCE_SECONDS,
    )
    until_last = time.monotonic() - began
    return _counted(shop, sku_id, units, clients, told, burst, until_last)


def _counted(
    shop: Shop,
    sku_id: int,
    units: int,
    clients: int,
    told: list[Told],
    burst: float,
    until_last: float,
) -> Sale:
    rows = shop.rows(DECIDED, (sku_id,))
    out_of_stock = [row for row in rows if row["close_reason"] == "OUT_OF_STOCK"]
    sale = Sale(
        orders=len(told),
        units=units,
        clients=clients,
        held=sum(row["status"] == "PENDING_PAYMENT" for row in rows),
        refused_at_once=sum(one.word == "refused" for one in told),
        refused_in_line=len(out_of_stock),
        burst=burst,
        until_last=until_last,
        longest_wait=max((float(row["waited"] or 0) for row in rows), default=0.0),
        longest_answer=max(one.seconds for one in told),
        decisions=len({row["decided_at"] for row in rows}),
        asked_again=sum(one.asks - 1 for one in told),
    )
    taken = sum(one.word == "taken" for one in told)
    sale.wrong.extend(_wrong(sale, taken, len(rows)))
    sale.wrong.extend(_untold(shop, out_of_stock[:: max(1, len(out_of_stock) // ASKING)]))
    if shop.stock(sku_id) != (units, sale.held):
        sale.wrong.append(f"{shop.stock(sku_id)} are on hand and locked")
    sale.wrong.extend(
        f"{name}: {len(rows)} break it" for name, rows in shop.broken_invariants().items()
    )
    return sale


def _wrong(sale: Sale, taken: int, rows: int) -> Iterator[str]:
    """What the sale promises, in so many figures."""
    held = min(sale.orders, sale.units)
    refused = sale.refused_at_once + sale.refused_in_line
    for found, expected, what in (
        (sale.held, held, "orders have a hold"),
        (refused, sale.orders - held, "members were told OUT_OF_STOCK"),
        (rows, taken, "orders are there of those that were taken"),
    ):
        if found != expected:
            yield f"{found:,} {what}, and not {expected:,}"
    longest = max(sale.longest_wait, sale.longest_answer)
    if longest > sale.burst + WAIT_SECONDS_MOST:
        yield f"somebody waited {longest:.0f} s, the burst and {longest - sale.burst:.0f} s more"


def _untold(shop: Shop, orders: list[dict[str, Any]]) -> Iterator[str]:
    """Those whom the API tells something else than that the SKU is sold out."""
    for order in orders:
        reply = shop.call("GET", f"/orders/{order['order_no']}", order["member_id"])
        shown = reply.document.get("order", reply.document)
        if (shown.get("status"), shown.get("close_reason")) != ("CLOSED", "OUT_OF_STOCK"):
            yield f"{order['order_no']} is shown as {shown}"


def _buy(shop: Shop, sku_id: int, member: int) -> Told:
    key, began = secrets.token_hex(8), time.monotonic()
    reply, asks = answered(lambda: shop.order(member, {sku_id: 1}, key=key))
    return Told(_word(reply), asks, time.monotonic() - began)


def _word(reply: Reply) -> Word:
    if reply.status in {200, 201}:
        return "taken"
    if reply.status == 409 and reply.document["code"] == "OUT_OF_STOCK":
        return "refused"
    raise WentWrong(f"an answer to an order that nobody expects: {reply}")
