"""Encounters at an order and at its stock: placed, held, paid, closed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lockstep.alipay.answers import Done
from lockstep.alipay.model import NoticeKind
from lockstep.inventory.catalogue import CatalogueReport, load_catalogue
from lockstep.inventory.confirm import confirm
from lockstep.inventory.release import release
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Order
from lockstep.orders.place import place
from tests.proof.interleaved import (
    Encounters,
    Given,
    Rest,
    a_paid_order,
    alike,
    an_unpaid_order,
    in_any_order,
    overdue,
    pay,
    to,
    told_by,
    trade_of,
)
from tests.proof.interleaving_sides import Side, Work
from tests.support.builders import a_sku, an_attempt, place_command, try_hold
from tests.support.channel import ScriptedChannel, cancel, paid, start, waiting

ORDERS: Final = Encounters()

PAID: Final = Rest("PAID", (9, 0), "9.90", "")
CANCELLED: Final = Rest("CLOSED/CANCELLED", (10, 0), "0.00", "")
EXPIRED: Final = Rest("CLOSED/EXPIRED", (10, 0), "0.00", "")
UNPAID: Final = Rest("PENDING_PAYMENT", (10, 1), "0.00", "")
_CANCELLED_LATE: Final = CANCELLED._replace(refunds="9.90 DONE")
_EXPIRED_LATE: Final = EXPIRED._replace(refunds="9.90 DONE")
_LAST_PIECE: Final = Rest("PENDING_PAYMENT", (1, 1), "0.00", "")
_NO_ORDER: Final = Rest("", (10, 0), "0.00", "")
_NOTHING_LEFT: Final = Rest("", (0, 0), "0.00", "")


def _cancel(order: Order) -> Work:
    return lambda _: cancel(order.member_id, order.order_no)


def _expire(order: Order) -> Work:
    return lambda _: expire(order.id)


def _confirm(order: Order) -> Work:
    return lambda _: confirm(f"{order.order_no}-1", order.id)


def _release(order: Order) -> Work:
    return lambda _: release(f"{order.order_no}-1", order.id)


def _hold(order: Order) -> Work:
    return lambda _: hold(order.id, f"{order.order_no}-1")


def _start(order: Order) -> Work:
    return lambda _: start(order.order_no)


def _cancel_asking(order: Order, says: Callable[[str], object] = waiting) -> Work:
    """With a page, of which the channel says that it was not paid, unless it ``says`` so."""

    def work(side: Side) -> object:
        channel = ScriptedChannel(query=says, close=Done(None), while_asked=told_by(side))
        return cancel(order.member_id, order.order_no, channel)

    return work


def _place(
    lines: Mapping[int, int] | None = None, *, key: str | None = None, note: str = ""
) -> Work:
    command = place_command(dict(lines or {1001: 1}), key=key, note=note or None)
    return lambda _: place(command)


# --- paid or closed ------------------------------------------------------------------------------


@ORDERS.ending(
    to(PAID, ("APPLIED", "NotCancellable PAID")),
    to(_CANCELLED_LATE, ("REFUND_PENDING", "Closed")),
)
def pay_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    return pay(order), _cancel(order)


@ORDERS.ending(
    to(PAID, ("APPLIED", "False")),
    to(_EXPIRED_LATE, ("REFUND_PENDING", "True")),
)
def pay_expire(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    overdue(given)
    return pay(order), _expire(order)


@ORDERS.ending(
    to(PAID, ("APPLIED", "NotCancellable PAID", "False")),
    to(_CANCELLED_LATE, ("REFUND_PENDING", "Closed", "False")),
    to(_EXPIRED_LATE, ("REFUND_PENDING", "Closed again", "True")),
)
def pay_cancel_expire(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    overdue(given)
    return pay(order), _cancel(order), _expire(order)


@ORDERS.ending(
    to(CANCELLED, ("Closed", "False")),
    to(EXPIRED, ("Closed again", "True")),
)
def cancel_expire(given: Given) -> Sequence[Work]:
    return pay_cancel_expire(given)[1:]


@ORDERS.ending(
    to(PAID, ("APPLIED", "NotCancellable PAID"), ("REPLAYED", "NotCancellable PAID")),
)
def pay_cancel_asking(given: Given) -> Sequence[Work]:
    """The channel knows of the money before its notice comes: what was paid by an open page pays,
    however close a cancel comes."""
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    return pay(order, trade_no=trade_of(order)), _cancel_asking(order, paid)


@ORDERS.ending(
    to(PAID, ("APPLIED", "NOTED")),
    to(
        Rest("CLOSED/GATEWAY_CLOSED", (10, 0), "0.00", "9.90 DONE"),
        ("REFUND_PENDING", "ORDER_CLOSED"),
    ),
)
def pay_closed_page(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    return pay(order), pay(order, kind=NoticeKind.UNPAID_CLOSE)


@ORDERS.ending(
    to(CANCELLED, ("Started", "Closed"), ("NotPayable CLOSED", "Closed")),
)
def start_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    return _start(order), _cancel_asking(order)


@ORDERS.ending(
    in_any_order(UNPAID, "Started", "Started again"),
)
def start_start(given: Given) -> Sequence[Work]:
    return alike(_start(an_unpaid_order(given)))


# --- stock ---------------------------------------------------------------------------------------


@ORDERS.ending(
    to(_NO_ORDER._replace(stock=(9, 0)), ("Confirmed", "Refused RESERVATION_CANNOT_RELEASE")),
    to(_NO_ORDER, ("Refused RESERVATION_NOT_RESERVED", "Released")),
)
def confirm_release(given: Given) -> Sequence[Work]:
    """Of a hold without an order, so that only the hold's own guards decide."""
    a_sku(given.database)
    a_sku(given.database, 1002)
    reservation_id = f"{_new()}-1"
    try_hold(reservation_id, 1, {1001: 1, 1002: 2})
    return (lambda _: confirm(reservation_id, 1)), (lambda _: release(reservation_id, 1))


@ORDERS.ending(
    to(_NO_ORDER, ("Held", "Released"), ("Refused RESERVATION_ALREADY_RELEASED", "Released")),
)
def reserve_release(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    a_sku(given.database, 1002)
    reservation_id = f"{_new()}-1"
    wanted = {1001: 1, 1002: 2}
    return (lambda _: try_hold(reservation_id, 1, wanted)), (lambda _: release(reservation_id, 1))


@ORDERS.ending(
    in_any_order(PAID, "Confirmed", "Confirmed again"),
)
def confirm_confirm(given: Given) -> Sequence[Work]:
    return alike(_confirm(a_paid_order(given, confirmed=False)))


@ORDERS.ending(
    to(CANCELLED, ("Held", "Closed"), ("NotWaiting", "Closed")),
)
def hold_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given, hot=True)
    return _hold(order), _cancel(order)


@ORDERS.ending(
    in_any_order(UNPAID, "Held", "NotWaiting"),
)
def hold_hold(given: Given) -> Sequence[Work]:
    return alike(_hold(an_unpaid_order(given, hot=True)))


@ORDERS.ending(
    to(UNPAID._replace(stock=(10, 10)), ("refused", "Placed")),
    to(_NO_ORDER._replace(stock=(5, 0)), ("loaded", "OutOfStock")),
)
def load_place(given: Given) -> Sequence[Work]:
    """The catalogue takes what is not held, and the other wants all there is."""
    a_sku(given.database)
    load_id = _new()
    text = "sku_id,title,price,stock,hot,on_sale\n1001,SKU 1001,9.90,5,0,1"

    def load(_: object) -> str:
        report: CatalogueReport = load_catalogue(text, "operator:alice", load_id)
        return "refused" if report.errors else "loaded"

    return load, _place({1001: 10})


# --- placed --------------------------------------------------------------------------------------


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "Replayed"),
)
def one_key(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    return alike(_place(key=_new()))


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "Replayed", "Replayed"),
)
def one_key_three_times(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    return alike(_place(key=_new()), 3)


@ORDERS.ending(
    to(_NOTHING_LEFT, ("OutOfStock", "OutOfStock")),
)
def one_key_nothing_left(given: Given) -> Sequence[Work]:
    a_sku(given.database, stock=0)
    return alike(_place(key=_new()))


@ORDERS.ending(
    to(_NOTHING_LEFT, ("OutOfStock", "OutOfStock", "OutOfStock")),
    may_deadlock=True,
    victim_varies=True,
)
def one_key_nothing_left_three_times(given: Given) -> Sequence[Work]:
    """Of those who wait behind a first request that is rolled back, the engine lets one go on."""
    a_sku(given.database, stock=0)
    return alike(_place(key=_new()), 3)


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "KeyReused"),
)
def one_key_other_content(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    key = _new()
    return _place(key=key), _place(key=key, note="in blue")


@ORDERS.ending(
    in_any_order(_LAST_PIECE, "Placed", "OutOfStock"),
)
def last_piece(given: Given) -> Sequence[Work]:
    a_sku(given.database, stock=1)
    return _place(), _place()


@ORDERS.ending(
    to(Rest("CLOSED/CANCELLED, PENDING_PAYMENT", (1, 1), "0.00", ""), ("Placed", "Released")),
    to(CANCELLED._replace(stock=(1, 0)), ("OutOfStock", "Released")),
)
def last_piece_comes_back(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given, stock=1)
    cancel(order.member_id, order.order_no)
    return _place(), _release(order)


@ORDERS.ending(
    to(Rest("PENDING_PAYMENT, PENDING_PAYMENT", (10, 2), "0.00", ""), ("Placed", "Placed")),
)
def two_skus(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    a_sku(given.database, 1002)
    upwards, downwards = place_command(), place_command()
    upwards = replace(upwards, lines={1001: 1, 1002: 1})
    downwards = replace(downwards, lines={1002: 1, 1001: 1})
    return (lambda _: place(upwards)), (lambda _: place(downwards))


def _new() -> str:
    """A name that no case had before: what was deleted leaves its mark in an index for a while."""
    return place_command().idempotency_key
