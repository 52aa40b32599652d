"""The present of a run: orders that a path finds, and everything new taken away again after it.

It is as large beside a long past as beside a short one, and comes from as many members.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from infra.bench import growth_rows
from infra.bench.growth_rows import STOCK
from infra.measuring.ground import Ground

# An outbox row of the past is numbered by its order; each order has two numbers.
_NEW_ROWS: Final = (
    "DELETE i FROM ims_reservation AS r JOIN ims_reservation_item AS i USING (reservation_id) "
    "WHERE r.order_id > {past}",
    *(
        f"DELETE FROM {table} WHERE order_id > {{past}}"
        for table in (
            *("ims_reservation", "oms_order_item", "oms_order_request", "oms_order_event"),
            *("oms_payment_attempt", "oms_order_payment", "oms_money_entry"),
        )
    ),
    "DELETE FROM oms_notice WHERE id > {past}",
    "DELETE FROM outbox WHERE id > 2 * {past}",
    "DELETE FROM oms_order WHERE id > {past}",
    f"UPDATE ims_sku_stock SET stock = {STOCK}, lock_stock = 0 "
    f"WHERE stock <> {STOCK} OR lock_stock <> 0",
)
_LOCK_STOCK: Final = """
UPDATE ims_sku_stock AS s
JOIN (SELECT i.sku_id, SUM(i.quantity) AS held
      FROM ims_reservation AS r
      JOIN ims_reservation_item AS i USING (reservation_id)
      WHERE r.order_id > {past}
        AND r.state = 'RESERVED'
      GROUP BY i.sku_id) AS h USING (sku_id)
SET s.lock_stock = h.held
"""
# What a list of orders reads, and what a new order's keys lie beside.
_OF_WHO_COMES: Final = """
SELECT SUM(o.pay_amount), COUNT(r.state), SUM(i.quantity), COUNT(q.request_hash)
FROM oms_order AS o FORCE INDEX (ix_order_member)
LEFT JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
LEFT JOIN oms_order_item AS i ON i.order_id = o.id
LEFT JOIN oms_order_request AS q ON q.order_id = o.id
WHERE o.member_id <= {members}
"""
_NOT_PURGED: Final = """
SELECT count
FROM information_schema.innodb_metrics
WHERE name = 'trx_rseg_history_len'
"""
_PURGED: Final = 50


@dataclass(frozen=True)
class Side:
    """A schema with its past, and how many members come to it. ``settle_seconds`` is how long the
    server may take to clear away what a run left."""

    ground: Ground
    past: int
    members: int
    settle_seconds: float = 30


def read_who_comes(side: Side) -> None:
    """Have in memory what there is of the members that come, wherever it lies."""
    side.ground.row(_OF_WHO_COMES.format(members=side.members))


@contextmanager
def a_present(side: Side, status: str, orders: int) -> Iterator[None]:
    """``orders`` new ones, all in ``status``; afterwards there is the past and nothing else."""
    if orders:
        _add(side, status, orders)
    _settle(side)
    try:
        yield
    finally:
        _quietly(side.ground, *(delete.format(past=side.past) for delete in _NEW_ROWS))
        _settle(side)


def _add(side: Side, status: str, orders: int) -> None:
    first = side.past + 1
    new = growth_rows.present(first, side.past + orders, status, side.members)
    _quietly(
        side.ground,
        f"SET SESSION cte_max_recursion_depth = {orders}",
        *(rows.insert(new) for rows in growth_rows.of_an_order()),
        _LOCK_STOCK.format(past=side.past),
    )


def _quietly(ground: Ground, *statements: str) -> None:
    """Not replicated: a run shall not pay for what comes before and after it."""
    ground.execute("SET SESSION sql_log_bin = 0", *statements)


def _settle(side: Side) -> None:
    """Wait until what was deleted is gone: the server clears it away in the background."""
    until = time.monotonic() + side.settle_seconds
    while int(side.ground.row(_NOT_PURGED)[0]) > _PURGED and time.monotonic() < until:
        time.sleep(0.05)
