"""Money that no order takes, or that an operator sends back; and money that fits no order."""

import secrets
import time

from infra.local.shop import OPERATOR, Shop
from infra.local.stories.telling import (
    LIN,
    MEI,
    expect,
    ordered,
    page_of,
    sold,
    sweep,
    tell,
    tell_payments,
    tell_stock,
)

# Alipay's own wish, for refunds of one trade.
REFUNDS_APART_SECONDS = 3


def pay_too_late(shop: Shop) -> None:
    """She cancels, but her payment was already on its way"""
    sku_id = shop.new_sku("Desk lamp", "30.00", 5)
    order = ordered(shop, MEI, sku_id)
    page_of(shop, MEI, order)
    shop.call("POST", f"/orders/{order['order_no']}/cancel", MEI)
    shop.pay(order["order_no"], "30.00")
    tell("the order stays CLOSED; refund.fifo sends the money back by itself")
    tell_payments(shop, order, "REFUNDED LATE_PAYMENT")
    expect(shop.refunds_made(order["order_no"]), ["30.00"], "what Alipay gave back")
    shop.wait_for_hold(order["order_no"], "RELEASED")
    tell_stock(shop, sku_id, (5, 0))


def pay_twice(shop: Shop) -> None:
    """Two tabs, two payments for one order; and Alipay repeats the first notice"""
    sku_id = shop.new_sku("Calendar", "15.00", 5)
    order = ordered(shop, MEI, sku_id)
    shop.disturb(order["order_no"], "notice", "twice")
    page_of(shop, MEI, order).press("twice")
    tell("one trade pays the order, the other goes back by itself, the repeat changes nothing")
    tell_payments(shop, order, "APPLIED", "REFUNDED SECOND_PAYMENT")
    expect(shop.refunds_made(order["order_no"]), ["15.00"], "what Alipay gave back")
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    tell_stock(shop, sku_id, (4, 0))


def pay_a_wrong_amount(shop: Shop) -> None:
    """Somebody pays 0.01 for an order of 99.00, with a genuine notice"""
    sku_id = shop.new_sku("Typewriter", "99.00", 5)
    order = ordered(shop, MEI, sku_id)
    shop.pay(order["order_no"], "0.01")
    shop.wait_for_any_payment(order["order_no"])
    expect(shop.status(order["order_no"]), "PENDING_PAYMENT", "the order's status")
    tell("the order is still PENDING_PAYMENT, the fen goes back by itself")
    tell_payments(shop, order, "REFUNDED AMOUNT_MISMATCH")
    tell_stock(shop, sku_id, (5, 1))


def send_something_back(shop: Shop) -> None:
    """One of Lin's three cups is broken; then she returns the other two, too"""
    sku_id = shop.new_sku("Tea cup", "20.00", 5)
    order = sold(shop, LIN, sku_id, 3)
    tell_stock(shop, sku_id, (2, 0))
    refunded = shop.refund(order["order_no"], "one cup was broken", amount="20.00")
    expect(refunded.status, 201, f"the answer {refunded.document}")
    shop.wait_for_refunds(order["order_no"], "DONE")
    expect(shop.status(order["order_no"]), "PAID", "the order's status")
    tell(f"operator {OPERATOR} refunds 20.00 of 60.00: the order stays PAID, the stock as it is")
    time.sleep(REFUNDS_APART_SECONDS)
    two = [{"sku_id": sku_id, "quantity": 2}]
    refunded = shop.refund(order["order_no"], "returned", restock=two)
    expect(refunded.document["order"]["status"], "REFUNDING", "the order's status")
    shop.wait_for_status(order["order_no"], "REFUNDED")
    tell("then all that is left, and says that two cups come back: REFUNDING, REFUNDED")
    expect(shop.refunds_made(order["order_no"]), ["20.00", "40.00"], "what Alipay gave back")
    tell_stock(shop, sku_id, (4, 0))


def lose_the_answer(shop: Shop) -> None:
    """A refund is made, its answer is lost: Alipay is asked about it before it is tried again"""
    sku_id = shop.new_sku("Inkstick", "12.00", 5)
    order = sold(shop, MEI, sku_id)
    shop.disturb(order["order_no"], "alipay.trade.refund", "lose_response")
    shop.disturb(order["order_no"], "notice", "never")
    shop.refund(order["order_no"], "cracked")
    shop.wait_for_refunds(order["order_no"], "UNKNOWN")
    tell("Alipay gave 12.00 back, the connection broke, and the refund is UNKNOWN")
    shop.let_a_minute_pass(order["order_no"])
    sweep(shop)
    shop.wait_for_status(order["order_no"], "REFUNDED")
    expect(shop.refunds_made(order["order_no"]), ["12.00"], "what Alipay gave back")
    tell("a minute later (by SQL) it is asked for by its number: DONE. It was made once")


def pay_for_no_order(shop: Shop) -> None:
    """Money arrives for two numbers that the shop does not know; a person looks at it"""
    sku_id = shop.new_sku("Wall scroll", "73.00", 5)
    order = ordered(shop, LIN, sku_id)
    unknown = [f"TILL-{secrets.token_hex(6)}" for _ in range(2)]
    lins, nobodys = (shop.pay(number, "73.00") for number in unknown)
    for trade_no in (lins, nobodys):
        shop.wait_for_trade(trade_no, "UNMATCHED")
    listed = shop.operate("GET", "/ops/payments?state=UNMATCHED").document["payments"]
    expect({lins, nobodys} <= {one["trade_no"] for one in listed}, True, "that both are listed")
    tell(f"GET /ops/payments shows {OPERATOR} both, UNMATCHED: they pay nothing by themselves")
    body = {"order_no": order["order_no"], "reason": "Lin paid at the till"}
    attached = shop.operate("POST", f"/ops/payments/{lins}/attach", body=body)
    expect([attached.status, attached.document["state"]], [200, "APPLIED"], "the answer")
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    tell("one was Lin's: attached to her order, which is PAID")
    shop.operate("POST", f"/ops/payments/{nobodys}/refund", body={"reason": "nobody's"})
    shop.wait_for_trade(nobodys, "REFUNDED")
    expect(shop.refunds_made(unknown[1]), ["73.00"], "what Alipay gave back")
    tell("nobody knows whose the other is: given back")
    tell_payments(shop, order, "APPLIED")
    tell_stock(shop, sku_id, (4, 0))
