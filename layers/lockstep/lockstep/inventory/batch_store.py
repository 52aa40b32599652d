"""The SQL that holds, sells and frees stock for many reservations at once. Rows are locked in the
order of ``inventory.store``."""

from collections.abc import Iterable
from datetime import datetime

from lockstep.db.transaction import Tx
from lockstep.inventory import store
from lockstep.inventory.model import Wanted, number_of


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
