"""The SQL that a catalogue is loaded with: many rows a statement, SKUs by ascending sku_id."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from lockstep.db.transaction import Tx
from lockstep.inventory.model import Sku


@dataclass(frozen=True, slots=True)
class Load:
    """A file that was loaded, and what that came to."""

    load_id: str
    content_hash: str
    actor: str
    loaded: int
    repriced: int
    restocked: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a SKU becomes. ``delta`` is added to its stock on hand."""

    sku_id: int
    title: str
    price: Decimal
    delta: int
    hot: bool
    on_sale: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """Why a SKU's stock on hand changes."""

    sku_id: int
    kind: str
    delta: int
    source: str
    actor: str
    reason: str


READ_LOAD: Final = """
SELECT load_id, content_hash, actor, loaded, repriced, restocked, unchanged
FROM ims_catalogue_load
WHERE load_id = %s
"""


def read_load(tx: Tx, load_id: str) -> Load | None:
    row = tx.one(READ_LOAD, (load_id,))
    return None if row is None else Load(**row)


INSERT_LOAD: Final = """
INSERT INTO ims_catalogue_load (
    load_id, content_hash, actor, loaded, repriced, restocked, unchanged)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


def insert_load(tx: Tx, load: Load) -> None:
    """Raises DuplicateKey if a load of this id was committed since we looked."""
    tx.insert(
        INSERT_LOAD,
        (
            load.load_id,
            load.content_hash,
            load.actor,
            load.loaded,
            load.repriced,
            load.restocked,
            load.unchanged,
        ),
    )


LOCK_SKUS: Final = """
SELECT sku_id, title, price, stock, lock_stock, hot, on_sale, NOW(3) AS now
FROM ims_sku_stock
WHERE sku_id IN %s
ORDER BY sku_id
FOR UPDATE
"""


def lock_skus(tx: Tx, sku_ids: Iterable[int]) -> dict[int, Sku]:
    """The SKUs that exist, by id, locked until the transaction ends."""
    rows = tx.all(LOCK_SKUS, (tuple(sku_ids),))
    return {
        row["sku_id"]: Sku(**{**row, "hot": bool(row["hot"]), "on_sale": bool(row["on_sale"])})
        for row in rows
    }


INSERT_SKUS: Final = """
INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot, on_sale)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def insert_skus(tx: Tx, new: Sequence[Change]) -> None:
    """Raises DuplicateKey if one of them came into being since we looked."""
    tx.insert_many(INSERT_SKUS, [_columns(change) for change in new])


# Row by row in the order of the list: a scan of the SKUs would lock those that stay as they are.
CHANGE_SKUS: Final = """
UPDATE JSON_TABLE(%s, '$[*]' COLUMNS (
    sku_id  BIGINT         PATH '$[0]',
    title   VARCHAR(200)   PATH '$[1]',
    price   DECIMAL(18, 2) PATH '$[2]',
    delta   INT            PATH '$[3]',
    hot     BOOLEAN        PATH '$[4]',
    on_sale BOOLEAN        PATH '$[5]')) AS w
STRAIGHT_JOIN ims_sku_stock AS s FORCE INDEX (PRIMARY) ON s.sku_id = w.sku_id
SET s.title = w.title,
    s.price = w.price,
    s.stock = s.stock + w.delta,
    s.hot = w.hot,
    s.on_sale = w.on_sale
WHERE s.stock + w.delta >= s.lock_stock
"""


def change_skus(tx: Tx, changes: Sequence[Change]) -> int:
    """How many changed: less than were asked for where a stock would fall below what is held."""
    rows = [
        [sku_id, title, str(price), delta, int(hot), int(on_sale)]
        for sku_id, title, price, delta, hot, on_sale in map(_columns, changes)
    ]
    return tx.execute(CHANGE_SKUS, (json.dumps(rows, ensure_ascii=False),))


def _columns(change: Change) -> tuple[int, str, Decimal, int, bool, bool]:
    return (
        change.sku_id,
        change.title,
        change.price,
        change.delta,
        change.hot,
        change.on_sale,
    )


INSERT_ENTRIES: Final = """
INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
VALUES (%s, %s, %s, %s, %s, %s)
"""


def insert_entries(tx: Tx, entries: Sequence[Entry]) -> None:
    tx.insert_many(
        INSERT_ENTRIES,
        [(e.sku_id, e.kind, e.delta, e.source, e.actor, e.reason) for e in entries],
    )
