"""The SQL that holds, sells and gives back for many reservations at once. Rows are locked in the
order of ``inventory.store``."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

from lockstep.db.connection import Row
from lockstep.db.transaction import Tx
from lockstep.inventory import store
from lockstep.inventory.model import HoldCommand, Reservation, ReservationState, Wanted, number_of

_RESERVATION_ID: Final = itemgetter("reservation_id")


def insert_holds(tx: Tx, holds: Iterable[tuple[Wanted, str]], expires_at: datetime) -> None:
    """RESERVED reservations with their items, of what is wanted and its request_hash. Raises
    DuplicateKey if one of them, or a tombstone of it, exists."""
    reservations, items = [], []
    for wanted, request_hash in holds:
        hold_id, order_id = wanted.reservation_id, wanted.order_id
        reservations.append((hold_id, order_id, number_of(hold_id), request_hash, expires_at))
        items += [(hold_id, sku_id, quantity) for sku_id, quantity in wanted.lines.items()]
    tx.insert_many(store.INSERT_RESERVATION, reservations)
    tx.insert_many(store.INSERT_ITEMS, items)


# In the order of the key by which they are locked, so that batches wait for each other and never
# in a circle. Items never change once written, so only the reservations' rows are locked.
LOCK_RESERVATIONS: Final = """
SELECT r.reservation_id, r.order_id, r.request_hash, r.state, i.sku_id, i.quantity
FROM ims_reservation AS r FORCE INDEX (uk_reservation)
LEFT JOIN ims_reservation_item AS i ON i.reservation_id = r.reservation_id
WHERE r.reservation_id IN %s
ORDER BY r.reservation_id
FOR UPDATE OF r
"""


def lock_reservations(tx: Tx, reservation_ids: Iterable[str]) -> dict[str, Reservation]:
    """Those that exist, by id, locked until the transaction ends. A missing one locks nothing."""
    rows = tx.all(LOCK_RESERVATIONS, (tuple(set(reservation_ids)),))
    return {hold_id: _reservation(list(own)) for hold_id, own in groupby(rows, key=_RESERVATION_ID)}


def lock_reservation(tx: Tx, reservation_id: str) -> Reservation | None:
    """The same for one."""
    return lock_reservations(tx, [reservation_id]).get(reservation_id)


def _reservation(rows: Sequence[Row]) -> Reservation:
    return Reservation(
        reservation_id=rows[0]["reservation_id"],
        order_id=rows[0]["order_id"],
        request_hash=rows[0]["request_hash"],
        state=ReservationState(rows[0]["state"]),
        items=dict(sorted((r["sku_id"], r["quantity"]) for r in rows if r["sku_id"] is not None)),
    )


INSERT_TOMBSTONE: Final = """
INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)
VALUES (%s, %s, %s, NULL, 'RELEASED', NULL)
"""


def insert_tombstones(tx: Tx, commands: Iterable[HoldCommand]) -> None:
    """Raises DuplicateKey if one of the reservations came into being meanwhile."""
    rows = [(c.reservation_id, c.order_id, number_of(c.reservation_id)) for c in commands]
    tx.insert_many(INSERT_TOMBSTONE, sorted(rows))


MARK_CONFIRMED: Final = """
UPDATE ims_reservation FORCE INDEX (uk_reservation)
SET state = 'CONFIRMED'
WHERE reservation_id IN %s
  AND state = 'RESERVED'
"""


def mark_confirmed(tx: Tx, reservation_ids: Sequence[str]) -> int:
    """How many reservations this changed."""
    return tx.execute(MARK_CONFIRMED, (tuple(reservation_ids),))


MARK_RELEASED: Final = """
UPDATE ims_reservation FORCE INDEX (uk_reservation)
SET state = 'RELEASED'
WHERE reservation_id IN %s
  AND state = 'RESERVED'
"""


def mark_released(tx: Tx, reservation_ids: Sequence[str]) -> int:
    """How many reservations this changed."""
    return tx.execute(MARK_RELEASED, (tuple(reservation_ids),))


# All SKUs at once, in the order of the list: the first is held no longer than the last.
SELL_STOCK: Final = """
UPDATE JSON_TABLE(%s, '$[*]' COLUMNS (
    sku_id   BIGINT PATH '$[0]',
    quantity BIGINT PATH '$[1]')) AS w
STRAIGHT_JOIN ims_sku_stock AS s FORCE INDEX (PRIMARY) ON s.sku_id = w.sku_id
SET s.stock = s.stock - w.quantity,
    s.lock_stock = s.lock_stock - w.quantity
WHERE s.stock >= w.quantity
  AND s.lock_stock >= w.quantity
"""


def sell_stock(tx: Tx, quantities: Mapping[int, int]) -> int:
    """Of how many SKUs. Less than there are: the counters of the others hold less than that."""
    return tx.execute(SELL_STOCK, (_ascending(quantities),))


FREE_STOCK: Final = """
UPDATE JSON_TABLE(%s, '$[*]' COLUMNS (
    sku_id   BIGINT PATH '$[0]',
    quantity BIGINT PATH '$[1]')) AS w
STRAIGHT_JOIN ims_sku_stock AS s FORCE INDEX (PRIMARY) ON s.sku_id = w.sku_id
SET s.lock_stock = s.lock_stock - w.quantity
WHERE s.lock_stock >= w.quantity
"""


def free_stock(tx: Tx, quantities: Mapping[int, int]) -> int:
    """Of how many SKUs. Less than there are: of the others less than that is locked."""
    return tx.execute(FREE_STOCK, (_ascending(quantities),))


def _ascending(quantities: Mapping[int, int]) -> str:
    """The order in which their rows are locked."""
    return json.dumps(sorted(quantities.items()))
