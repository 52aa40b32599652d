"""Hold stock for an order."""

from collections.abc import Mapping
from datetime import datetime

from lockstep import fingerprint
from lockstep.db.errors import DuplicateKey
from lockstep.db.packet import Packet, Reply
from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.inventory import store
from lockstep.inventory.model import Held, Refusal, Refused, ReservationState, Short


def reserve(
    tx: Tx, reservation_id: str, order_id: int, lines: Mapping[int, int], expires_at: datetime
) -> Held | Short | Refused:
    """Hold every line or none, in the caller's transaction: an order and its hold exist together.

    Guard: each SKU has the quantity available. Effect: RESERVED, lock_stock += quantity.
    Lock order: reservation, then SKUs by ascending sku_id; call it last, so that they are held
    briefly. Repeat: Held(repeated=True) with the state as it is now; nothing is held twice.
    On Short the caller rolls back: some lines may have been taken already.
    """
    request_hash = fingerprint.of_reservation(order_id, lines)
    try:
        store.insert_reservation(tx, reservation_id, order_id, request_hash, expires_at)
    except DuplicateKey:
        return _answer_repeat(tx, reservation_id, request_hash)
    store.insert_items(tx, reservation_id, lines)
    for sku_id in sorted(lines):
        if not store.hold_stock(tx, sku_id, lines[sku_id]):
            return Short(sku_id)
    return Held(repeated=False, state=ReservationState.RESERVED)


def reserve_new(
    packet: Packet,
    reservation_id: str,
    order_id: int,
    lines: Mapping[int, int],
    expires_at: datetime,
) -> list[Reply]:
    """The same for an order that this transaction has made, so that nothing can have come before
    it: the whole hold in a packet. A reply for each SKU; unless each changed its row, the caller
    rolls back."""
    request_hash = fingerprint.of_reservation(order_id, lines)
    store.insert_reservation(packet, reservation_id, order_id, request_hash, expires_at)
    store.insert_items(packet, reservation_id, lines)
    return [store.ask_to_hold(packet, sku_id, lines[sku_id]) for sku_id in sorted(lines)]


def _answer_repeat(tx: Tx, reservation_id: str, request_hash: str) -> Held | Refused:
    existing = store.read_reservation_shared(tx, reservation_id)
    if existing is None:
        raise InvariantBroken(f"the order of {reservation_id} has that number under another id")
    if existing.state is ReservationState.RELEASED:
        return Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    if existing.request_hash != request_hash:
        return Refused(Refusal.IDEMPOTENCY_PARAMETER_CONFLICT)
    return Held(repeated=True, state=existing.state)
