"""Decide orders that wait for stock, many in one transaction, each as if it came alone."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Final

from lockstep import fingerprint, settings
from lockstep.db.errors import Contended, DuplicateKey
from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.inventory import batch_store
from lockstep.inventory import store as stock
from lockstep.inventory.allot import allot
from lockstep.inventory.model import Refusal, ReservationState, ShortLine, Sku, Waiting, Wanted
from lockstep.orders import turn_store

ACTOR: Final = "system:reserve_stock"


@dataclass(frozen=True, slots=True)
class Decided:
    """Which orders may be paid now, which found too little, and which may have no hold, and why."""

    held: Sequence[int] = ()
    sold_out: Sequence[int] = ()
    refused: Mapping[int, Refusal] = field(default_factory=dict)

    @property
    def how_many(self) -> int:
        return len(self.held) + len(self.sold_out)


def decide(tx: Tx, order_ids: Sequence[int]) -> Decided:
    """Hold the stock of each of ``order_ids`` that still waits, or close it, in this order.

    Guard: RESERVING. Effect: PENDING_PAYMENT with its time to pay from now on, and the hold; where
    a line is short CLOSED/OUT_OF_STOCK with every short line as evidence. Where a release came
    first (its tombstone forbids the hold) nothing. Lock order: orders, reservations, SKUs, each
    ascending; the SKUs last, so that they are held briefly. Raises Contended where stock went that
    had been seen: the caller begins again.
    """
    waiting = turn_store.lock_waiting(tx, order_ids)
    skus = stock.read_skus(tx, {sku_id for order in waiting for sku_id in order.lines} or {0})
    hashes = {w.order_id: fingerprint.of_reservation(w.order_id, w.lines) for w in waiting}
    refused = {w.order_id: why for w in waiting if (why := _refusal(w, hashes[w.order_id]))}
    held = [w for w in waiting if w.state is not None and w.order_id not in refused]
    allotted = allot(
        (w for w in waiting if w.state is None), {i: sku.available for i, sku in skus.items()}
    )
    decided = Decided(
        held=[w.order_id for w in (*held, *allotted.granted)],
        sold_out=list(allotted.short),
        refused=refused,
    )
    _close(tx, allotted.short)
    if decided.held:
        expires_at = _now(skus.values()) + timedelta(seconds=settings.order_ttl_seconds())
        _open(tx, decided.held, expires_at)
        _hold(tx, [(w, hashes[w.order_id]) for w in allotted.granted], expires_at)
    for sku_id, quantity in sorted(allotted.taken.items()):
        if not stock.hold_stock(tx, sku_id, quantity):
            raise Contended(f"stock of SKU {sku_id} went while it was allotted")
    return decided


def _refusal(order: Waiting, request_hash: str) -> Refusal | None:
    if order.state is ReservationState.RELEASED:
        return Refusal.RESERVATION_ALREADY_RELEASED
    if order.state is not None and order.request_hash != request_hash:
        return Refusal.IDEMPOTENCY_PARAMETER_CONFLICT
    return None


def _now(skus: Iterable[Sku]) -> datetime:
    """The database's time, as the SKUs were read."""
    for sku in skus:
        return sku.now
    raise InvariantBroken("stock is held of SKUs that do not exist")


def _open(tx: Tx, order_ids: Sequence[int], expires_at: datetime) -> None:
    if turn_store.mark_held(tx, order_ids, expires_at) != len(order_ids):
        raise InvariantBroken("an order changed under its lock")
    turn_store.append_events(tx, order_ids, ACTOR, "HELD")


def _close(tx: Tx, short: Mapping[int, tuple[ShortLine, ...]]) -> None:
    if not short:
        return
    if turn_store.mark_sold_out(tx, list(short)) != len(short):
        raise InvariantBroken("an order changed under its lock")
    turn_store.append_sold_out(tx, [(i, ACTOR, _evidence(lines)) for i, lines in short.items()])


def _evidence(lines: Iterable[ShortLine]) -> str:
    return json.dumps({"lines": [asdict(line) for line in lines]})


def _hold(tx: Tx, holds: Sequence[tuple[Wanted, str]], expires_at: datetime) -> None:
    if not holds:
        return
    hold_until = expires_at + timedelta(seconds=settings.hold_grace_seconds())
    try:
        batch_store.insert_holds(tx, holds, hold_until)
    except DuplicateKey as taken:
        if taken.key != "uk_reservation":  # the order knows this number under another id
            raise
        # A tombstone came after our look: the whole transaction runs again and sees it.
        raise Contended(str(taken)) from taken
