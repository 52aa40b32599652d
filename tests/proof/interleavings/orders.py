"""Encounters at an order: placed once, paid or closed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from lockstep.alipay.answers import Done
from lockstep.alipay.model import NoticeKind
from lockstep.orders import unpaid_store
from lockstep.orders.close import SWEEP, expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Order
from lockstep.orders.place import place
from lockstep.payments.ask import claim
from tests.proof.interleavings.encounters import (
    CANCELLED,
    EXPIRED,
    PAID,
    UNPAID,
    Encounters,
    Given,
    Rest,
    a_new_name,
    alike,
    an_unpaid_order,
    buy,
    call_off,
    in_any_order,
    overdue,
    pay,
    to,
    told_by,
    trade_of,
)
from tests.proof.interleavings.sides import Side, Work
from tests.support.builders import a_sku, an_attempt, place_command
from tests.support.channel import ScriptedChannel, cancel, paid, start, waiting

ORDERS: Final = Encounters()

_CANCELLED_LATE: Final = CANCELLED._replace(refunds="9.90 DONE")
_EXPIRED_LATE: Final = EXPIRED._replace(refunds="9.90 DONE")
_LAST_PIECE: Final = Rest("PENDING_PAYMENT", (1, 1), "0.00", "")
_NOTHING_LEFT: Final = Rest("", (0, 0), "0.00", "")


def _expire(order: Order) -> Work:
    return lambda _: expire(order.id)


def _start(order: Order) -> Work:
    return lambda _: start(order.order_no)


def _cancel_asking(order: Order, says: Callable[[str], object] = waiting) -> Work:
    """With a page, of which the channel says that it was not paid, unless it ``says`` so."""

    def work(side: Side) -> object:
        channel = ScriptedChannel(query=says, close=Done(None), while_asked=told_by(side))
        return cancel(order.member_id, order.order_no, channel)

    return work


# --- paid or closed ------------------------------------------------------------------------------


@ORDERS.ending(
    to(PAID, ("APPLIED", "NotCancellable PAID")),
    to(_CANCELLED_LATE, ("REFUND_PENDING", "Closed")),
)
def pay_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    return pay(order), call_off(order)


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
    return pay(order), call_off(order), _expire(order)


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
    to(PAID._replace(pages="PAID"), ("APPLIED", "NOTED")),
    to(
        Rest("CLOSED/GATEWAY_CLOSED", (10, 0), "0.00", "9.90 DONE", "CLOSED"),
        ("REFUND_PENDING", "ORDER_CLOSED"),
    ),
)
def pay_closed_page(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    return pay(order), pay(order, kind=NoticeKind.UNPAID_CLOSE)


@ORDERS.ending(
    to(
        PAID._replace(pages="PAID"),
        ("APPLIED", "CancelRequested"),
        ("APPLIED", "NotCancellable PAID"),
    ),
)
def pay_cancel_unanswered(given: Given) -> Sequence[Work]:
    """The channel cannot be asked."""
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    return pay(order), call_off(order)


@ORDERS.ending(in_any_order(CANCELLED._replace(pages="CLOSED"), "Closed", "Closed again"))
def cancel_cancel_asking(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    return alike(_cancel_asking(order))


@ORDERS.ending(
    to(CANCELLED._replace(pages="CLOSED"), ("Started", "Closed")),
    to(CANCELLED._replace(pages=""), ("NotPayable CLOSED", "Closed")),
)
def start_cancel(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    return _start(order), _cancel_asking(order)


@ORDERS.ending(
    to(UNPAID._replace(pages="OPEN"), ("Started", "False")),
    to(EXPIRED._replace(pages=""), ("NotPayable CLOSED", "True")),
)
def start_expire(given: Given) -> Sequence[Work]:
    """The start has read the time a moment ago, when there was enough of it left."""
    order = an_unpaid_order(given)
    overdue(given)
    _read_an_hour_ago(given)
    return _start(order), _expire(order)


@ORDERS.ending(
    to(
        UNPAID._replace(pages="CLOSING"),
        ("Started again", "Question"),
        ("NotPayable PENDING_PAYMENT", "Question"),
    )
)
def start_begin_closing(given: Given) -> Sequence[Work]:
    """Likewise. A page whose time is over is linked to until somebody begins to close it, and then
    no other takes its place."""
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    overdue(given)
    ends = "expires_at = NOW(3) - INTERVAL 2 MINUTE, next_ask_at = NOW(3)"
    given.database.execute(f"UPDATE oms_payment_attempt SET {ends}")  # noqa: S608 - the line above
    attempt_id = given.database.value("SELECT id FROM oms_payment_attempt")
    _read_an_hour_ago(given)
    return _start(order), (lambda _: claim(attempt_id, order.id, SWEEP))


def _read_an_hour_ago(given: Given) -> None:
    look = unpaid_store.read_payable

    def an_hour_ago(*arguments: Any) -> unpaid_store.Payable | None:
        payable = look(*arguments)
        return payable and replace(payable, now=payable.now - timedelta(hours=1))

    given.patch.setattr(unpaid_store, "read_payable", an_hour_ago)


@ORDERS.ending(
    in_any_order(UNPAID._replace(pages="OPEN"), "Started", "Started again"),
)
def start_start(given: Given) -> Sequence[Work]:
    return alike(_start(an_unpaid_order(given)))


# --- placed --------------------------------------------------------------------------------------


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "Replayed"),
)
def one_key(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    return alike(buy(key=a_new_name()))


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "Replayed", "Replayed"),
)
def one_key_three_times(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    return alike(buy(key=a_new_name()), 3)


@ORDERS.ending(
    to(_NOTHING_LEFT, ("OutOfStock", "OutOfStock")),
)
def one_key_nothing_left(given: Given) -> Sequence[Work]:
    a_sku(given.database, stock=0)
    return alike(buy(key=a_new_name()))


@ORDERS.ending(
    to(_NOTHING_LEFT, ("OutOfStock", "OutOfStock", "OutOfStock")),
    may_deadlock=True,
    victim_varies=True,
)
def one_key_nothing_left_three_times(given: Given) -> Sequence[Work]:
    """Of those who wait behind a first request that is rolled back, the engine lets one go on."""
    a_sku(given.database, stock=0)
    return alike(buy(key=a_new_name()), 3)


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "KeyReused"),
)
def one_key_other_content(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    key = a_new_name()
    return buy(key=key), buy(key=key, note="in blue")


@ORDERS.ending(
    in_any_order(UNPAID, "Placed", "Replayed"),
    in_any_order(UNPAID, "Placed", "InFlight"),
)
def one_key_hot(given: Given) -> Sequence[Work]:
    """Who would stand in line waits for nobody."""
    a_sku(given.database, hot=True)
    return alike(buy(key=a_new_name()))


@ORDERS.ending(
    to(_NOTHING_LEFT, ("OutOfStock", "OutOfStock")),
)
def one_key_hot_nothing_left(given: Given) -> Sequence[Work]:
    a_sku(given.database, stock=0, hot=True)
    return alike(buy(key=a_new_name()))


@ORDERS.ending(
    to(_LAST_PIECE, ("Held", "OutOfStock")),
    to(_LAST_PIECE._replace(orders="CLOSED/OUT_OF_STOCK, PENDING_PAYMENT"), ("Held", "Placed")),
)
def last_piece_hot(given: Given) -> Sequence[Work]:
    """The gate shuts when the turn has decided, and not before."""
    order = an_unpaid_order(given, stock=1, hot=True)
    return (lambda _: hold(order.id)), buy()


@ORDERS.ending(
    in_any_order(_LAST_PIECE, "Placed", "OutOfStock"),
)
def last_piece(given: Given) -> Sequence[Work]:
    a_sku(given.database, stock=1)
    return buy(), buy()


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
