"""Lives that Alipay begins."""

from decimal import Decimal

from infra.local.alipay_gateway.faults import NOTICE
from tests.proof.crash.lives import (
    Act,
    a_page,
    an_expired_order,
    an_opened_order,
    an_order,
    life,
    no_database,
    paid_after_a_cancel,
    paid_on_its_page,
    sum_of,
    telling,
)
from tests.proof.world import World
from tests.support import api, http_events


@life("alipay_notify")
def notice_of_a_payment(world: World) -> Act:
    paid_on_its_page(world)
    return telling(world)


@life("alipay_notify")
def notice_that_could_not_be_kept(world: World) -> Act:
    """Before the act: whoever answered `success` then would not be told again."""
    paid_on_its_page(world)
    with no_database():
        world.tell()
    assert world.alipay.service.post.waiting() == 1, "acknowledged, and not kept"
    return telling(world)


@life("alipay_notify")
def notice_of_a_late_payment(world: World) -> Act:
    paid_after_a_cancel(world)
    return telling(world)


_SENT_BACK = "CLOSED, REFUNDED 29.70"


@life("alipay_notify", policy="REINSTATE", ends=_SENT_BACK)
def notice_of_a_payment_after_its_time(world: World) -> Act:
    """It was not in time: the policy revives nothing."""
    order_no = an_expired_order(world)
    world.pay(order_no, sum_of(world, order_no))
    return telling(world)


@life("alipay_notify", policy="REINSTATE", ends=_SENT_BACK)
def notice_of_a_payment_that_its_member_called_off(world: World) -> Act:
    """In time, but nobody wants it any more."""
    paid_after_a_cancel(world)
    return telling(world)


@life("alipay_notify")
def notice_of_a_second_payment(world: World) -> Act:
    order_no, first = an_opened_order(world)
    second = a_page(world, order_no, "qr")
    world.pay(first)
    world.settle()
    world.pay(second)
    return telling(world)


@life("alipay_notify")
def notice_of_one_of_two_orders_with_two_pages_each(world: World) -> Act:
    for key in ("k1", "k2"):
        order_no = an_order(world, key=key)
        a_page(world, order_no)
        number = a_page(world, order_no, "qr")
    world.pay(number)
    tell = telling(world)

    def act() -> bool:
        is_told = tell()
        paid = world.database.rows("SELECT order_no FROM oms_order WHERE status = 'PAID'")
        assert {row["order_no"] for row in paid} <= {order_no}, "another order is paid by it"
        return is_told

    return act


@life("alipay_notify")
def notice_of_a_second_payment_of_what_went_back(world: World) -> Act:
    order_no, first = an_opened_order(world)
    second = a_page(world, order_no, "qr")
    world.pay(first)
    world.settle()
    api.ask(http_events.refund_order(order_no))
    world.settle()
    world.pay(second)
    return telling(world)


@life("alipay_notify")
def notice_of_a_wrong_sum(world: World) -> Act:
    _, number = an_opened_order(world)
    world.pay(number, Decimal("0.01"))
    return telling(world)


@life("alipay_notify")
def notice_of_more_than_the_sum(world: World) -> Act:
    _, number = an_opened_order(world)
    world.pay(number, Decimal("99.00"))
    tell = telling(world)

    def act() -> bool:
        is_told = tell()
        assert world.database.count("oms_order", status="PAID") == 0, "paid by another sum"
        return is_told

    return act


@life("alipay_notify")
def notice_that_nobody_knows(world: World) -> Act:
    world.pay("nobody", Decimal("9.90"))

    def act() -> bool:
        world.tell()
        return world.database.count("oms_order_payment", state="UNMATCHED") == 1

    return act


@life("alipay_notify")
def notice_of_a_part_that_went_back(world: World) -> Act:
    _refunded_in_the_console(world, Decimal("5.00"))
    return telling(world)


@life("alipay_notify")
def notice_of_all_that_went_back(world: World) -> Act:
    _refunded_in_the_console(world)
    return telling(world)


@life("alipay_notify")
def notice_of_an_end_unpaid(world: World) -> Act:
    _, number = an_opened_order(world)
    world.books.close(out_trade_no=number)
    return telling(world)


@life("alipay_notify")
def notice_before_its_payment(world: World) -> Act:
    world.alipay.faults.add(NOTICE, "late")
    trade = paid_on_its_page(world)
    world.books.refund(trade, Decimal("5.00"), "console-1")
    return telling(world)


def _refunded_in_the_console(world: World, amount: Decimal | None = None) -> None:
    trade = paid_on_its_page(world)
    world.settle()
    world.books.refund(trade, amount or trade.amount, "console-1")
