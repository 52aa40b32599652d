"""What is in the books of the local Alipay, and what a refusal is."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

NOTHING = Decimal("0.00")

type Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Status(StrEnum):
    WAIT_BUYER_PAY = "WAIT_BUYER_PAY"
    TRADE_SUCCESS = "TRADE_SUCCESS"
    TRADE_CLOSED = "TRADE_CLOSED"
    TRADE_FINISHED = "TRADE_FINISHED"


class Refused(Exception):
    """A refusal by its sub_code; `code` tells the gateway's own from those of the business."""

    def __init__(self, sub_code: str, message: str = "", *, code: str = "40004") -> None:
        super().__init__(sub_code)
        self.code, self.sub_code, self.message = code, sub_code, message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a pay link or a QR code asks a buyer for. No trade yet: that takes a buyer."""

    out_trade_no: str
    amount: Decimal
    subject: str
    product: str
    expires_at: datetime
    notify_url: str | None = None
    return_url: str | None = None

    @classmethod
    def read(cls, row: dict[str, Any]) -> "Request":
        expires_at = datetime.fromisoformat(row["expires_at"])
        return cls(**row | {"amount": Decimal(row["amount"]), "expires_at": expires_at})


@dataclass(frozen=True, slots=True)
class Refund:
    out_request_no: str
    amount: Decimal
    at: datetime

    @classmethod
    def read(cls, row: dict[str, Any]) -> "Refund":
        at = datetime.fromisoformat(row["at"])
        return cls(row["out_request_no"], Decimal(row["amount"]), at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    trade_no: str
    out_trade_no: str
    amount: Decimal
    subject: str
    created_at: datetime
    expires_at: datetime | None
    notify_url: str | None
    status: Status = Status.WAIT_BUYER_PAY
    paid_at: datetime | None = None
    closed_at: datetime | None = None
    refunds: tuple[Refund, ...] = ()

    @property
    def refunded(self) -> Decimal:
        return sum((refund.amount for refund in self.refunds), NOTHING)

    def refund(self, out_request_no: str) -> Refund | None:
        return next((one for one in self.refunds if one.out_request_no == out_request_no), None)

    @classmethod
    def read(cls, row: dict[str, Any]) -> "Trade":
        times = {
            name: datetime.fromisoformat(row[name])
            for name in ("created_at", "expires_at", "paid_at", "closed_at")
            if row[name] is not None
        }
        refunds = tuple(Refund.read(refund) for refund in row["refunds"])
        known = {"amount": Decimal(row["amount"]), "status": Status(row["status"])}
        return cls(**row | times | known | {"refunds": refunds})


def amount_of(text: str) -> Decimal | None:
    """Yuan as Alipay takes them: 0.01 to 100000000, at most two decimals."""
    whole, _, fen = text.partition(".")
    if not (text.isascii() and whole.isdigit() and len(whole) <= 9) or text.endswith("."):
        return None
    if fen and not (fen.isdigit() and len(fen) <= 2):
        return None
    amount = Decimal(text).quantize(Decimal("0.01"))
    return amount if NOTHING < amount <= 10**8 else None
