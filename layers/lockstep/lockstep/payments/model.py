"""Payments and notices: their states, and what a notice can come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal

from lockstep.orders.model import OrderNotFound, OrderStatus

PROVIDER: Final = "alipay"
ACTOR: Final = "alipay"


class PaymentState(StrEnum):
    RECEIVED = "RECEIVED"  # never visible: inside the accepting transaction only
    APPLIED = "APPLIED"  # paid its order; stays so, its refunds are rows of their own
    REFUND_PENDING = "REFUND_PENDING"  # real money that its order cannot take
    REFUNDING = "REFUNDING"
    REFUNDED = "REFUNDED"
    REFUND_FAILED = "REFUND_FAILED"  # waits for a person
    REINSTATE_PENDING = "REINSTATE_PENDING"  # late, and may revive its order if stock is left
    UNMATCHED = "UNMATCHED"  # fits no order; waits for a person


_P = PaymentState
PAYMENT_TRANSITIONS: Final[Mapping[PaymentState, frozenset[PaymentState]]] = {
    _P.RECEIVED: frozenset({_P.APPLIED, _P.REFUND_PENDING, _P.REINSTATE_PENDING, _P.UNMATCHED}),
    _P.APPLIED: frozenset(),
    _P.REFUND_PENDING: frozenset({_P.REFUNDING, _P.REFUNDED}),
    _P.REFUNDING: frozenset({_P.REFUNDED, _P.REFUND_FAILED}),
    _P.REFUNDED: frozenset(),
    _P.REFUND_FAILED: frozenset({_P.REFUNDING, _P.REFUNDED}),
    _P.REINSTATE_PENDING: frozenset({_P.APPLIED, _P.REFUND_PENDING}),
    _P.UNMATCHED: frozenset({_P.APPLIED, _P.REFUND_PENDING, _P.REINSTATE_PENDING, _P.REFUNDED}),
}


class AttemptState(StrEnum):
    OPEN = "OPEN"  # its link can be paid
    CLOSING = "CLOSING"  # we asked the channel to close it
    CLOSED = "CLOSED"
    PAID = "PAID"  # used up by a successful payment, of a wrong amount too


_A = AttemptState
ATTEMPT_TRANSITIONS: Final[Mapping[AttemptState, frozenset[AttemptState]]] = {
    _A.OPEN: frozenset({_A.CLOSING, _A.CLOSED, _A.PAID}),
    _A.CLOSING: frozenset({_A.CLOSED, _A.PAID}),
    _A.CLOSED: frozenset(),
    _A.PAID: frozenset(),
}


class RefundReason(StrEnum):
    """Why a payment cannot be applied."""

    NOT_PAYABLE = "NOT_PAYABLE"  # its stock is not held yet
    LATE_PAYMENT = "LATE_PAYMENT"  # the order had closed
    SECOND_PAYMENT = "SECOND_PAYMENT"  # another payment had paid it
    AMOUNT_MISMATCH = "AMOUNT_MISMATCH"


class NoticeState(StrEnum):
    STORED = "STORED"
    QUERY_DUE = "QUERY_DUE"  # only the gateway can say what happened
    UNMATCHED = "UNMATCHED"
    CONFLICT = "CONFLICT"
    DONE = "DONE"


class Result(StrEnum):
    """What accepting a notice came to."""

    APPLIED = "APPLIED"
    REFUND_PENDING = "REFUND_PENDING"
    REINSTATE_PENDING = "REINSTATE_PENDING"
    REFUND_RECORDED = "REFUND_RECORDED"
    ORDER_CLOSED = "ORDER_CLOSED"
    NOTED = "NOTED"  # stored; nothing follows from it
    REPLAYED = "REPLAYED"
    QUERY_DUE = "QUERY_DUE"
    UNMATCHED = "UNMATCHED"
    CONFLICT = "CONFLICT"


@dataclass(frozen=True, slots=True)
class Settled:
    """``reason`` is kept in the inbox; None where the result says it all."""

    result: Result
    reason: str | None = None


# Alipay is asked to send these again: a restore, or a row that commits late, may still make them
# fit.
RESULTS_TO_RESEND: Final = frozenset({Result.UNMATCHED, Result.CONFLICT})


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment's row. ``order_id`` is None while the money fits no order; ``told_amount`` is the
    largest total of refunds that the channel told, up to which every refund is counted."""

    id: int
    trade_no: str
    order_id: int | None
    amount: Decimal
    state: PaymentState
    refunded_amount: Decimal
    told_amount: Decimal


@dataclass(frozen=True, slots=True)
class PaymentView:
    """What a member sees of a payment."""

    provider: str
    trade_no: str
    amount: Decimal
    state: PaymentState
    paid_at: datetime | None


# --- attempts ------------------------------------------------------------------------------------

# A page for a browser, one for a telephone's, or a code to scan.
Product = Literal["page", "wap", "qr"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A payment page or code, with the amount and the end that it was made with."""

    id: int
    out_trade_no: str
    product: Product
    amount: Decimal
    state: AttemptState
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StartPayment:
    """POST /orders/{order_no}/payments after its body was checked."""

    member_id: int
    order_no: str
    product: Product
    notify_url: str


# What start() comes to.


@dataclass(frozen=True, slots=True)
class Started:
    """``link`` is a URL to open, or what a code to scan says. ``repeated``: of an attempt that was
    there."""

    attempt: Attempt
    link: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class NotPayable:
    """Paid, closed, or about to be closed."""

    status: OrderStatus


@dataclass(frozen=True, slots=True)
class StockNotHeld:
    """Not yet, or no more: nobody pays for what may not be there."""


@dataclass(frozen=True, slots=True)
class TimeOver:
    """Too little of the order's time is left to pay it."""


type StartOutcome = Started | NotPayable | StockNotHeld | TimeOver | OrderNotFound


# What reinstate() comes to.


@dataclass(frozen=True, slots=True)
class Reinstated:
    """The order is paid after all, by this payment."""

    payment_id: int


@dataclass(frozen=True, slots=True)
class SentBack:
    """Nothing is left to sell for it: so many payments go back."""

    payments: int


@dataclass(frozen=True, slots=True)
class NothingLate:
    """No payment of the order waits to revive it."""


type ReinstateOutcome = Reinstated | SentBack | NothingLate


# What attach() comes to.


@dataclass(frozen=True, slots=True)
class Attached:
    """The payment is the order's, in this state. ``repeated``: it was before."""

    state: PaymentState
    repeated: bool


@dataclass(frozen=True, slots=True)
class PaymentNotFound:
    """No such trade is known."""


@dataclass(frozen=True, slots=True)
class PaymentNotWaiting:
    """It belongs to another order, or went back: there is nothing to attach."""

    state: PaymentState


@dataclass(frozen=True, slots=True)
class OrderTakesNone:
    """The money would only go back: for such a ``reason``."""

    status: OrderStatus
    reason: str | None


type AttachOutcome = Attached | PaymentNotFound | PaymentNotWaiting | OrderNotFound | OrderTakesNone
