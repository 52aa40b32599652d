"""Say what happened, and stop where it is not what should have happened."""

from typing import Any

from infra.local import buyer
from infra.local.shop import Reply, Shop

MEI, LIN = 42, 43


class WentWrong(Exception):
    """The system did not do what it promises."""


def ordered(shop: Shop, member: int, sku_id: int, quantity: int = 1) -> dict[str, Any]:
    """A new order of one line, as the API shows it."""
    reply = shop.order(member, {sku_id: quantity})
    expect(reply.status, 201, f"the answer to the order {reply.document}")
    order: dict[str, Any] = reply.document["order"]
    return order


def page_of(shop: Shop, member: int, order: dict[str, Any]) -> buyer.Page:
    """The payment page that the API's link leads to, opened."""
    reply = shop.start_payment(member, order["order_no"])
    expect(reply.status, 201, f"the answer to the payment {reply.document}")
    page = buyer.follow(reply.document["pay_url"])
    expect(page.status, 200, "the page that the link leads to")
    return page


def sold(shop: Shop, member: int, sku_id: int, quantity: int = 1) -> dict[str, Any]:
    """An order that was paid at the cashier, its stock sold."""
    order = ordered(shop, member, sku_id, quantity)
    page_of(shop, member, order).press("pay")
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    return order


def number(reply: Reply) -> str:
    return str(reply.document["order"]["order_no"])


def sweep(shop: Shop) -> None:
    """What happens each minute, now."""
    expect(shop.invoke("sweep_expired").get("failed"), [], "what sweep_expired could not settle")


def tell(text: str) -> None:
    print(f"   {text}")


def tell_stock(shop: Shop, sku_id: int, wanted: tuple[int, int] | None = None) -> None:
    stock, locked = shop.stock(sku_id)
    if wanted is not None:
        expect((stock, locked), wanted, "stock and locked")
    tell(f"stock {stock} · locked {locked} · available {stock - locked}")


def tell_payments(shop: Shop, order: dict[str, Any], *states: str) -> None:
    """Wait until that is what became of the order's payments, and tell it."""
    shop.wait_for_payments(order["order_no"], *states)
    for payment, state in zip(shop.payments(order["order_no"]), states, strict=True):
        tell(f"payment {payment['trade_no']} · {payment['amount']} yuan · {state}")


def expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise WentWrong(f"{what}: {found}, expected {expected}")
