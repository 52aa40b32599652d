"""Payment pages: paid, closed before their order is, forgotten, and paid without a word."""

from infra.local.shop import Shop
from infra.local.stories.telling import (
    LIN,
    MEI,
    expect,
    number,
    ordered,
    page_of,
    sweep,
    tell,
    tell_payments,
    tell_stock,
)


def pay_an_order(shop: Shop) -> None:
    """Mei orders two fountain pens and pays: held, paid, sold"""
    sku_id = shop.new_sku("Fountain pen", "9.90", 10)
    tell_stock(shop, sku_id)
    order = ordered(shop, MEI, sku_id, 2)
    tell(f"she orders two: {order['order_no']}, {order['pay_amount']} yuan, {order['status']}")
    tell_stock(shop, sku_id, (10, 2))
    page = page_of(shop, MEI, order)
    tell("she asks for a payment page, follows its link to the local Alipay and presses Pay")
    page.press("pay")
    seconds = shop.wait_for_status(order["order_no"], "PAID")
    tell(f"its signed notice makes the order PAID {seconds:.1f} s later")
    seconds = shop.wait_for_hold(order["order_no"], "CONFIRMED")
    tell(f"confirm.fifo turned the hold into a sale {seconds:.1f} s later")
    tell_stock(shop, sku_id, (8, 0))
    tell_payments(shop, order, "APPLIED")


def cancel_with_an_open_page(shop: Shop) -> None:
    """She cancels while her payment page is open: Alipay closes it before the order is closed"""
    sku_id = shop.new_sku("Paper lantern", "25.00", 5)
    order = ordered(shop, MEI, sku_id)
    page = page_of(shop, MEI, order)
    cancelled = shop.call("POST", f"/orders/{order['order_no']}/cancel", MEI)
    expect([cancelled.status, cancelled.document["order"]["status"]], [200, "CLOSED"], "the answer")
    tell(f"200: Alipay said that nothing was paid, and order {number(cancelled)} is CLOSED")
    refused = page.press("pay")
    expect([refused.status, "ACQ.TRADE_HAS_CLOSE" in refused.text], [409, True], "the page")
    tell("she presses Pay on the page that is still open: ACQ.TRADE_HAS_CLOSE, nothing is paid")
    shop.wait_for_hold(order["order_no"], "RELEASED")
    tell_payments(shop, order)
    tell_stock(shop, sku_id, (5, 0))


def let_it_expire(shop: Shop) -> None:
    """Lin opens a payment page and forgets it; her half hour goes by (rows are aged by SQL)"""
    sku_id = shop.new_sku("Ink stone", "35.00", 5)
    order = ordered(shop, LIN, sku_id)
    page = page_of(shop, LIN, order)
    tell_stock(shop, sku_id, (5, 1))
    shop.end_time_of(order["order_no"])
    sweep(shop)
    shop.wait_for_status(order["order_no"], "CLOSED")
    tell("sweep_expired asks Alipay about her page and has it closed; then the order is CLOSED")
    expect(page.press("pay").status, 409, "the page")
    seconds = shop.wait_for_hold(order["order_no"], "RELEASED")
    tell(f"release.fifo gave its stock back {seconds:.1f} s later; the page takes no money")
    tell_stock(shop, sku_id, (5, 0))


def lose_the_notice(shop: Shop) -> None:
    """Lin pays, and no notice ever comes (a minute goes by, by SQL)"""
    sku_id = shop.new_sku("Tea caddy", "58.00", 5)
    order = ordered(shop, LIN, sku_id)
    shop.disturb(order["order_no"], "notice", "never")
    page_of(shop, LIN, order).press("pay")
    expect(shop.status(order["order_no"]), "PENDING_PAYMENT", "the order's status")
    tell("she has paid, and the shop knows nothing of it")
    shop.let_a_minute_pass(order["order_no"])
    sweep(shop)
    shop.wait_for_status(order["order_no"], "PAID")
    tell("sweep_expired asks Alipay about her page, and the order is PAID")
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    tell_payments(shop, order, "APPLIED")
    tell_stock(shop, sku_id, (4, 0))
