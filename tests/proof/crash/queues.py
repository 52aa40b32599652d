"""Lives that a queue begins: of stock, and of refunds."""

from datetime import timedelta
from decimal import Decimal

from infra.local.alipay_gateway.faults import REFUND
from tests.proof.crash.lives import (
    Act,
    a_page,
    a_sold_order,
    an_expired_order,
    an_order,
    an_order_in_line,
    delivering,
    life,
    paid_after_a_cancel,
    paid_on_its_page,
    sum_of,
)
from tests.proof.world import World
from tests.support import api, http_events, passing_time

# --- stock ----------------------------------------------------------------------------------------


@life("reserve_stock")
def reserve(world: World) -> Act:
    an_order_in_line(world)
    return delivering(world, "reserve")


@life("reserve_stock")
def reserve_what_is_sold_out(world: World) -> Act:
    an_order_in_line(world, 11)
    return delivering(world, "reserve")


@life("reserve_stock")
def reserve_for_a_crowd(world: World) -> Act:
    """One wake decides them all: what a large one does not get is there for those behind it."""
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    crowd = ({1001: 4}, {1001: 5, 1002: 2}, {1001: 2}, {1001: 1, 1002: 9}, {1001: 1})
    for n, lines in enumerate(crowd, 1):
        an_order(world, key=f"k{n}", lines=lines)
    return delivering(world, "reserve")


@life("reserve_stock")
def reserve_behind_a_cancelled_one(world: World) -> Act:
    world.cancel(an_order_in_line(world))
    world.deliver("release")
    for key in ("k2", "k3"):
        an_order(world, key=key, lines={1001: 1})
    return delivering(world, "reserve")


@life("reserve_stock", policy="REINSTATE")
def reinstate_before_those_in_line(world: World) -> Act:
    """Late money, and others that wait at the same turn."""
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    order_no = an_order(world)
    world.settle()
    world.pass_time(passing_time.TTL + timedelta(minutes=1))
    world.sweep()
    world.settle()
    with world.clock.back(timedelta(minutes=5)):
        world.pay(order_no, sum_of(world, order_no))
    world.tell()
    for key, quantity in (("k2", 8), ("k3", 1)):
        an_order(world, key=key, lines={1001: quantity})
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


def paid_in_time_and_late(world: World) -> None:
    """An order expired before anybody told that it was paid in its time."""
    order_no = an_expired_order(world)
    with world.clock.back(timedelta(minutes=5)):
        world.pay(order_no, sum_of(world, order_no))
    world.tell()


@life("confirm_stock")
def confirm(world: World) -> Act:
    paid_on_its_page(world)
    world.tell()
    return delivering(world, "confirm")


@life("confirm_stock")
def confirm_several(world: World) -> Act:
    for key in ("k1", "k2"):
        world.pay(a_page(world, an_order(world, key=key)))
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


@life("release_stock")
def release_several(world: World) -> Act:
    """One that is held, and one whose turn has not come."""
    for order_no in (an_order_in_line(world), an_order(world, key="k2", lines={1002: 1})):
        world.cancel(order_no)
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
