"""What a notice says, by what happened to the trade."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.local.alipay_gateway.shapes import Refund, Trade
from infra.local.alipay_sign import BEIJING, beijing_text, payment_notice

# What is there only once somebody has paid.
OF_A_PAYMENT = ("gmt_payment", "receipt_amount", "buyer_pay_amount", "fund_bill_list")


@dataclass(frozen=True, slots=True)
class Notice:
    """``words`` lack notify_time and the signature: both are made anew whenever it is sent."""

    out_trade_no: str
    notify_url: str
    words: dict[str, str]

    @property
    def id(self) -> str:
        return self.words["notify_id"]

    @classmethod
    def read(cls, row: dict[str, Any]) -> "Notice":
        return cls(**row)


def notice_of(trade: Trade, app_id: str, seller_id: str, refund: Refund | None = None) -> Notice:
    """What is said of a trade as it is now; of a refund if that is what happened."""
    words = payment_notice(
        app_id,
        seller_id,
        trade.out_trade_no,
        trade.trade_no,
        trade.amount,
        notify_id=new_notify_id(trade.created_at),
        status=trade.status,
        paid_at=trade.paid_at,
    )
    del words["notify_time"]
    words |= {"subject": trade.subject, "gmt_create": beijing_text(trade.created_at)}
    if trade.paid_at is None:
        for name in OF_A_PAYMENT:
            del words[name]
    else:
        # There without any refund, too, and then it is 0.00.
        words["refund_fee"] = f"{trade.refunded:.2f}"
    if refund is not None:
        words["gmt_refund"] = with_fraction(refund.at)
        words["out_biz_no"] = refund.out_request_no
    if trade.closed_at is not None:
        words["gmt_close"] = beijing_text(trade.closed_at)
    return Notice(trade.out_trade_no, trade.notify_url or "", words)


def new_notify_id(at: datetime) -> str:
    """34 digits that begin with the day."""
    return f"{at.astimezone(BEIJING):%Y%m%d}00222{secrets.randbelow(10**21):021d}"


def with_fraction(at: datetime) -> str:
    """The one time in a notice that has a fraction: milliseconds."""
    return f"{beijing_text(at)}.{at.microsecond // 1000:03d}"
