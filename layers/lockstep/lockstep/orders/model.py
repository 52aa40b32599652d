"""Orders: their states, the commands on them, and what a command can come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from lockstep.inventory.model import Refused, ReservationState, ShortLine


class OrderStatus(StrEnum):
    NONE = "NONE"  # before the first event; no row ever has it
    RESERVING = "RESERVING"  # waits in line for a hot SKU
    PENDING_PAYMENT = "PENDING_PAYMENT"  # its stock is held
    PAYMENT_PROCESSING = "PAYMENT_PROCESSING"  # asked the gateway, answer unknown
    PAID = "PAID"
    SHIPPED = "SHIPPED"
    FINISHED = "FINISHED"
    REFUNDING = "REFUNDING"
    REFUNDED = "REFUNDED"
    CLOSED = "CLOSED"


class CloseReason(StrEnum):
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    OUT_OF_STOCK = "OUT_OF_STOCK"
    GATEWAY_CLOSED = "GATEWAY_CLOSED"


_S = OrderStatus
# The same pairs stand in oms_order_transition, where a foreign key holds every writer to them.
ORDER_TRANSITIONS: Final[Mapping[OrderStatus, frozenset[OrderStatus]]] = {
    _S.NONE: frozenset({_S.RESERVING, _S.PENDING_PAYMENT}),
    _S.RESERVING: frozenset({_S.PENDING_PAYMENT, _S.CLOSED}),
    _S.PENDING_PAYMENT: frozenset({_S.PAYMENT_PROCESSING, _S.PAID, _S.CLOSED}),
    _S.PAYMENT_PROCESSING: frozenset({_S.PENDING_PAYMENT, _S.PAID, _S.CLOSED}),
    _S.PAID: frozenset({_S.SHIPPED, _S.REFUNDING}),
    _S.SHIPPED: frozenset({_S.FINISHED, _S.REFUNDING}),
    _S.FINISHED: frozenset({_S.REFUNDING}),
    _S.REFUNDING: frozenset({_S.REFUNDED, _S.PAID, _S.SHIPPED, _S.FINISHED}),
    _S.REFUNDED: frozenset(),
    _S.CLOSED: frozenset({_S.PAID}),  # a late payment reinstated, only with a fresh hold
}

OPEN_STATUSES: Final = frozenset({_S.RESERVING, _S.PENDING_PAYMENT, _S.PAYMENT_PROCESSING})
PAID_STATUSES: Final = frozenset({_S.PAID, _S.SHIPPED, _S.FINISHED, _S.REFUNDING, _S.REFUNDED})


class RequestState(StrEnum):
    """What is known of a request, by its key."""

    UNKNOWN = "UNKNOWN"  # not seen; never "did not happen"
    PROCESSING = "PROCESSING"  # somebody is in that transaction now
    SUCCESS = "SUCCESS"


@dataclass(frozen=True, slots=True)
class OrderLine:
    sku_id: int
    title: str
    quantity: int
    price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """An order's row with its lines and the state of the hold it names. Amounts in yuan, times
    UTC."""

    id: int
    order_no: str
    member_id: int
    status: OrderStatus
    close_reason: CloseReason | None
    cancel_requested_at: datetime | None
    total_amount: Decimal
    pay_amount: Decimal
    paid_amount: Decimal
    refunded_amount: Decimal
    note: str | None
    reservation_id: str | None
    reservation_state: ReservationState | None
    created_at: datetime
    expires_at: datetime | None
    paid_at: datetime | None
    lines: tuple[OrderLine, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedOrder:
    """What decides a transition, read under the order's lock."""

    id: int
    status: OrderStatus
    prev_status: OrderStatus
    cancel_requested_at: datetime | None
    pay_amount: Decimal
    reservation_id: str | None


@dataclass(frozen=True, slots=True)
class TradedOrder(LockedOrder):
    """An order that a notice speaks of."""

    close_reason: CloseReason | None
    expires_at: datetime | None
    has_attempt: bool


@dataclass(frozen=True, slots=True)
class Transition:
    """One entry of an order's trail."""

    at: datetime
    from_status: OrderStatus
    to_status: OrderStatus
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """What the request row of a key says."""

    request_hash: str
    state: RequestState
    order_id: int | None


@dataclass(frozen=True, slots=True)
class PlaceOrder:
    """POST /orders after its body was checked: ``lines`` maps sku_id to quantity, each SKU once."""

    member_id: int
    idempotency_key: str
    lines: Mapping[int, int]
    note: str | None = None
    expected_amount: Decimal | None = None


# What place() comes to. Only Placed leaves rows that were not there before.


@dataclass(frozen=True, slots=True)
class Placed:
    order: Order


@dataclass(frozen=True, slots=True)
class Replayed:
    """The key's order, as it is now."""

    order: Order


@dataclass(frozen=True, slots=True)
class InFlight:
    """The first request with this key, or the row it needs, is still being decided."""


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key belongs to a request with other content."""


@dataclass(frozen=True, slots=True)
class SkuUnknown:
    sku_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AmountRefused:
    """``code``: AMOUNT_CHANGED (the member expected another sum), AMOUNT_ZERO or
    AMOUNT_TOO_LARGE."""

    code: str
    pay_amount: Decimal


@dataclass(frozen=True, slots=True)
class OutOfStock:
    """Every short line, and the member's own unpaid orders that hold some of those SKUs."""

    lines: tuple[ShortLine, ...]
    own_orders: tuple[str, ...] = field(default=())


type PlaceOutcome = (
    Placed | Replayed | InFlight | KeyReused | SkuUnknown | AmountRefused | OutOfStock
)


# What cancel() comes to.


@dataclass(frozen=True, slots=True)
class Closed:
    order_id: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Kept; the order closes once the gateway has said that nothing was paid."""

    order_id: int


@dataclass(frozen=True, slots=True)
class NotCancellable:
    status: OrderStatus


@dataclass(frozen=True, slots=True)
class OrderNotFound:
    """No such order of this member."""


# What hold() comes to.


@dataclass(frozen=True, slots=True)
class Held:
    """The order's stock is held and it may be paid."""


@dataclass(frozen=True, slots=True)
class SoldOut:
    """A line was short; the order is closed."""


@dataclass(frozen=True, slots=True)
class NotWaiting:
    """The order was decided before, or waits for another hold."""


type HoldOutcome = Held | SoldOut | NotWaiting | Refused

type CancelOutcome = Closed | CancelRequested | NotCancellable | OrderNotFound
