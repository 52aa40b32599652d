"""What the HTTP interface answers, as models that the OpenAPI document is made from.

Nothing of this is deployed: `lockstep.api.views` writes the answers, these say what they look like,
and the tests hold every real answer against them. A member without a default is always there.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, WithJsonSchema, create_model

from lockstep.api.problems import PROBLEMS
from lockstep.api.requests import ORDER_NO
from lockstep.inventory.model import ReservationState
from lockstep.orders.model import CloseReason, OrderStatus, RequestState
from lockstep.payments.model import PaymentState
from lockstep.payments.refund_model import RefundState
from lockstep.payments.waiting import WAITING


def one_of(states: type[StrEnum], *never_seen: StrEnum) -> WithJsonSchema:
    """A string that is one of ``states``, apart from those that nobody ever sees."""
    return WithJsonSchema(
        {"type": "string", "enum": [str(state) for state in states if state not in never_seen]}
    )


Amount = Annotated[str, Field(pattern=r"^[0-9]{1,16}\.[0-9]{2}$", examples=["19.80"])]
Time = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        examples=["2026-10-24T02:00:05.000Z"],
    ),
]
OrderNo = Annotated[str, Field(pattern=f"^{ORDER_NO.pattern}$")]
# The first payment of an order has the order's own number, later ones add to it.
OutTradeNo = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,32}(_[0-9]+)?$")]
Status = Annotated[str, one_of(OrderStatus, OrderStatus.NONE)]


class Line(BaseModel):
    sku_id: int
    title: str
    quantity: int
    price: Amount
    amount: Amount


class Reservation(BaseModel):
    """The hold of the order's stock. ``state`` is null before there is one."""

    reservation_id: str | None
    state: Annotated[str, one_of(ReservationState, ReservationState.INIT)] | None


class Order(BaseModel):
    order_no: OrderNo
    status: Status
    close_reason: Annotated[str, one_of(CloseReason)] | None
    total_amount: Amount
    pay_amount: Amount
    paid_amount: Amount
    refunded_amount: Amount
    currency: Literal["CNY"]
    created_at: Time
    expires_at: Time | None
    paid_at: Time | None
    note: str | None
    lines: list[Line]
    reservation: Reservation


class Payment(BaseModel):
    provider: str
    trade_no: str
    amount: Amount
    state: Annotated[str, one_of(PaymentState, PaymentState.RECEIVED)]
    paid_at: Time | None


class TimelineEntry(BaseModel):
    at: Time
    from_: Annotated[str, one_of(OrderStatus), Field(serialization_alias="from")]
    to: Status
    actor: str
    reason: str


class OrderInFull(Order):
    """An order with its payments and its trail, both oldest first."""

    payments: list[Payment]
    timeline: list[TimelineEntry]


class PlacedOrder(BaseModel):
    """``created`` is false on a replay: the order is as it is now."""

    request_state: Literal["SUCCESS"]
    created: bool
    order: Order


class RequestInFlight(BaseModel):
    """The first request with this key is still being decided: send the same again."""

    request_state: Literal["PROCESSING"]


class OrderRequest(BaseModel):
    """UNKNOWN is "not seen", never "did not happen"."""

    request_state: Annotated[str, one_of(RequestState)]
    order: Order | None


class OrderPage(BaseModel):
    """Newest first. ``next_cursor`` is null on the last page."""

    orders: list[Order]
    next_cursor: str | None


class CancelledOrder(BaseModel):
    order: Order


class PayByUrl(BaseModel):
    """Products page and wap: what a browser opens."""

    out_trade_no: OutTradeNo
    pay_url: str
    amount: Amount
    expires_at: Time


class PayByCode(BaseModel):
    """Product qr: what a code to scan says."""

    out_trade_no: OutTradeNo
    qr_code: str
    amount: Amount
    expires_at: Time


class StartedPayment(RootModel[PayByUrl | PayByCode]):
    """How to pay, and until when."""


class StockOfSku(BaseModel):
    sku_id: int
    title: str
    price: Amount
    stock: int
    lock_stock: int
    available: int
    hot: bool


class Refund(BaseModel):
    """``code``: what Alipay said last against it."""

    out_request_no: str
    trade_no: str
    amount: Amount
    state: Annotated[str, one_of(RefundState)]
    code: str | None
    requested_by: str
    reason: str | None


class RefundedOrder(BaseModel):
    refund: Refund
    order: Order


class PaymentOfRefund(BaseModel):
    trade_no: str
    amount: Amount
    refunded_amount: Amount
    state: Annotated[str, one_of(PaymentState, PaymentState.RECEIVED)]


class MoneyGivenBack(BaseModel):
    """The payment, and the refund that an operator asked for, both as they are now."""

    payment: PaymentOfRefund
    refund: Refund


class PaymentAttached(BaseModel):
    """``repeated``: it was this order's before."""

    trade_no: str
    state: Annotated[str, one_of(PaymentState, PaymentState.RECEIVED)]
    repeated: bool


class FailedRefund(BaseModel):
    out_request_no: str
    amount: Amount
    code: str | None


class WaitingPayment(BaseModel):
    """Money that waits for a person. APPLIED: the last refund of a paid order was given up."""

    provider: str
    trade_no: str
    out_trade_no: str
    order_no: OrderNo | None
    amount: Amount
    refunded_amount: Amount
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": [str(s) for s in WAITING]})]
    reason: str | None
    paid_at: Time | None
    failed_refund: FailedRefund | None


class WaitingPage(BaseModel):
    """Newest first. ``next_cursor`` is null on the last page."""

    payments: list[WaitingPayment]
    next_cursor: str | None


class FieldError(BaseModel):
    loc: list[str | int]
    type: str
    msg: str


class ShortLine(BaseModel):
    sku_id: int
    wanted: int
    available: int


class UnreturnableLine(BaseModel):
    sku_id: int
    wanted: int
    returnable: int


# What a problem document carries besides its five members.
_EXTRAS: dict[str, dict[str, Any]] = {
    "BODY_INVALID": {"errors": (list[FieldError], ...)},
    "QUERY_INVALID": {"errors": (list[FieldError], ...)},
    "SKU_UNKNOWN": {"sku_ids": (list[int], ...)},
    "AMOUNT_CHANGED": {"pay_amount": (Amount, ...)},
    "AMOUNT_ZERO": {"pay_amount": (Amount, ...)},
    "AMOUNT_TOO_LARGE": {"pay_amount": (Amount, ...)},
    "OUT_OF_STOCK": {
        "lines": (list[ShortLine], ...),
        "own_orders": (Annotated[list[OrderNo], Field(default_factory=list)]),
    },
    "ORDER_NOT_PAYABLE": {"order_status": (Status, ...)},
    "ORDER_NOT_CANCELLABLE": {"order_status": (Status, ...)},
    "ORDER_NOT_REFUNDABLE": {"order_status": (Status, ...)},
    "ORDER_TAKES_NONE": {"order_status": (Status, ...), "payment_reason": (str | None, ...)},
    "REFUND_TOO_LARGE": {"refundable": (Amount, ...)},
    "RESTOCK_REFUSED": {"lines": (list[UnreturnableLine], ...)},
    "PAYMENT_NOT_WAITING": {
        "payment_state": (Annotated[str, one_of(PaymentState, PaymentState.RECEIVED)], ...)
    },
}


def problem_model(code: str, title: str) -> type[BaseModel]:
    """The problem document of ``code``, whose status has the reason phrase ``title``."""
    status, detail = PROBLEMS[code]
    name = "".join(word.capitalize() for word in code.split("_"))
    members: dict[str, Any] = {
        "type": (Literal["about:blank"], ...),
        "title": (Annotated[str, Field(examples=[title])], ...),
        "status": (Literal[status], ...),
        "detail": (Annotated[str, Field(examples=[detail])], ...),
        "code": (Literal[code], ...),
    }
    return create_model(name, **members, **_EXTRAS.get(code, {}))
