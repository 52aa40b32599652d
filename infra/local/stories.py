"""The main job as short stories: each makes its own SKU, does one thing, checks how it ended."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from infra.local.shop import Reply, Shop

MEI, LIN = 42, 43


class WentWrong(Exception):
    """The system did not do what it promises."""


def pay_an_order(shop: Shop) -> None:
    """Mei orders two fountain pens and pays: held, paid, sold"""
    sku_id = shop.new_sku("Fountain pen", "9.90", 10)
    _tell_stock(shop, sku_id)
    order = ordered(shop, MEI, sku_id, 2)
    _tell(f"she orders two: {order['order_no']}, {order['pay_amount']} yuan, {order['status']}")
    _tell_stock(shop, sku_id, expect=(10, 2))
    shop.pay(order["order_no"], "19.80")
    seconds = shop.wait_for_payments(order["order_no"], 1)
    _tell(f"she pays at the local Alipay; its signed notice arrives {seconds:.1f} s later")
    seconds = shop.wait_for_hold(order["order_no"], "CONFIRMED")
    _tell(f"confirm.fifo turned the hold into a sale {seconds:.1f} s later")
    _tell_stock(shop, sku_id, expect=(8, 0))
    _tell_payments(shop, order, "APPLIED")


def ask_again(shop: Shop) -> None:
    """Her phone lost the answer and asks again, with the same key"""
    sku_id = shop.new_sku("Ink bottle", "5.50", 10)
    first = shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    second = shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    _expect([first.status, second.status], [201, 200], "the two answers")
    _expect(_number(second), _number(first), "the order of the second answer")
    _tell(f"201, then 200 with created: false; both are order {_number(first)}")
    _tell_stock(shop, sku_id, expect=(10, 1))


def ask_for_something_else(shop: Shop) -> None:
    """The same key, but other content: a mistake of the front end, told apart from a retry"""
    sku_id = shop.new_sku("Pencil case", "12.00", 10)
    shop.order(MEI, {sku_id: 1}, key=f"demo-{sku_id}")
    other = shop.order(MEI, {sku_id: 3}, key=f"demo-{sku_id}")
    _expect([other.status, other.document["code"]], [409, "IDEMPOTENCY_KEY_REUSED"], "the refusal")
    _tell("one pencil case: 201; three, with that key: 409 IDEMPOTENCY_KEY_REUSED")
    _tell_stock(shop, sku_id, expect=(10, 1))


def want_the_last_one(shop: Shop) -> None:
    """Mei and Lin want the last globe at the same moment"""
    sku_id = shop.new_sku("Globe", "88.00", 1)
    _tell_stock(shop, sku_id)
    with ThreadPoolExecutor(max_workers=2) as at_once:
        replies = list(at_once.map(lambda member: shop.order(member, {sku_id: 1}), (MEI, LIN)))
    won, lost = sorted(replies, key=lambda reply: reply.status)
    _expect([won.status, lost.status], [201, 409], "the two answers")
    _expect(lost.document["code"], "OUT_OF_STOCK", "the refusal")
    _tell(f"one gets order {_number(won)}, the other OUT_OF_STOCK {lost.document['lines']}")
    _tell_stock(shop, sku_id, expect=(1, 1))


def cancel(shop: Shop) -> None:
    """Mei changes her mind, twice"""
    sku_id = shop.new_sku("Reading stand", "45.00", 5)
    order = ordered(shop, MEI, sku_id)
    _tell_stock(shop, sku_id, expect=(5, 1))
    replies = [shop.call("POST", f"/orders/{order['order_no']}/cancel", MEI) for _ in range(2)]
    _expect([reply.status for reply in replies], [200, 200], "the two answers")
    seconds = shop.wait_for_hold(order["order_no"], "RELEASED")
    _tell(f"200 both times; release.fifo gave the hold back {seconds:.1f} s later, once")
    _tell_stock(shop, sku_id, expect=(5, 0))


def pay_too_late(shop: Shop) -> None:
    """She cancels, but her payment was already on its way"""
    sku_id = shop.new_sku("Desk lamp", "30.00", 5)
    order = ordered(shop, MEI, sku_id)
    shop.call("POST", f"/orders/{order['order_no']}/cancel", MEI)
    shop.wait_for_hold(order["order_no"], "RELEASED")
    shop.pay(order["order_no"], "30.00")
    shop.wait_for_payments(order["order_no"], 1)
    _tell("the order stays CLOSED, the money is recorded and waits for its refund")
    _tell_payments(shop, order, "REFUND_PENDING LATE_PAYMENT")
    _tell_stock(shop, sku_id, expect=(5, 0))


def pay_twice(shop: Shop) -> None:
    """Two tabs, two payments for one order; and Alipay repeats the first notice"""
    sku_id = shop.new_sku("Calendar", "15.00", 5)
    order = ordered(shop, MEI, sku_id)
    twice = {"method": "notice", "action": "twice", "out_trade_no": order["order_no"]}
    shop.control("/faults", twice)
    for _ in range(2):
        shop.pay(order["order_no"], "15.00")
    shop.wait_for_payments(order["order_no"], 2)
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    _tell("one trade pays the order, the other waits for its refund, the repeat changes nothing")
    _tell_payments(shop, order, "APPLIED", "REFUND_PENDING SECOND_PAYMENT")
    _tell_stock(shop, sku_id, expect=(4, 0))


def pay_a_wrong_amount(shop: Shop) -> None:
    """Somebody pays 0.01 for an order of 99.00, with a genuine notice"""
    sku_id = shop.new_sku("Typewriter", "99.00", 5)
    order = ordered(shop, MEI, sku_id)
    shop.pay(order["order_no"], "0.01")
    shop.wait_for_payments(order["order_no"], 1)
    status = shop.call("GET", f"/orders/{order['order_no']}", MEI).document["status"]
    _expect(status, "PENDING_PAYMENT", "the order's status")
    _tell("the order is still PENDING_PAYMENT, the fen waits for its refund")
    _tell_payments(shop, order, "REFUND_PENDING AMOUNT_MISMATCH")
    _tell_stock(shop, sku_id, expect=(5, 1))


def wait_in_line(shop: Shop) -> None:
    """A hot lamp: two are left, Mei and Lin each want both, and nobody waits on a row lock"""
    sku_id = shop.new_sku("Dragon lamp", "66.00", 2, hot=True)
    orders = [ordered(shop, member, sku_id, 2) for member in (MEI, LIN)]
    _tell(f"201 for each, Retry-After 1: both orders are {orders[0]['status']}")
    for order in orders:
        shop.wait_for_decision(order["order_no"])
    states = sorted(shop.status(order["order_no"]) for order in orders)
    _expect(states, ["CLOSED", "PENDING_PAYMENT"], "what reserve.fifo came to")
    _tell("reserve.fifo gave one of them her time to pay; the other is CLOSED, OUT_OF_STOCK")
    _tell_stock(shop, sku_id, expect=(2, 2))


def let_it_expire(shop: Shop) -> None:
    """Lin never pays; her half hour goes by (her order is aged by SQL)"""
    sku_id = shop.new_sku("Ink stone", "35.00", 5)
    order = ordered(shop, LIN, sku_id)
    _tell_stock(shop, sku_id, expect=(5, 1))
    shop.end_time_of(order["order_no"])
    swept = shop.invoke("sweep_expired")
    _expect(swept.get("failed"), [], "what sweep_expired could not settle")
    _tell(f"sweep_expired closed {swept['orders_closed']}, and reports what failed: nothing")
    shop.wait_for_status(order["order_no"], "CLOSED")
    seconds = shop.wait_for_hold(order["order_no"], "RELEASED")
    _tell(f"the order is CLOSED, EXPIRED; release.fifo gave its stock back {seconds:.1f} s later")
    _tell_stock(shop, sku_id, expect=(5, 0))


ALL: Final[tuple[Callable[[Shop], None], ...]] = (
    pay_an_order,
    ask_again,
    ask_for_something_else,
    want_the_last_one,
    cancel,
    pay_too_late,
    pay_twice,
    pay_a_wrong_amount,
    wait_in_line,
    let_it_expire,
)


def ordered(shop: Shop, member: int, sku_id: int, quantity: int = 1) -> dict[str, Any]:
    """A new order of one line, as the API shows it."""
    reply = shop.order(member, {sku_id: quantity})
    _expect(reply.status, 201, f"the answer to the order {reply.document}")
    order: dict[str, Any] = reply.document["order"]
    return order


def _number(reply: Reply) -> str:
    return str(reply.document["order"]["order_no"])


def _tell(text: str) -> None:
    print(f"   {text}")


def _tell_stock(shop: Shop, sku_id: int, expect: tuple[int, int] | None = None) -> None:
    stock, locked = shop.stock(sku_id)
    if expect is not None:
        _expect((stock, locked), expect, "stock and locked")
    _tell(f"stock {stock} · locked {locked} · available {stock - locked}")


def _tell_payments(shop: Shop, order: dict[str, Any], *expect: str) -> None:
    payments = shop.payments(order["order_no"])
    states = [" ".join(filter(None, (one["state"], one["reason"]))) for one in payments]
    _expect(states, list(expect), "the payments")
    for payment, state in zip(payments, states, strict=True):
        _tell(f"payment {payment['trade_no']} · {payment['amount']} yuan · {state}")


def _expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise WentWrong(f"{what}: {found}, expected {expected}")
