"""Take goods of a sold order back into stock."""

from collections.abc import Iterable, Mapping

from lockstep.db.transaction import Tx
from lockstep.errors import InvariantBroken
from lockstep.inventory import batch_store, return_store
from lockstep.inventory.model import ReservationState, Unreturnable


def take_back(
    tx: Tx,
    reservation_id: str,
    lines: Mapping[int, int],
    *,
    number: str,
    earlier: Iterable[str],
    actor: str,
    reason: str,
) -> tuple[Unreturnable, ...]:
    """Add ``lines``, sku_id to quantity, to stock, in the transaction of a caller who holds the
    order's lock and writes nothing after it. ``number`` names this return, ``earlier`` all others
    of the order.

    Guard: the hold is CONFIRMED, and of no SKU more comes back than was sold. Effect: a RETURN
    entry and stock += quantity for each line. Lock order: reservation, then SKUs by ascending
    sku_id. Returns what does not fit: then nothing is changed.
    """
    reservation = batch_store.lock_reservation(tx, reservation_id)
    is_sold = reservation is not None and reservation.state is ReservationState.CONFIRMED
    sold = reservation.items if reservation is not None and is_sold else {}
    sources = [_source(other, sku_id) for other in earlier for sku_id in lines]
    returned = return_store.read_returned(tx, sources) if sources else {}
    refused = tuple(
        Unreturnable(sku_id, quantity, left)
        for sku_id, quantity in lines.items()
        if quantity > (left := max(0, sold.get(sku_id, 0) - returned.get(sku_id, 0)))
    )
    if refused:
        return refused
    skus = sorted(lines)
    return_store.insert_returns(
        tx, [(sku_id, lines[sku_id], _source(number, sku_id), actor, reason) for sku_id in skus]
    )
    for sku_id in skus:
        if not return_store.add_stock(tx, sku_id, lines[sku_id]):
            raise InvariantBroken(f"SKU {sku_id} was sold and does not exist")
    return ()


def _source(number: str, sku_id: int) -> str:
    return f"return:{number}:{sku_id}"
