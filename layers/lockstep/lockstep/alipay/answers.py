"""What a call to Alipay's gateway can come to, as values.

Apart from `gateway`, so that whoever acts on an answer needs neither cryptography nor a network.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Done[T]:
    """The call was executed and answered, and the answer's signature holds."""

    value: T


@dataclass(frozen=True, slots=True)
class Refused:
    """A signed refusal for a reason of business, by its sub_code: `ACQ.TRADE_NOT_EXIST`."""

    code: str


@dataclass(frozen=True, slots=True)
class NotExecuted:
    """The gateway says that it did nothing: a rate limit, or a request that it does not accept.

    ``is_our_fault``: it will refuse the same request again; somebody must look at the settings.
    """

    code: str
    is_our_fault: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been executed: a time-out, a lost or unsigned answer, code 20000. ``why`` is for
    the log."""

    why: str


type Outcome[T] = Done[T] | Refused | NotExecuted | Unknown

# Of a Refused. Nobody has scanned or logged in yet: not paid, and not "can never be paid".
TRADE_NOT_EXIST: Final = "ACQ.TRADE_NOT_EXIST"
# Not in the state for what was asked.
TRADE_STATUS_ERROR: Final = "ACQ.TRADE_STATUS_ERROR"


class TradeStatus(StrEnum):
    WAIT_BUYER_PAY = "WAIT_BUYER_PAY"
    TRADE_SUCCESS = "TRADE_SUCCESS"
    TRADE_CLOSED = "TRADE_CLOSED"
    TRADE_FINISHED = "TRADE_FINISHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """alipay.trade.query. ``paid_at`` (UTC) is there if the buyer ever paid, so that it tells an
    unpaid TRADE_CLOSED from one that was refunded in full. ``is_settled`` is False where the buyer
    paid and the seller has nothing yet (additional_status, credit_pay_mode): neither paid nor
    unpaid."""

    trade_no: str
    out_trade_no: str
    status: TradeStatus
    total_amount: Decimal
    paid_at: datetime | None
    is_settled: bool

    @property
    def is_all_back(self) -> bool:
        """A part that goes back leaves a paid trade open."""
        return self.status is TradeStatus.TRADE_CLOSED and self.paid_at is not None


@dataclass(frozen=True, slots=True)
class RefundReply:
    """alipay.trade.refund. Only ``fund_changed`` shows that this call moved money; False also
    answers a repeat of a refund that is done. ``refunded`` is the trade's total, in yuan."""

    fund_changed: bool
    refunded: Decimal | None


@dataclass(frozen=True, slots=True)
class RefundFound:
    """alipay.trade.fastpay.refund.query. ``amount`` is this refund's, in yuan, where it is done."""

    is_done: bool
    amount: Decimal | None
