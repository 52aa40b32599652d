"""What members may see of their orders and requests. Plain reads, no transaction, no lock kept."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from lockstep.db.errors import Contended, LockNotAvailable
from lockstep.db.transaction import Reader, read
from lockstep.errors import InvariantBroken
from lockstep.orders import read_store, request_store
from lockstep.orders.model import (
    PAID_STATUSES,
    Order,
    OrderRequest,
    OrderStatus,
    RequestState,
    Transition,
)

_NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """Orders, newest first; ``next_before`` continues after the last one, None at the end."""

    orders: list[Order]
    next_before: int | None


def find(member_id: int, order_no: str) -> Order | None:
    """The member's own order, or None."""
    return read(partial(read_store.read_own_order, member_id=member_id, order_no=order_no))


def reload(order_id: int) -> Order:
    """The order as it is now. Raises InvariantBroken if there is none: orders are never deleted."""
    order = read(partial(read_store.read_order, order_id=order_id))
    if order is None:
        raise InvariantBroken(f"order {order_id} does not exist")
    return order


def paid_of(order_ids: Collection[int]) -> set[int]:
    """Those that are PAID, or were once: their holds must become sales."""
    if not order_ids:
        return set()
    statuses = read(partial(read_store.read_statuses, order_ids=order_ids))
    return {order_id for order_id, status in statuses.items() if status in PAID_STATUSES}


def timeline(order_id: int) -> list[Transition]:
    """The order's trail, oldest first."""
    return read(partial(read_store.read_timeline, order_id=order_id))


def page(member_id: int, status: OrderStatus | None, before: int | None, limit: int) -> Page:
    """At most ``limit`` of the member's orders older than ``before``."""

    def look(reader: Reader) -> list[Order]:
        return read_store.list_orders(reader, member_id, status, before or _NEWEST, limit + 1)

    orders = read(look)
    more = len(orders) > limit
    orders = orders[:limit]
    return Page(orders, orders[-1].id if more else None)


def probe(member_id: int, key: str) -> tuple[RequestState, Order | None]:
    """What is known of a request: UNKNOWN is "not seen", never "did not happen"."""

    def look(reader: Reader) -> OrderRequest | None:
        return request_store.read_request(reader, member_id, key)

    try:
        request = read(look)
    except (LockNotAvailable, Contended):
        return RequestState.PROCESSING, None
    if request is None:
        return RequestState.UNKNOWN, None
    if request.order_id is None:
        raise InvariantBroken("a request was committed without its order")
    return RequestState.SUCCESS, reload(request.order_id)
