"""What tests and developers ask of the local Alipay, in JSON; nothing like it exists at Alipay."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from infra.local.alipay_gateway.replies import Reply, as_json
from infra.local.alipay_gateway.shapes import Refused, Trade, amount_of

if TYPE_CHECKING:
    from infra.local.alipay_gateway.service import Service

type Json = dict[str, Any]


class Invalid(Exception):
    """The request makes no sense; `code` says which part."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def answer(
    service: "Service", method: str, path: str, query: Mapping[str, str], body: bytes
) -> Reply:
    act = ROUTES.get((method, path))
    if act is None:
        return as_json(404, {"code": "ROUTE_NOT_FOUND"})
    try:
        return as_json(200, act(service, {**query, **_document(body)}))
    except Invalid as invalid:
        return as_json(400, {"code": invalid.code})
    except Refused as refused:
        return as_json(409, {"code": refused.sub_code})


def pay(service: "Service", asked: Json) -> Json:
    """As a person at the cashier would, also twice, late, or for what nobody asked."""
    number, amount = _text(asked, "out_trade_no"), _amount(asked)
    return {"trade_no": service.books.pay_anyway(number, amount).trade_no}


def refund(service: "Service", asked: Json) -> Json:
    """As in the merchant's console: the seller's own system does not know of it."""
    trade = service.books.find(trade_no=_text(asked, "trade_no"))
    number = asked.get("out_request_no") or f"console{len(trade.refunds) + 1}_{trade.trade_no}"
    service.books.refund(trade, _amount(asked), number)
    return {"out_request_no": number}


def finish(service: "Service", asked: Json) -> Json:
    """The refund window ends."""
    return _trade(service.books.finish(_text(asked, "trade_no")))


def close(service: "Service", asked: Json) -> Json:
    """An unpaid trade is closed, though the seller did not ask for it."""
    return _trade(service.books.close(out_trade_no=_text(asked, "out_trade_no")))


def trades(service: "Service", asked: Json) -> Json:
    return {"trades": [_trade(one) for one in service.books.trades(asked.get("out_trade_no"))]}


def refunds(service: "Service", asked: Json) -> Json:
    found = service.books.trades(asked.get("out_trade_no"))
    return {
        "refunds": [
            {"trade_no": trade.trade_no, "out_trade_no": trade.out_trade_no} | one
            for trade in found
            for one in _trade(trade)["refunds"]
        ]
    }


def balance(service: "Service", asked: Json) -> Json:
    """What the seller can refund from; null is always enough."""
    unlimited = asked.get("amount") is None
    service.books.set_balance(None if unlimited else _amount(asked, or_zero=True))
    return {}


def bills(service: "Service", asked: Json) -> Json:
    """`{"ready": "today"}`: today's bill can be had, as far as the day has come."""
    service.bills.is_today_ready = asked.get("ready") == "today"
    return {}


def notices(service: "Service", _: Json) -> Json:
    return {"waiting": service.post.waiting()}


def merchant(service: "Service", asked: Json) -> Json:
    """Where the seller is now."""
    service.post.find_merchant_at(_text(asked, "notify_url"))
    return {}


def show_faults(service: "Service", _: Json) -> Json:
    return service.faults.report()


def add_fault(service: "Service", asked: Json) -> Json:
    """A rule, or accidents from a seed."""
    try:
        if "seed" in asked:
            service.faults.draw(int(asked["seed"]), asked["rates"])
            return {"seed": int(asked["seed"])}
        made = service.faults.add(
            _text(asked, "method"),
            _text(asked, "action"),
            out_trade_no=asked.get("out_trade_no"),
            count=int(asked.get("count", 1)),
            seconds=float(asked.get("seconds", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Invalid("FAULT_INVALID") from None
    return {"id": made}


def clear_faults(service: "Service", _: Json) -> Json:
    service.post.release()
    service.faults.clear()
    return {}


def release(service: "Service", _: Json) -> Json:
    return {"released": service.release()}


ROUTES: Final[Mapping[tuple[str, str], Callable[["Service", Json], Json]]] = {
    ("POST", "/pay"): pay,
    ("POST", "/refund"): refund,
    ("POST", "/finish"): finish,
    ("POST", "/close"): close,
    ("GET", "/trades"): trades,
    ("GET", "/refunds"): refunds,
    ("POST", "/balance"): balance,
    ("POST", "/bills"): bills,
    ("GET", "/notices"): notices,
    ("POST", "/merchant"): merchant,
    ("GET", "/faults"): show_faults,
    ("POST", "/faults"): add_fault,
    ("DELETE", "/faults"): clear_faults,
    ("POST", "/faults/release"): release,
}


def _document(body: bytes) -> Json:
    try:
        # A number is taken as it is written, so that 19.90 and "19.90" are the same amount.
        document = json.loads(body or b"{}", parse_float=str)
    except ValueError:
        raise Invalid("BODY_UNREADABLE") from None
    if not isinstance(document, dict):
        raise Invalid("BODY_INVALID")
    return document


def _text(asked: Json, name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= 256 or not value.isprintable():
        raise Invalid(f"{name.upper()}_INVALID")
    return value


def _amount(asked: Json, *, or_zero: bool = False) -> Decimal:
    text = str(asked.get("amount"))
    if or_zero and text in {"0", "0.00"}:
        return Decimal(0)
    amount = amount_of(text)
    if amount is None:
        raise Invalid("AMOUNT_INVALID")
    return amount


def _trade(trade: Trade) -> Json:
    return {
        "trade_no": trade.trade_no,
        "out_trade_no": trade.out_trade_no,
        "amount": f"{trade.amount:.2f}",
        "refunded": f"{trade.refunded:.2f}",
        "status": trade.status,
        "created_at": trade.created_at.isoformat(),
        "paid_at": trade.paid_at and trade.paid_at.isoformat(),
        "closed_at": trade.closed_at and trade.closed_at.isoformat(),
        "refunds": [
            {
                "out_request_no": one.out_request_no,
                "amount": f"{one.amount:.2f}",
                "at": one.at.isoformat(),
            }
            for one in trade.refunds
        ],
    }
