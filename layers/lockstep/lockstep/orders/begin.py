"""Write a new order under its request key, in as few round trips as what is asked back allows.

Two packets. The first claims the key and draws the order's id; the second has all that needs the
id, and last of all the SKU rows, which are what other buyers wait for. Only COMMIT follows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from lockstep import settings
from lockstep.db.errors import DuplicateKey
from lockstep.db.packet import Packet, Reply
from lockstep.db.transaction import RollBack, Tx
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import reservation_id_of
from lockstep.inventory.reserve import reserve_new
from lockstep.order_no import new_order_no
from lockstep.orders import request_store, store
from lockstep.orders.hold import line_up
from lockstep.orders.model import Order, OrderStatus, PlaceOrder

# Four random digits: two orders of one shard in one millisecond meet once in ten thousand.
_ORDER_NO_TRIES: Final = 3


class KeyTaken(Exception):
    """The request key belongs to a request that is there, or is being decided."""


@dataclass(frozen=True, slots=True)
class StockShort:
    """Some line could not be held, and nothing was kept."""


def claim_and_insert(
    tx: Tx, command: PlaceOrder, request_hash: str, draft: Order, turn_sku_id: int | None
) -> Order:
    """``draft`` with its id and its numbers, under its request key. Raises KeyTaken.

    Waits for the transaction that is taking the key, if there is one; but who would stand at a
    turn waits for nobody: LockNotAvailable.
    """
    is_claimed = False
    for _ in range(_ORDER_NO_TRIES):
        order = _numbered(draft)
        try:
            with tx.packet() as packet:
                if not is_claimed:
                    _claim(packet, command, request_hash, waits=turn_sku_id is None)
                inserted = store.insert_order(packet, order, turn_sku_id)
        except DuplicateKey as taken:
            if taken.key == "PRIMARY":
                raise KeyTaken from taken
            if taken.key != "uk_order_no":
                raise
            is_claimed = True
        else:
            return replace(order, id=inserted.new_id)
    raise InvariantBroken(f"no order number of {_ORDER_NO_TRIES} was free")


def _claim(packet: Packet, command: PlaceOrder, request_hash: str, *, waits: bool) -> None:
    member_id, key = command.member_id, command.idempotency_key
    if not waits:
        request_store.ask_request(packet, member_id, key)
    request_store.claim_request(packet, member_id, key, request_hash)


def _numbered(draft: Order) -> Order:
    order_no = new_order_no(draft.created_at, draft.member_id)
    return replace(draft, order_no=order_no, reservation_id=reservation_id_of(order_no, 1))


def write_rest(tx: Tx, command: PlaceOrder, order: Order) -> None:
    """Everything else of it. Leaves the transaction with StockShort if a line cannot be held."""
    with tx.packet() as packet:
        store.insert_items(packet, order.id, order.lines)
        actor = f"member:{order.member_id}"
        store.append_event(packet, order.id, OrderStatus.NONE, order.status, actor, "PLACED")
        completed = request_store.complete_request(
            packet, command.member_id, command.idempotency_key, order.id
        )
        held = (
            []
            if order.expires_at is None
            else _hold(packet, order, command.lines, order.expires_at)
        )
    if completed.changed != 1:
        raise InvariantBroken("the request claimed by this transaction is not there")
    if not all(line.changed for line in held):
        raise RollBack(StockShort())
    if order.expires_at is None:
        line_up(tx, order.id, str(order.reservation_id))


def _hold(
    packet: Packet, order: Order, lines: Mapping[int, int], expires_at: datetime
) -> list[Reply]:
    hold_until = expires_at + timedelta(seconds=settings.hold_grace_seconds())
    return reserve_new(packet, str(order.reservation_id), order.id, lines, hold_until)
