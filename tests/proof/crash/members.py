"""Lives that a member or an operator begins."""

from datetime import timedelta
from decimal import Decimal

from tests.proof.crash.lives import (
    LINES,
    Act,
    a_page,
    a_sold_order,
    an_opened_order,
    an_order,
    an_order_in_line,
    asking,
    is_final,
    life,
    sum_of,
)
from tests.proof.world import World
from tests.support import api, http_events
from tests.support.http_events import Event

# --- orders ---------------------------------------------------------------------------------------


def _post(lines: dict[int, int]) -> Event:
    wanted = [{"sku_id": sku_id, "quantity": quantity} for sku_id, quantity in lines.items()]
    return http_events.post_order({"lines": wanted}, key="k1")


@life("create_order")
def place(_: World) -> Act:
    return asking(_post(LINES))


@life("create_order")
def place_of_a_hot_sku(world: World) -> Act:
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1002")
    return asking(_post(LINES))


@life("create_order")
def place_more_than_there_is(_: World) -> Act:
    return asking(_post({1001: 2, 1002: 11}))


@life("query_orders")
def read_an_order(world: World) -> Act:
    return asking(http_events.get(f"/orders/{a_sold_order(world)}"))


@life("cancel_order")
def cancel_without_a_page(world: World) -> Act:
    return asking(http_events.cancel_order(an_order(world)))


@life("cancel_order")
def cancel_with_a_page_that_nobody_opened(world: World) -> Act:
    order_no = an_order(world)
    a_page(world, order_no, opened=False)
    return asking(http_events.cancel_order(order_no))


@life("cancel_order")
def cancel_with_a_page(world: World) -> Act:
    order_no, _ = an_opened_order(world)
    return asking(http_events.cancel_order(order_no))


@life("cancel_order")
def cancel_what_was_paid_meanwhile(world: World) -> Act:
    order_no, number = an_opened_order(world)
    world.pay(number)
    return asking(http_events.cancel_order(order_no))


@life("cancel_order")
def cancel_in_line(world: World) -> Act:
    return asking(http_events.cancel_order(an_order_in_line(world)))


# --- payments -------------------------------------------------------------------------------------


@life("start_payment")
def start_a_page(world: World) -> Act:
    order_no = an_order(world)
    return lambda: is_final(world.start(order_no))


@life("start_payment")
def start_a_code(world: World) -> Act:
    order_no = an_order(world)
    return lambda: is_final(world.start(order_no, "qr"))


@life("start_payment")
def start_a_code_beside_a_page(world: World) -> Act:
    order_no, _ = an_opened_order(world)
    return lambda: is_final(world.start(order_no, "qr"))


# --- operators ------------------------------------------------------------------------------------


@life("operate_payments")
def refund_all(world: World) -> Act:
    return asking(http_events.refund_order(a_sold_order(world)))


@life("operate_payments")
def refund_a_part(world: World) -> Act:
    body = {"reason": "late", "amount": "5.00"}
    return asking(http_events.refund_order(a_sold_order(world), body))


@life("operate_payments", ends="REFUNDED, APPLIED 3.45")
def refund_a_sum_in_parts(world: World) -> Act:
    """Sums that no binary fraction is equal to: a hundred times each is less than its fen."""
    world.database.execute("UPDATE ims_sku_stock SET price = 1.15 WHERE sku_id = 1001")
    number = a_page(world, order_no := an_order(world, lines={1001: 3}))
    world.pay(number)
    for amount in ("1.15", "0.29", "0.57"):
        world.settle()
        world.pass_time(timedelta(seconds=61))
        api.ask(_refund_of(order_no, amount))
    world.settle()
    world.pass_time(timedelta(seconds=61))
    [trade] = world.books.trades()
    assert (trade.amount, trade.refunded) == (Decimal("3.45"), Decimal("2.01"))
    return asking(_refund_of(order_no, "1.44"))


def _refund_of(order_no: str, amount: str) -> Event:
    return http_events.refund_order(order_no, {"reason": "late", "amount": amount}, key=amount)


@life("operate_payments")
def refund_and_take_back(world: World) -> Act:
    body = {"reason": "broken", "restock": [{"sku_id": 1001, "quantity": 1}]}
    return asking(http_events.refund_order(a_sold_order(world), body))


@life("operate_payments")
def give_back(world: World) -> Act:
    return asking(http_events.give_back(_unclaimed(world, an_order(world))))


@life("operate_payments")
def attach(world: World) -> Act:
    order_no = an_order(world)
    return asking(http_events.attach(_unclaimed(world, order_no), order_no))


def _unclaimed(world: World, order_no: str) -> str:
    """Money of the order's sum under a number that nobody knows; its trade_no."""
    trade = world.pay("nobody", sum_of(world, order_no))
    world.tell()
    return trade.trade_no
