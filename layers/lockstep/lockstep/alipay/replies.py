"""From the fields of a verified answer to what the call is for. Pure.

A field that is missing or cannot be read raises ValueError: then the answer says nothing, and what
it answers is unknown.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from lockstep import beijing
from lockstep.alipay.answers import (
    NotExecuted,
    RefundFound,
    RefundReply,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)
from lockstep.alipay.envelope import Answer
from lockstep.money import parse_yuan

_ID: Final = re.compile(r"[!-~]{1,64}")
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

DONE: Final = "10000"
_RATE_LIMITED: Final = "40005"
_BUSINESS: Final = "40004"
# Permission, a parameter that is missing, one that is wrong, a condition that is not met, rights.
_OUR_FAULT: Final = frozenset({"20001", "40001", "40002", "40003", "40006"})
# Whatever code they come with: the gateway does not know either.
_NOBODY_KNOWS: Final = frozenset(
    {
        *("ACQ.SYSTEM_ERROR", "aop.ACQ.SYSTEM_ERROR", "ACQ.REFUND_CHARGE_ERROR"),
        *("aop.unknow-error", "isp.unknow-error"),
    }
)


def refusal(answer: Answer) -> Refused | NotExecuted | Unknown:
    """What a verified answer that is not 10000 comes to. A code that nobody told us is unknown."""
    sub_code = answer.sub_code
    if sub_code in _NOBODY_KNOWS or not _CODE.fullmatch(sub_code or answer.code):
        return Unknown(f"{answer.code} {sub_code}")
    if answer.code == _BUSINESS and sub_code:
        return Refused(sub_code)
    if answer.code == _RATE_LIMITED:
        return NotExecuted(sub_code or answer.code, is_our_fault=False)
    if answer.code in _OUR_FAULT:
        return NotExecuted(sub_code or answer.code, is_our_fault=True)
    return Unknown(f"{answer.code} {sub_code}")


def check_subject(answer: Answer, asked: Mapping[str, str]) -> None:
    """A signature does not say which question it answers; the numbers in the answer do."""
    for name in ("out_trade_no", "trade_no", "out_request_no"):
        told = answer.text(name)
        if name in asked and told is not None and told != asked[name]:
            raise ValueError(f"about another {name}")


def trade(answer: Answer) -> Trade:
    return Trade(
        trade_no=_id(answer, "trade_no"),
        out_trade_no=_id(answer, "out_trade_no"),
        status=TradeStatus(_required(answer, "trade_status")),
        total_amount=parse_yuan(_required(answer, "total_amount")),
        paid_at=_time(answer, "send_pay_date"),
        # The seller has nothing yet (SELLER_NOT_RECEIVED), or the buyer has given nothing
        # (creditAdvanceV2). No value of either is known to mean that the money is there.
        is_settled=not (answer.text("additional_status") or answer.text("credit_pay_mode")),
    )


def refund_reply(answer: Answer) -> RefundReply:
    return RefundReply(
        fund_changed=answer.text("fund_change") == "Y", refunded=_yuan(answer, "refund_fee")
    )


def refund_found(answer: Answer) -> RefundFound:
    """refund_status decides; answers of old, which know none, name the amount of what is done."""
    status, amount = answer.text("refund_status"), _yuan(answer, "refund_amount")
    is_done = status == "REFUND_SUCCESS" or (status is None and amount is not None)
    return RefundFound(is_done=is_done, amount=amount if is_done else None)


def qr_code(answer: Answer) -> str:
    """What a QR code is to hold."""
    code = _required(answer, "qr_code")
    if not re.fullmatch(r"https?://[!-~]{1,1024}", code):
        raise ValueError("qr_code is no address")
    return code


def bill_url(answer: Answer) -> str:
    return _required(answer, "bill_download_url")


def _required(answer: Answer, name: str) -> str:
    value = answer.text(name)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _id(answer: Answer, name: str) -> str:
    value = _required(answer, name)
    if not _ID.fullmatch(value):
        raise ValueError(f"{name} is not an id")
    return value


def _yuan(answer: Answer, name: str) -> Decimal | None:
    value = answer.text(name)
    return None if value is None else parse_yuan(value)


def _time(answer: Answer, name: str) -> datetime | None:
    value = answer.text(name)
    return None if value is None else beijing.read(value)
