"""The SQL of turns: who may decide for a hot SKU, which orders wait there, and what became of all
of them together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from lockstep.db.transaction import Reader, Tx
from lockstep.inventory.model import ReservationState, Waiting

# Never waited for in the engine: its patience is one setting for all locks, and longer.
LOCK_TURN: Final = """
SELECT sku_id
FROM ims_hot_turn
WHERE sku_id = %s
FOR UPDATE NOWAIT
"""


def lock_turn(tx: Tx, sku_id: int) -> bool:
    """False: there is no such row yet. Raises LockNotAvailable while somebody else decides."""
    return tx.one(LOCK_TURN, (sku_id,)) is not None


INSERT_TURN: Final = """
INSERT INTO ims_hot_turn (sku_id)
VALUES (%s)
"""


def insert_turn(tx: Tx, sku_id: int) -> None:
    """Raises DuplicateKey if somebody was faster."""
    tx.insert(INSERT_TURN, (sku_id,))


READ_PLACES: Final = """
SELECT o.id, o.turn_sku_id,
       o.status = 'RESERVING' OR EXISTS (
           SELECT 1
           FROM oms_order_payment AS p FORCE INDEX (ix_payment_order)
           WHERE p.order_id = o.id
             AND p.state = 'REINSTATE_PENDING') AS waits
FROM oms_order AS o
WHERE o.id IN %s
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an order stands in line, None for no turn; and whether it waits, for its first hold or
    for the one that late money of it asks for."""

    order_id: int
    sku_id: int | None
    waits: bool


def read_places(reader: Reader, order_ids: Iterable[int]) -> list[Place]:
    """The orders of ``order_ids`` that exist."""
    rows = reader.all(READ_PLACES, (tuple(order_ids),))
    return [Place(row["id"], row["turn_sku_id"], bool(row["waits"])) for row in rows]


# By the index alone, and without a lock: a locked scan would keep newcomers from lining up.
READ_WAITING_IDS: Final = """
SELECT id
FROM oms_order FORCE INDEX (ix_order_turn)
WHERE turn_sku_id = %s
  AND status = 'RESERVING'
  AND id > %s
ORDER BY id
LIMIT %s
"""


def read_waiting_ids(reader: Reader, sku_id: int, after: int, limit: int) -> list[int]:
    """Who waits at this turn, in order of arrival, behind the order ``after``."""
    return [row["id"] for row in reader.all(READ_WAITING_IDS, (sku_id, after, limit))]


# An order's lines never change, so only its own row is locked, and the hold that should not be
# there yet: FOR SHARE for the reason of READ_RESERVATION_SHARED.
LOCK_WAITING: Final = """
SELECT o.id, o.reservation_id, i.sku_id, i.quantity, r.state, r.request_hash
FROM oms_order AS o FORCE INDEX (PRIMARY)
STRAIGHT_JOIN oms_order_item AS i FORCE INDEX (PRIMARY) ON i.order_id = o.id
LEFT JOIN ims_reservation AS r FORCE INDEX (uk_reservation)
    ON r.reservation_id = o.reservation_id
WHERE o.id IN %s
  AND o.status = 'RESERVING'
ORDER BY o.id
FOR UPDATE OF o
FOR SHARE OF r
"""


def lock_waiting(tx: Tx, order_ids: Sequence[int]) -> list[Waiting]:
    """Those of ``order_ids`` that still wait, locked in the order of their ids."""
    waiting: dict[int, Waiting] = {}
    for row in tx.all(LOCK_WAITING, (tuple(order_ids),)):
        order_id, sku_id, quantity = row["id"], row["sku_id"], row["quantity"]
        if order_id in waiting:
            cast(dict[int, int], waiting[order_id].lines)[sku_id] = quantity
        else:
            state = row["state"] and ReservationState(row["state"])
            hold = row["reservation_id"], {sku_id: quantity}, state, row["request_hash"]
            waiting[order_id] = Waiting(order_id, *hold)
    return list(waiting.values())


# RESERVING -> PENDING_PAYMENT: their time to pay starts with their holds.
MARK_HELD: Final = """
UPDATE oms_order FORCE INDEX (PRIMARY)
SET prev_status = status,
    status = 'PENDING_PAYMENT',
    expires_at = %s
WHERE id IN %s
  AND status = 'RESERVING'
"""


def mark_held(tx: Tx, order_ids: Sequence[int], expires_at: datetime) -> int:
    """How many orders this changed."""
    return tx.execute(MARK_HELD, (expires_at, tuple(order_ids)))


# RESERVING -> CLOSED. Such an order never had a payment page, nor a hold to give back.
MARK_SOLD_OUT: Final = """
UPDATE oms_order FORCE INDEX (PRIMARY)
SET prev_status = status,
    status = 'CLOSED',
    close_reason = 'OUT_OF_STOCK'
WHERE id IN %s
  AND status = 'RESERVING'
"""


def mark_sold_out(tx: Tx, order_ids: Sequence[int]) -> int:
    """How many orders this changed."""
    return tx.execute(MARK_SOLD_OUT, (tuple(order_ids),))


# From the rows themselves: what is said of all of them is sent once, and their ids.
APPEND_EVENTS: Final = """
INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason)
SELECT id, prev_status, status, %s, %s
FROM oms_order FORCE INDEX (PRIMARY)
WHERE id IN %s
ORDER BY id
"""


def append_events(tx: Tx, order_ids: Sequence[int], actor: str, reason: str) -> None:
    """One line of the trail for each order, of the change that this transaction made."""
    tx.execute(APPEND_EVENTS, (actor, reason, tuple(order_ids)))


INSERT_EVENTS: Final = """
INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason, evidence)
VALUES (%s, 'RESERVING', 'CLOSED', %s, 'OUT_OF_STOCK', %s)
"""


def append_sold_out(tx: Tx, events: Sequence[tuple[int, str, str]]) -> None:
    """(order_id, actor, evidence as JSON) each."""
    tx.insert_many(INSERT_EVENTS, events)
