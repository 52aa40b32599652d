"""Load SKUs, prices and stock from a file: all of it, or nothing."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from typing import Final

from lockstep.db.errors import Contended, DuplicateKey
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory import catalogue_store as store
from lockstep.inventory.catalogue_file import CatalogueRow, RowError, RowFault, parse
from lockstep.inventory.catalogue_store import Change, Entry, Load
from lockstep.inventory.model import Sku
from lockstep.inventory.store import read_skus

# The largest file takes a fraction of it; a load that waits for a buyer's lock starts again.
WITHIN_SECONDS: Final = 120
_BATCH_SIZE: Final = 1000
_ACTOR_LENGTH_MAX: Final = 80
_LOAD_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CatalogueReport:
    """What a load came to; with ``errors``, nothing was changed.

    ``loaded`` SKUs are new. One whose title, price or marks and whose stock changed is both
    ``repriced`` and ``restocked``. ``repeated``: these are the numbers of the first time.
    """

    load_id: str
    loaded: int = 0
    repriced: int = 0
    restocked: int = 0
    unchanged: int = 0
    repeated: bool = False
    errors: tuple[RowError, ...] = ()


@dataclass
class _Batch:
    """What some rows of the file make of the SKUs that they found."""

    new: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    repriced: int = 0


def load_catalogue(text: str, actor: str, load_id: str | None = None) -> CatalogueReport:
    """Make the SKUs of a CSV file what it says they are.

    Guard: every row is right, and none wants less on hand than is held. Effect: SKUs inserted or
    changed, each difference of stock an entry; SKUs that the file does not name stay as they are.
    ``stock`` is what is on hand when the file is loaded, held pieces included; the difference to
    that is added, so that sales during the load count. Lock order: SKUs by ascending sku_id, only
    those that differ; new ones of a batch last. Repeat: the same ``load_id`` (by default, the same
    content) changes nothing. Raises ValueError for an unusable actor or load_id, TryAgain.
    """
    content_hash = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    load_id = content_hash[:32] if load_id is None else load_id
    if not _LOAD_ID.fullmatch(load_id):
        raise ValueError("a load id is 1 to 64 of A-Z a-z 0-9 . _ : -")
    if not 1 <= len(actor) <= _ACTOR_LENGTH_MAX:
        raise ValueError(f"an actor has 1 to {_ACTOR_LENGTH_MAX} characters")
    rows, errors = parse(text)
    if errors:
        return CatalogueReport(load_id, errors=tuple(errors))
    rows.sort(key=lambda row: row.sku_id)
    load = Load(load_id, content_hash, actor, 0, 0, 0, 0)
    return in_transaction(partial(_load, rows=rows, load=load), within_seconds=WITHIN_SECONDS)


def _load(tx: Tx, rows: Sequence[CatalogueRow], load: Load) -> CatalogueReport:
    earlier = store.read_load(tx, load.load_id)
    if earlier is not None:
        return _report_repeated(earlier, load)
    differing = list(_differing(tx, rows))
    try:
        batches = [_apply(tx, some, load) for some in batched(differing, _BATCH_SIZE, strict=False)]
        errors = sorted((e for batch in batches for e in batch.errors), key=lambda e: e.line)
        if errors:
            raise RollBack(CatalogueReport(load.load_id, errors=tuple(errors)))
        done = Load(
            load.load_id,
            load.content_hash,
            load.actor,
            loaded=sum(len(batch.new) for batch in batches),
            repriced=sum(batch.repriced for batch in batches),
            restocked=sum(len(batch.entries) - len(batch.new) for batch in batches),
            unchanged=len(rows) - sum(len(b.new) + len(b.changed) for b in batches),
        )
        store.insert_load(tx, done)
    except DuplicateKey as race:  # another load was faster: look again at what it left
        raise Contended(str(race)) from race
    return _report(done, repeated=False)


def _report_repeated(earlier: Load, load: Load) -> CatalogueReport:
    if earlier.content_hash != load.content_hash:
        detail = f"{load.load_id} was another file, loaded by {earlier.actor}"
        return CatalogueReport(load.load_id, errors=(RowError(1, RowFault.LOAD_ID_REUSED, detail),))
    return _report(earlier, repeated=True)


def _report(load: Load, *, repeated: bool) -> CatalogueReport:
    return CatalogueReport(
        load.load_id, load.loaded, load.repriced, load.restocked, load.unchanged, repeated
    )


def _differing(tx: Tx, rows: Sequence[CatalogueRow]) -> Iterator[CatalogueRow]:
    """The rows that ask for something, as far as can be seen without a lock: a file with a whole
    catalogue in it keeps nobody from the SKUs that stay as they are."""
    for some in batched(rows, _BATCH_SIZE, strict=False):
        seen = read_skus(tx, [row.sku_id for row in some])
        for row in some:
            if row.sku_id not in seen or _differs(row, seen[row.sku_id]):
                yield row


def _apply(tx: Tx, rows: Sequence[CatalogueRow], load: Load) -> _Batch:
    """Write what ``rows`` ask for; nothing if one of them cannot be."""
    locked = store.lock_skus(tx, [row.sku_id for row in rows])
    batch = _Batch()
    for row in rows:
        if row.sku_id in locked:
            _plan(batch, row, locked[row.sku_id], load)
        else:
            batch.new.append(_change(row, row.stock or 0))
            batch.entries.append(_entry(row, "INITIAL", row.stock or 0, load))
    if not batch.errors:
        _write(tx, batch)
    return batch


def _plan(batch: _Batch, row: CatalogueRow, sku: Sku, load: Load) -> None:
    if not _differs(row, sku):  # somebody made it so since we looked
        return
    wanted = sku.stock if row.stock is None else row.stock
    if wanted < sku.lock_stock:
        detail = (
            f"SKU {sku.sku_id}: {wanted} wanted, but {sku.lock_stock} of {sku.stock} on hand "
            "are held by orders"
        )
        batch.errors.append(RowError(row.line, RowFault.STOCK_BELOW_HELD, detail))
        return
    delta = wanted - sku.stock
    batch.changed.append(_change(row, delta))
    batch.repriced += _marks(row) != _marks(sku)
    if delta:
        kind = "RESTOCK" if delta > 0 else "CORRECTION"
        batch.entries.append(_entry(row, kind, delta, load))


def _write(tx: Tx, batch: _Batch) -> None:
    if batch.changed and store.change_skus(tx, batch.changed) != len(batch.changed):
        raise InvariantBroken("a locked SKU's stock fell below what is held")
    if batch.new:
        store.insert_skus(tx, batch.new)
    if batch.entries:
        store.insert_entries(tx, batch.entries)


def _differs(row: CatalogueRow, sku: Sku) -> bool:
    return _marks(row) != _marks(sku) or row.stock not in {None, sku.stock}


def _marks(of: CatalogueRow | Sku) -> tuple[object, ...]:
    return of.title, of.price, of.hot, of.on_sale


def _change(row: CatalogueRow, delta: int) -> Change:
    return Change(row.sku_id, row.title, row.price, delta, row.hot, row.on_sale)


def _entry(row: CatalogueRow, kind: str, delta: int, load: Load) -> Entry:
    source = f"catalogue:{load.load_id}:{row.sku_id}"
    return Entry(row.sku_id, kind, delta, source, load.actor, "catalogue load")
