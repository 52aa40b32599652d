"""Orders before anybody pays: asked for twice, for the last one, in line, given up."""

from concurrent.futures import ThreadPoolExecutor

from infra.local.shop import Shop
from infra.local.stories.telling import LIN, MEI, expect, number, ordered, tell, tell_stock


def ask_again(shop: Shop) -> None:
    """Her phone lost the answer and asks again, with the same key"""
    sku_id = shop.new_sku("Ink bottle", "5.50", 10)
    first = shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    second = shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    expect([first.status, second.status], [201, 200], "the two answers")
    expect(number(second), number(first), "the order of the second answer")
    tell(f"201, then 200 with created: false; both are order {number(first)}")
    tell_stock(shop, sku_id, (10, 1))


def ask_for_something_else(shop: Shop) -> None:
    """The same key, but other content: a mistake of the front end, told apart from a retry"""
    sku_id = shop.new_sku("Pencil case", "12.00", 10)
    shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    other = shop.order(MEI, {sku_id: 3}, key=f"demo-{sku_id}")
    expect([other.status, other.document["code"]], [409, "IDEMPOTENCY_KEY_REUSED"], "the refusal")
    tell("one pencil case: 201; three, with that key: 409 IDEMPOTENCY_KEY_REUSED")
    tell_stock(shop, sku_id, (10, 1))


def want_the_last_one(shop: Shop) -> None:
    """Mei and Lin want the last globe at the same moment"""
    sku_id = shop.new_sku("Globe", "88.00", 1)
    tell_stock(shop, sku_id)
    with ThreadPoolExecutor(max_workers=2) as at_once:
        replies = list(at_once.map(lambda member: shop.order(member, {sku_id: 1}), (MEI, LIN)))
    won, lost = sorted(replies, key=lambda reply: reply.status)
    expect([won.status, lost.status], [201, 409], "the two answers")
    expect(lost.document["code"], "OUT_OF_STOCK", "the refusal")
    tell(f"one gets order {number(won)}, the other OUT_OF_STOCK {lost.document['lines']}")
    tell_stock(shop, sku_id, (1, 1))


def wait_in_line(shop: Shop) -> None:
    """A hot lamp: three are left, Mei and Lin each want two, and nobody waits on a row lock"""
    sku_id = shop.new_sku("Dragon lamp", "66.00", 3, hot=True)
    orders = [ordered(shop, member, sku_id, 2) for member in (MEI, LIN)]
    tell(f"201 for each, Retry-After 1: both orders are {orders[0]['status']}")
    for order in orders:
        shop.wait_for_decision(order["order_no"])
    states = sorted(shop.status(order["order_no"]) for order in orders)
    expect(states, ["CLOSED", "PENDING_PAYMENT"], "what reserve.fifo came to")
    tell("reserve.fifo gave one of them her time to pay; the other is CLOSED, OUT_OF_STOCK")
    tell_stock(shop, sku_id, (3, 2))


def cancel(shop: Shop) -> None:
    """Mei changes her mind, twice; she has opened no payment page, so there is nobody to ask"""
    sku_id = shop.new_sku("Reading stand", "45.00", 5)
    order = ordered(shop, MEI, sku_id)
    tell_stock(shop, sku_id, (5, 1))
    replies = [shop.call("POST", f"/orders/{order['order_no']}/cancel", MEI) for _ in range(2)]
    expect([reply.status for reply in replies], [200, 200], "the two answers")
    seconds = shop.wait_for_hold(order["order_no"], "RELEASED")
    tell(f"200 both times; release.fifo gave the hold back {seconds:.1f} s later, once")
    tell_stock(shop, sku_id, (5, 0))
