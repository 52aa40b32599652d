"""Encounters at stock: held, sold, given back, counted anew."""

from collections.abc import Sequence
from typing import Final

from lockstep.inventory.catalogue import CatalogueReport, load_catalogue
from lockstep.inventory.confirm import confirm
from lockstep.inventory.release import release
from lockstep.orders.hold import hold
from lockstep.orders.model import Order
from tests.proof.interleavings.encounters import (
    CANCELLED,
    NO_ORDER,
    PAID,
    UNPAID,
    Encounters,
    Given,
    Rest,
    a_new_name,
    a_paid_order,
    alike,
    an_unpaid_order,
    buy,
    call_off,
    in_any_order,
    to,
)
from tests.proof.interleavings.sides import Work
from tests.support.builders import a_sku, try_hold
from tests.support.channel import cancel

STOCK: Final = Encounters()


def _confirm(order: Order) -> Work:
    return lambda _: confirm(f"{order.order_no}-1", order.id)


def _release(order: Order) -> Work:
    return lambda _: release(f"{order.order_no}-1", order.id)


def _hold(order: Order) -> Work:
    return lambda _: hold(order.id, f"{order.order_no}-1")


@STOCK.ending(
    to(NO_ORDER._replace(stock=(9, 0)), ("Confirmed", "Refused RESERVATION_CANNOT_RELEASE")),
    to(NO_ORDER, ("Refused RESERVATION_NOT_RESERVED", "Released")),
)
def confirm_release(given: Given) -> Sequence[Work]:
    """Of a hold without an order, so that only the hold's own guards decide."""
    a_sku(given.database)
    a_sku(given.database, 1002)
    reservation_id = f"{a_new_name()}-1"
    try_hold(reservation_id, 1, {1001: 1, 1002: 2})
    return (lambda _: confirm(reservation_id, 1)), (lambda _: release(reservation_id, 1))


@STOCK.ending(
    to(NO_ORDER, ("Held", "Released"), ("Refused RESERVATION_ALREADY_RELEASED", "Released")),
)
def reserve_release(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    a_sku(given.database, 1002)
    reservation_id = f"{a_new_name()}-1"
    wanted = {1001: 1, 1002: 2}
    return (lambda _: try_hold(reservation_id, 1, wanted)), (lambda _: release(reservation_id, 1))


@STOCK.ending(
    in_any_order(PAID, "Confirmed", "Confirmed again"),
)
def confirm_confirm(given: Given) -> Sequence[Work]:
    return alike(_confirm(a_paid_order(given, confirmed=False)))


@STOCK.ending(
    to(CANCELLED, ("Held", "Closed"), ("NotWaiting", "Closed")),
)
def hold_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given, hot=True)
    return _hold(order), call_off(order)


@STOCK.ending(
    in_any_order(UNPAID, "Held", "NotWaiting"),
)
def hold_hold(given: Given) -> Sequence[Work]:
    return alike(_hold(an_unpaid_order(given, hot=True)))


@STOCK.ending(
    to(UNPAID._replace(stock=(10, 10)), ("refused", "Placed")),
    to(NO_ORDER._replace(stock=(5, 0)), ("loaded", "OutOfStock")),
)
def loadbuy(given: Given) -> Sequence[Work]:
    """The catalogue takes what is not held, and the other wants all there is."""
    a_sku(given.database)
    load_id = a_new_name()
    text = "sku_id,title,price,stock,hot,on_sale\n1001,SKU 1001,9.90,5,0,1"

    def load(_: object) -> str:
        report: CatalogueReport = load_catalogue(text, "operator:alice", load_id)
        return "refused" if report.errors else "loaded"

    return load, buy({1001: 10})


@STOCK.ending(
    to(Rest("CLOSED/CANCELLED, PENDING_PAYMENT", (1, 1), "0.00", ""), ("Placed", "Released")),
    to(CANCELLED._replace(stock=(1, 0)), ("OutOfStock", "Released")),
)
def last_piece_comes_back(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given, stock=1)
    cancel(order.member_id, order.order_no)
    return buy(), _release(order)
