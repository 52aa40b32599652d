"""Lives that Alipay or a queue begins."""

from datetime import timedelta
from decimal import Decimal

from infra.local.alipay_gateway.faults import NOTICE, REFUND
from tests.proof.crash.lives import (
    Act,
    a_page,
    a_sold_order,
    an_opened_order,
    an_order,
    an_order_in_line,
    delivering,
    life,
    no_database,
    sum_of,
    telling,
)
from tests.proof.world import World
from tests.support import api, http_events, passing_time

# --- notices --------------------------------------------------------------------------------------


@life("alipay_notify")
def notice_of_a_payment(world: World) -> Act:
    _, number = an_opened_order(world)
    world.pay(number)
    return telling(world)


@life("alipay_notify")
def notice_that_could_not_be_kept(world: World) -> Act:
    """Before the act: whoever answered `success` then would not be told again."""
    _, number = an_opened_order(world)
    world.pay(number)
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
    _, number = an_opened_order(world)
    trade = world.pay(number)
    world.books.refund(trade, Decimal("5.00"), "console-1")
    return telling(world)


def paid_after_a_cancel(world: World) -> None:
    order_no, number = an_opened_order(world)
    world.cancel(order_no)
    world.settle()
    world.pay(number, sum_of(world, order_no))


def _refunded_in_the_console(world: World, amount: Decimal | None = None) -> None:
    _, number = an_opened_order(world)
    trade = world.pay(number)
    world.settle()
    world.books.refund(trade, amount or trade.amount, "console-1")


# --- stock ----------------------------------------------------------------------------------------


@life("reserve_stock")
def reserve(world: World) -> Act:
    an_order_in_line(world)
    return delivering(world, "reserve")


@life("reserve_stock")
def reserve_what_is_sold_out(world: World) -> Act:
    an_order_in_line(world, 11)
    return delivering(world, "reserve")


@life("reserve_stock", policy="REINSTATE")
def reinstate(world: World) -> Act:
    paid_in_time_and_late(world)
    return delivering(world, "reserve")


@life("reserve_stock", policy="REINSTATE")
def reinstate_in_vain(world: World) -> Act:
    paid_in_time_and_late(world)
    an_order(world, key="k2", lines={1001: 10})
    return delivering(world, "reserve")


def an_expired_order(world: World) -> str:
    """A minute ago, and its stock is given back; its number."""
    order_no = an_order(world)
    world.pass_time(passing_time.TTL + timedelta(minutes=1))
    world.sweep()
    world.settle()
    return order_no


def paid_in_time_and_late(world: World) -> None:
    """An order expired before anybody told that it was paid in its time."""
    order_no = an_expired_order(world)
    with world.clock.back(timedelta(minutes=5)):
        world.pay(order_no, sum_of(world, order_no))
    world.tell()


@life("confirm_stock")
def confirm(world: World) -> Act:
    _, number = an_opened_order(world)
    world.pay(number)
    world.tell()
    return delivering(world, "confirm")


@life("release_stock")
def release(world: World) -> Act:
    world.cancel(an_order(world))
    return delivering(world, "release")


@life("release_stock")
def release_before_the_reserve(world: World) -> Act:
    world.cancel(an_order_in_line(world))
    return delivering(world, "release")


# --- refunds --------------------------------------------------------------------------------------


@life("refund_payment")
def refund(world: World) -> Act:
    paid_after_a_cancel(world)
    world.tell()
    return delivering(world, "refund")


@life("refund_payment")
def refund_while_the_balance_is_short(world: World) -> Act:
    paid_after_a_cancel(world)
    world.tell()
    world.books.set_balance(Decimal(0))
    return delivering(world, "refund")


@life("refund_payment")
def find_a_refund_that_was_done(world: World) -> Act:
    return _asking_about_a_refund(world, "lose_response")


@life("refund_payment")
def find_a_refund_that_was_not_done(world: World) -> Act:
    return _asking_about_a_refund(world, "unknown_before")


def _asking_about_a_refund(world: World, fault: str) -> Act:
    paid_after_a_cancel(world)
    world.tell()
    return _asking_a_minute_later(world, fault)


@life("refund_payment")
def find_a_part_that_was_not_done(world: World) -> Act:
    body = {"reason": "late", "amount": "5.00"}
    api.ask(http_events.refund_order(a_sold_order(world), body))
    return _asking_a_minute_later(world, "unknown_before")


def _asking_a_minute_later(world: World, fault: str) -> Act:
    """After it was asked for, and nobody knows what came of it."""
    world.alipay.faults.add(REFUND, fault)
    world.deliver("refund")
    world.pass_time(timedelta(seconds=61))
    world.sweep()
    return delivering(world, "refund")
