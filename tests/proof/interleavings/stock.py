"""Encounters at stock: held, sold, given back, counted anew."""

from collections.abc import Sequence
from typing import Final

from lockstep.inventory.catalogue import CatalogueReport, load_catalogue
from lockstep.inventory.confirm import confirm
from lockstep.inventory.release import release
from lockstep.orders.close import expire
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
    pay,
    release_of,
    to,
)
from tests.proof.interleavings.sides import Side, Work
from tests.support.builders import a_sku, try_hold
from tests.support.channel import cancel

STOCK: Final = Encounters()

# One piece was sold, of no order.
_SOLD: Final = NO_ORDER._replace(stock=(9, 0))
_CANNOT_RELEASE: Final = "Refused RESERVATION_CANNOT_RELEASE"
_NOT_RESERVED: Final = "Refused RESERVATION_NOT_RESERVED"


def _confirm(order: Order) -> Work:
    return lambda _: confirm(f"{order.order_no}-1", order.id)


def _hold(order: Order) -> Work:
    return lambda _: hold(order.id)


# --- of a hold without an order, so that only its own guards decide -------------------------------


def _commands(given: Given) -> tuple[Work, Work, Work]:
    """To reserve a hold, to sell it, and to give it back."""
    a_sku(given.database)
    a_sku(given.database, 1002)
    name, lines = f"{a_new_name()}-1", {1001: 1, 1002: 2}
    return (
        lambda _: try_hold(name, 1, lines),
        lambda _: confirm(name, 1),
        lambda _: release(name, 1),
    )


def _commands_on_a_hold(given: Given) -> tuple[Work, Work]:
    """To sell one that is there, and to give it back."""
    reserves, sells, gives_back = _commands(given)
    reserves(Side("before"))
    return sells, gives_back


@STOCK.ending(
    to(_SOLD, ("Confirmed", _CANNOT_RELEASE)),
    to(NO_ORDER, (_NOT_RESERVED, "Released")),
)
def confirm_release(given: Given) -> Sequence[Work]:
    return _commands_on_a_hold(given)


@STOCK.ending(
    to(
        _SOLD,
        ("Confirmed", _CANNOT_RELEASE, "Confirmed again"),
        ("Confirmed again", _CANNOT_RELEASE, "Confirmed"),
    ),
    to(NO_ORDER, (_NOT_RESERVED, "Released", _NOT_RESERVED)),
)
def confirm_release_confirm(given: Given) -> Sequence[Work]:
    sells, gives_back = _commands_on_a_hold(given)
    return sells, gives_back, sells


@STOCK.ending(in_any_order(NO_ORDER, "Released", "Released again"))
def release_release(given: Given) -> Sequence[Work]:
    return alike(_commands_on_a_hold(given)[1])


@STOCK.ending(
    to(NO_ORDER, ("Held", "Released"), ("Refused RESERVATION_ALREADY_RELEASED", "Released")),
)
def reserve_release(given: Given) -> Sequence[Work]:
    reserves, _, gives_back = _commands(given)
    return reserves, gives_back


@STOCK.ending(in_any_order(NO_ORDER._replace(stock=(10, 1)), "Held", "Held again", "Held again"))
def one_hold_three_times(given: Given) -> Sequence[Work]:
    return alike(_commands(given)[0], 3)


# --- of an order's hold ---------------------------------------------------------------------------


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
    to(UNPAID, ("Held", "False")),
    to(Rest("CLOSED/OUT_OF_STOCK", (10, 0), "0.00", ""), ("NotWaiting", "True")),
)
def hold_expire(given: Given) -> Sequence[Work]:
    """Its turn comes when it has waited long enough."""
    order = an_unpaid_order(given, hot=True)
    given.database.execute("UPDATE oms_order SET created_at = NOW(3) - INTERVAL 5 MINUTE")
    return _hold(order), (lambda _: expire(order.id))


@STOCK.ending(
    to(PAID, ("Held", "APPLIED")),
    to(UNPAID._replace(refunds="9.90 DONE"), ("Held", "REFUND_PENDING")),
)
def hold_pay(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given, hot=True)
    return _hold(order), pay(order)


@STOCK.ending(
    to(UNPAID._replace(stock=(10, 10)), ("refused", "Placed")),
    to(NO_ORDER._replace(stock=(5, 0)), ("loaded", "OutOfStock")),
)
def load_place(given: Given) -> Sequence[Work]:
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
    return buy(), release_of(order)
