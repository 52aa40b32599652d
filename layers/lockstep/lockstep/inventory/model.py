"""Stock and holds: their states, and what a command on them can come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final


class ReservationState(StrEnum):
    INIT = "INIT"  # never visible: inside the reserving transaction only
    RESERVED = "RESERVED"  # counted in lock_stock
    CONFIRMED = "CONFIRMED"  # sold: taken from stock and lock_stock
    RELEASED = "RELEASED"  # given back, or a tombstone: released before it was reserved


RESERVATION_TRANSITIONS: Final[Mapping[ReservationState, frozenset[ReservationState]]] = {
    ReservationState.INIT: frozenset({ReservationState.RESERVED, ReservationState.RELEASED}),
    ReservationState.RESERVED: frozenset({ReservationState.CONFIRMED, ReservationState.RELEASED}),
    ReservationState.CONFIRMED: frozenset(),
    ReservationState.RELEASED: frozenset(),
}


class Refusal(StrEnum):
    """Named refusals of a stock command; each is final for its reservation."""

    RESERVATION_ALREADY_RELEASED = "RESERVATION_ALREADY_RELEASED"
    RESERVATION_NOT_RESERVED = "RESERVATION_NOT_RESERVED"
    RESERVATION_CANNOT_RELEASE = "RESERVATION_CANNOT_RELEASE"
    IDEMPOTENCY_PARAMETER_CONFLICT = "IDEMPOTENCY_PARAMETER_CONFLICT"


@dataclass(frozen=True, slots=True)
class Sku:
    """A SKU as its row was at ``now`` (database time). ``available`` may be old when you read
    it."""

    sku_id: int
    title: str
    price: Decimal
    stock: int
    lock_stock: int
    hot: bool
    on_sale: bool
    now: datetime

    @property
    def available(self) -> int:
        return self.stock - self.lock_stock


@dataclass(frozen=True, slots=True)
class Reservation:
    """A hold with its items, sku_id to quantity, ascending; a tombstone has none."""

    reservation_id: str
    order_id: int
    request_hash: str | None
    state: ReservationState
    items: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an order wants held: ``lines`` maps sku_id to quantity."""

    order_id: int
    reservation_id: str
    lines: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Waiting(Wanted):
    """The same, with the state and request_hash of the hold if it is there already; both None if
    it is not."""

    state: ReservationState | None
    request_hash: str | None


@dataclass(frozen=True, slots=True)
class ShortLine:
    sku_id: int
    wanted: int
    available: int


@dataclass(frozen=True, slots=True)
class Held:
    """The stock is held."""

    repeated: bool
    state: ReservationState


@dataclass(frozen=True, slots=True)
class Short:
    """This SKU could not cover its line; the caller must roll everything back."""

    sku_id: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    repeated: bool


@dataclass(frozen=True, slots=True)
class Released:
    repeated: bool


@dataclass(frozen=True, slots=True)
class Unreturnable:
    """More of a SKU than an order still has of it, or of an order whose stock is not sold."""

    sku_id: int
    wanted: int
    returnable: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was changed, and no repetition of the command will change anything."""

    code: Refusal


def reservation_id_of(order_no: str, n: int) -> str:
    """The id of an order's ``n``-th hold, n from 1."""
    return f"{order_no}-{n}"


def next_reservation_id(reservation_id: str) -> str:
    """The id of the hold that follows ``reservation_id``, for the same order."""
    order_no, _, n = reservation_id.rpartition("-")
    return reservation_id_of(order_no, int(n) + 1)


def number_of(reservation_id: str) -> int:
    """The ``n`` of ``reservation_id``."""
    return int(reservation_id.rpartition("-")[2])
