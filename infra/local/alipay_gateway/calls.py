"""The methods of the gateway: what each takes, and the fields of what it answers."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from infra.local.alipay_gateway.shapes import Refused, Request, Trade, amount_of
from infra.local.alipay_sign import BEIJING, beijing_text

if TYPE_CHECKING:
    from infra.local.alipay_gateway.service import Service

# Without a time_expire a pay link is good for so long.
DEFAULT_LIFE = LONGEST_LIFE = timedelta(days=15)
PRODUCTS: Final = {
    "alipay.trade.page.pay": {"FAST_INSTANT_TRADE_PAY"},
    "alipay.trade.wap.pay": {"QUICK_WAP_WAY", "QUICK_WAP_PAY"},
    "alipay.trade.precreate": {"", "FACE_TO_FACE_PAYMENT", "QR_CODE_OFFLINE"},
}
PAGES: Final = {"alipay.trade.page.pay", "alipay.trade.wap.pay"}

type Fields = dict[str, object]
type Json = dict[str, Any]


def biz_content(params: Mapping[str, str]) -> Json:
    """The method's own parameters."""
    try:
        content = json.loads(params.get("biz_content") or "{}")
    except ValueError:
        raise Refused("isv.invalid-parameter", "biz_content", code="40002") from None
    if not isinstance(content, dict):
        raise Refused("isv.invalid-parameter", "biz_content", code="40002")
    return content


def pay_request(params: Mapping[str, str], biz: Json, now: datetime) -> Request:
    """What a pay link or a QR code asks for. Raises Refused by Alipay's rules of creating."""
    amount = amount_of(str(biz.get("total_amount", "")))
    if amount is None:
        raise Refused("ACQ.INVALID_PARAMETER", "total_amount")
    if biz.get("product_code", "") not in PRODUCTS[params["method"]]:
        raise Refused("ACQ.INVALID_PARAMETER", "product_code")
    request = Request(
        out_trade_no=_text(biz, "out_trade_no", r"[A-Za-z0-9_]{1,64}"),
        amount=amount,
        subject=_text(biz, "subject", r"[^/=&]{1,256}"),
        product=params["method"],
        expires_at=_deadline(biz, now),
        notify_url=params.get("notify_url") or None,
        return_url=params.get("return_url") or None,
    )
    if request.notify_url and not re.fullmatch(r"https?://[^?#\s]{1,240}", request.notify_url):
        raise Refused("ACQ.INVALID_PARAMETER", "notify_url")
    if request.return_url and not re.fullmatch(r"https?://\S{1,248}", request.return_url):
        raise Refused("ACQ.INVALID_PARAMETER", "return_url")
    return request


def precreate(service: "Service", params: Mapping[str, str], biz: Json) -> Fields:
    request = pay_request(params, biz, service.clock())
    service.books.ask(request)
    return {
        "out_trade_no": request.out_trade_no,
        "qr_code": f"{service.cashier_url}/{request.out_trade_no}",
    }


def query(service: "Service", _: Mapping[str, str], biz: Json) -> Fields:
    trade = service.books.find(**_numbers(biz))
    found: Fields = {
        **_names(trade),
        "trade_status": str(trade.status),
        "total_amount": f"{trade.amount:.2f}",
    }
    if trade.paid_at is None:
        return found
    return found | {
        "receipt_amount": f"{trade.amount:.2f}",
        "buyer_pay_amount": f"{trade.amount:.2f}",
        "send_pay_date": beijing_text(trade.paid_at),
    }


def close(service: "Service", _: Mapping[str, str], biz: Json) -> Fields:
    return _names(service.books.close(**_numbers(biz)))


def refund(service: "Service", _: Mapping[str, str], biz: Json) -> Fields:
    trade = service.books.find(**_numbers(biz))
    trade, is_new = service.books.refund(
        trade, _amount(biz, "refund_amount"), _optional(biz, "out_request_no")
    )
    return {
        **_names(trade),
        "fund_change": "Y" if is_new else "N",
        "refund_fee": f"{trade.refunded:.2f}",
    }


def query_refund(service: "Service", _: Mapping[str, str], biz: Json) -> Fields:
    number = _text(biz, "out_request_no", r".{1,64}")
    trade = service.books.find(**_numbers(biz))
    done = trade.refund(number)
    if done is None:
        return {}
    return {
        **_names(trade),
        "out_request_no": number,
        "total_amount": f"{trade.amount:.2f}",
        "refund_amount": f"{done.amount:.2f}",
        "refund_status": "REFUND_SUCCESS",
    }


def bill_link(service: "Service", _: Mapping[str, str], biz: Json) -> Fields:
    if biz.get("bill_type") != "trade":
        raise Refused("INVAILID_ARGUMENTS", "bill_type")
    try:
        day = date.fromisoformat(str(biz.get("bill_date", "")))
    except ValueError:
        raise Refused("INVAILID_ARGUMENTS", "bill_date") from None
    return dict(service.bills.link(day))


METHODS: Final[Mapping[str, Callable[["Service", Mapping[str, str], Json], Fields]]] = {
    "alipay.trade.precreate": precreate,
    "alipay.trade.query": query,
    "alipay.trade.close": close,
    "alipay.trade.refund": refund,
    "alipay.trade.fastpay.refund.query": query_refund,
    "alipay.data.dataservice.bill.downloadurl.query": bill_link,
}


def _names(trade: Trade) -> Fields:
    return {"trade_no": trade.trade_no, "out_trade_no": trade.out_trade_no}


def _numbers(biz: Json) -> dict[str, str | None]:
    numbers = {name: _optional(biz, name) for name in ("out_trade_no", "trade_no")}
    if not any(numbers.values()):
        raise Refused("ACQ.INVALID_PARAMETER", "out_trade_no or trade_no")
    return numbers


def _optional(biz: Json, name: str) -> str | None:
    return _text(biz, name, r".{1,64}") if biz.get(name) else None


def _text(biz: Json, name: str, pattern: str) -> str:
    value = biz.get(name)
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise Refused("ACQ.INVALID_PARAMETER", name)
    return value


def _amount(biz: Json, name: str) -> Decimal:
    amount = amount_of(str(biz.get(name, "")))
    if amount is None:
        raise Refused("ACQ.INVALID_PARAMETER", name)
    return amount


def _deadline(biz: Json, now: datetime) -> datetime:
    text = biz.get("time_expire")
    if text is None:
        return now + DEFAULT_LIFE
    try:
        at = datetime.strptime(str(text), "%Y-%m-%d %H:%M:%S").replace(tzinfo=BEIJING)
    except ValueError:
        raise Refused("ACQ.INVALID_PARAMETER", "time_expire") from None
    if at > now + LONGEST_LIFE:
        raise Refused("ACQ.INVALID_PARAMETER", "time_expire")
    return at
