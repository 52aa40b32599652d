"""What the buyer sees and does: a page an order, and buttons."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from infra.local import alipay_sign
from infra.local.alipay_gateway import cashier_page
from infra.local.alipay_gateway.cashier_words import WORDS
from infra.local.alipay_gateway.replies import Reply, redirect
from infra.local.alipay_gateway.shapes import Refused, Request, Trade, amount_of

if TYPE_CHECKING:
    from infra.local.alipay_gateway.service import Service

LISTED_MAX = 50


def language(query: Mapping[str, str], accepted: str) -> str:
    """As asked for, or as the browser prefers."""
    wanted = query.get("lang") or ("zh" if accepted.lower().startswith("zh") else "en")
    return wanted if wanted in WORDS else "en"


def show(service: "Service", out_trade_no: str, spoken: str) -> Reply:
    """An order's page, which begins its trade; without a number, all of them."""
    if not out_trade_no:
        return _all(service, spoken)
    try:
        service.books.open(out_trade_no)
    except Refused as refused:
        if refused.sub_code == "ACQ.TRADE_NOT_EXIST":
            return _problem(WORDS[spoken]["unknown"], spoken, 404)
    return _order(service, out_trade_no, spoken)


def act(service: "Service", out_trade_no: str, form: Mapping[str, str], spoken: str) -> Reply:
    """A button was pressed. The browser is sent on, so that a reload pays nothing again."""
    words = WORDS[spoken]
    try:
        return redirect(
            _paid(service, out_trade_no, form) or cashier_page.place(out_trade_no, spoken), 303
        )
    except NotASum:
        return _order(service, out_trade_no, spoken, words["invalid"], 400)
    except Refused as refused:
        if refused.sub_code == "ACQ.TRADE_NOT_EXIST":
            return _problem(words["unknown"], spoken, 404)
        text = words["refused"].format(refused.sub_code)
        return _order(service, out_trade_no, spoken, text, 409)


def refusal(refused: Refused, spoken: str) -> Reply:
    """The page that a bad pay link leads to."""
    return _problem(WORDS[spoken]["link"].format(refused.sub_code), spoken, 400)


class NotASum(Exception):
    """What was typed in is no amount."""


def _paid(service: "Service", out_trade_no: str, form: Mapping[str, str]) -> str | None:
    """Do as the button says; where the seller wants the buyer to go on, if anywhere."""
    books = service.books
    if form.get("action") == "pay":
        return _return_address(service, books.pay(books.open(out_trade_no).trade_no))
    asked = _asked(service, out_trade_no)
    match form.get("action"):
        case "late":
            books.pay_anyway(out_trade_no, asked.amount)
        case "twice":
            for _ in range(1 if _is_paid(service, out_trade_no) else 2):
                books.pay_anyway(out_trade_no, asked.amount)
        case _:
            amount = amount_of(form.get("amount", "").strip())
            if amount is None:
                raise NotASum
            books.pay_anyway(out_trade_no, amount)
    return None


def _is_paid(service: "Service", out_trade_no: str) -> bool:
    return any(trade.paid_at for trade in service.books.trades(out_trade_no))


def _return_address(service: "Service", trade: Trade) -> str | None:
    """return_url with what happened, signed; it tells the browser, never the seller's books."""
    request = service.books.request(trade.out_trade_no)
    if request is None or request.return_url is None:
        return None
    told = {
        "charset": "utf-8",
        "out_trade_no": trade.out_trade_no,
        "method": f"{request.product}.return",
        "total_amount": f"{trade.amount:.2f}",
        "trade_no": trade.trade_no,
        "app_id": service.app.app_id,
        "auth_app_id": service.app.app_id,
        "seller_id": service.seller_id,
        "version": "1.0",
        "timestamp": alipay_sign.beijing_text(service.clock()),
    }
    told |= {"sign_type": "RSA2", "sign": alipay_sign.sign(told, service.key)}
    return f"{request.return_url}{'&' if '?' in request.return_url else '?'}{urlencode(told)}"


def _all(service: "Service", spoken: str) -> Reply:
    latest = service.books.requests()[: -LISTED_MAX - 1 : -1]
    views = [_view(service, request) for request in latest]
    return Reply(200, cashier_page.orders(views, spoken).encode())


def _order(
    service: "Service",
    out_trade_no: str,
    spoken: str,
    problem: str | None = None,
    status: int = 200,
) -> Reply:
    asked = _asked(service, out_trade_no)
    return Reply(status, cashier_page.order(_view(service, asked), spoken, problem).encode())


def _asked(service: "Service", out_trade_no: str) -> Request | Trade:
    """What the buyer was to pay; of money that nobody asked for, what was paid."""
    asked = service.books.request(out_trade_no)
    if asked is not None:
        return asked
    return service.books.find(out_trade_no=out_trade_no)


def _view(service: "Service", asked: Request | Trade) -> cashier_page.View:
    trades = service.books.trades(asked.out_trade_no)
    return cashier_page.view_of(asked, trades, service.clock())


def _problem(text: str, spoken: str, status: int) -> Reply:
    return Reply(status, cashier_page.problem(text, spoken).encode())
