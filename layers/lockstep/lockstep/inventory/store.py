"""The SQL of ims_sku_stock, ims_reservation and ims_reservation_item. Rows are locked reservation
first, then SKUs by ascending sku_id."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from lockstep.db.packet import Packet, Reply, Writer
from lockstep.db.transaction import Reader, Tx
from lockstep.inventory.model import Reservation, ReservationState, Sku, number_of

READ_SKUS: Final = """
SELECT sku_id, title, price, stock, lock_stock, hot, on_sale, NOW(3) AS now
FROM ims_sku_stock
WHERE sku_id IN %s
ORDER BY sku_id
"""


def read_skus(reader: Reader, sku_ids: Iterable[int]) -> dict[int, Sku]:
    """The SKUs that exist, by id, read without a lock."""
    rows = reader.all(READ_SKUS, (tuple(sku_ids),))
    return {
        row["sku_id"]: Sku(**{**row, "hot": bool(row["hot"]), "on_sale": bool(row["on_sale"])})
        for row in rows
    }


HOLD_STOCK: Final = """
UPDATE ims_sku_stock
SET lock_stock = lock_stock + %(quantity)s
WHERE sku_id = %(sku_id)s
  AND stock - lock_stock >= %(quantity)s
"""


def hold_stock(tx: Tx, sku_id: int, quantity: int) -> bool:
    """False: not that many are available. Nothing is locked then."""
    return tx.execute(HOLD_STOCK, {"sku_id": sku_id, "quantity": quantity}) == 1


def ask_to_hold(packet: Packet, sku_id: int, quantity: int) -> Reply:
    """Its reply has changed one row, or not that many are available."""
    return packet.execute(HOLD_STOCK, {"sku_id": sku_id, "quantity": quantity})


SELL_STOCK: Final = """
UPDATE ims_sku_stock
SET stock = stock - %(quantity)s,
    lock_stock = lock_stock - %(quantity)s
WHERE sku_id = %(sku_id)s
  AND stock >= %(quantity)s
  AND lock_stock >= %(quantity)s
"""


def sell_stock(tx: Tx, sku_id: int, quantity: int) -> bool:
    """False: the counters hold less than the reservation says, so they are wrong."""
    return tx.execute(SELL_STOCK, {"sku_id": sku_id, "quantity": quantity}) == 1


FREE_STOCK: Final = """
UPDATE ims_sku_stock
SET lock_stock = lock_stock - %(quantity)s
WHERE sku_id = %(sku_id)s
  AND lock_stock >= %(quantity)s
"""


def free_stock(tx: Tx, sku_id: int, quantity: int) -> bool:
    """False: less is locked than the reservation says, so the counter is wrong."""
    return tx.execute(FREE_STOCK, {"sku_id": sku_id, "quantity": quantity}) == 1


# Born RESERVED: INIT would be visible to nobody and cost a round trip.
INSERT_RESERVATION: Final = """
INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)
VALUES (%s, %s, %s, %s, 'RESERVED', %s)
"""


def insert_reservation(
    writer: Writer, reservation_id: str, order_id: int, request_hash: str, expires_at: datetime
) -> None:
    """Raises DuplicateKey if the reservation, or a tombstone of it, exists."""
    n = number_of(reservation_id)
    writer.insert(INSERT_RESERVATION, (reservation_id, order_id, n, request_hash, expires_at))


INSERT_TOMBSTONE: Final = """
INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)
VALUES (%s, %s, %s, NULL, 'RELEASED', NULL)
"""


def insert_tombstone(tx: Tx, reservation_id: str, order_id: int) -> None:
    """Raises DuplicateKey if the reservation came into being meanwhile."""
    tx.insert(INSERT_TOMBSTONE, (reservation_id, order_id, number_of(reservation_id)))


INSERT_ITEMS: Final = """
INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity)
VALUES (%s, %s, %s)
"""


def insert_items(writer: Writer, reservation_id: str, lines: Mapping[int, int]) -> None:
    writer.insert_many(
        INSERT_ITEMS, [(reservation_id, sku_id, lines[sku_id]) for sku_id in sorted(lines)]
    )


# Items never change once written, so only the reservation's row is locked.
LOCK_RESERVATION: Final = """
SELECT r.reservation_id, r.order_id, r.request_hash, r.state, i.sku_id, i.quantity
FROM ims_reservation AS r
LEFT JOIN ims_reservation_item AS i ON i.reservation_id = r.reservation_id
WHERE r.reservation_id = %s
FOR UPDATE OF r
"""


def lock_reservation(tx: Tx, reservation_id: str) -> Reservation | None:
    """The reservation, locked until the transaction ends. A missing one locks nothing."""
    rows = tx.all(LOCK_RESERVATION, (reservation_id,))
    if not rows:
        return None
    return Reservation(
        reservation_id=rows[0]["reservation_id"],
        order_id=rows[0]["order_id"],
        request_hash=rows[0]["request_hash"],
        state=ReservationState(rows[0]["state"]),
        items=dict(sorted((r["sku_id"], r["quantity"]) for r in rows if r["sku_id"] is not None)),
    )


# FOR SHARE: the duplicate's failed INSERT holds a shared lock already, and two duplicates that both
# asked for more would deadlock.
READ_RESERVATION_SHARED: Final = """
SELECT reservation_id, order_id, request_hash, state
FROM ims_reservation
WHERE reservation_id = %s
FOR SHARE
"""


def read_reservation_shared(tx: Tx, reservation_id: str) -> Reservation | None:
    """The reservation without its items, as last committed."""
    row = tx.one(READ_RESERVATION_SHARED, (reservation_id,))
    if row is None:
        return None
    return Reservation(**{**row, "state": ReservationState(row["state"])}, items={})


READ_STATE: Final = """
SELECT state
FROM ims_reservation
WHERE reservation_id = %s
"""


def read_state(reader: Reader, reservation_id: str) -> ReservationState | None:
    row = reader.one(READ_STATE, (reservation_id,))
    return None if row is None else ReservationState(row["state"])


MARK_CONFIRMED: Final = """
UPDATE ims_reservation
SET state = 'CONFIRMED'
WHERE reservation_id = %s
  AND state = 'RESERVED'
"""


def mark_confirmed(tx: Tx, reservation_id: str) -> bool:
    return tx.execute(MARK_CONFIRMED, (reservation_id,)) == 1


MARK_RELEASED: Final = """
UPDATE ims_reservation
SET state = 'RELEASED'
WHERE reservation_id = %s
  AND state = 'RESERVED'
"""


def mark_released(tx: Tx, reservation_id: str) -> bool:
    return tx.execute(MARK_RELEASED, (reservation_id,)) == 1
