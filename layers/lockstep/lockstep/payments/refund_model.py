"""Refunds: their states, and what is known of one and of the payment that it is of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from lockstep.payments.model import Payment, PaymentState

# Who asks for refunds that nobody asked for, and gives up those that the channel will not do.
SYSTEM: Final = "system:refund_payment"


class RefundState(StrEnum):
    DUE = "DUE"  # to be asked for, at the first time or again
    CALLING = "CALLING"  # committed before the call
    DONE = "DONE"
    UNKNOWN = "UNKNOWN"  # it may have been done: ask, before it is tried again
    FAILED = "FAILED"  # the channel will not do it; waits for a person


_R = RefundState
REFUND_TRANSITIONS: Final[Mapping[RefundState, frozenset[RefundState]]] = {
    _R.DUE: frozenset({_R.CALLING, _R.DONE, _R.FAILED}),
    _R.CALLING: frozenset({_R.DUE, _R.DONE, _R.UNKNOWN, _R.FAILED}),
    _R.UNKNOWN: frozenset({_R.DUE, _R.DONE, _R.FAILED}),
    _R.DONE: frozenset(),
    _R.FAILED: frozenset({_R.DUE, _R.DONE}),
}


@dataclass(frozen=True, slots=True)
class RefundablePayment(Payment):
    """``is_finished``: the channel takes no refund of it any more."""

    reason: str | None
    is_finished: bool


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund's row, read under its payment's lock; what is due or long ago is so by the
    database's clock. ``tries`` also tells one claim of it from the next."""

    id: int
    out_request_no: str
    amount: Decimal
    state: RefundState
    requested_by: str
    reason: str | None
    request_hash: str | None
    tries: int
    code: str | None
    is_due: bool
    called_ms_ago: int | None

    @property
    def is_in_flight(self) -> bool:
        """It was asked for, and nobody knows yet what came of it."""
        return self.state in {RefundState.CALLING, RefundState.UNKNOWN}

    @property
    def is_open(self) -> bool:
        """It still may go back."""
        return self.state is RefundState.DUE or self.is_in_flight


def of_number(refunds: Iterable[Refund], out_request_no: str | None) -> Refund | None:
    """The one of a payment's refunds that has this number."""
    return next((each for each in refunds if each.out_request_no == out_request_no), None)


@dataclass(frozen=True, slots=True)
class WaitingMoney:
    """A payment that waits for a person, with its newest refund where there is one."""

    id: int
    provider: str
    trade_no: str
    out_trade_no: str
    order_no: str | None
    amount: Decimal
    refunded_amount: Decimal
    state: PaymentState
    reason: str | None
    paid_at: datetime | None
    out_request_no: str | None
    refund_amount: Decimal | None
    refund_code: str | None
