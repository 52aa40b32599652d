"""Encounters of late money: an order expired, and money for it was paid in time all the same."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from lockstep.orders.close import expire
from lockstep.orders.model import Order
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.payments.reinstate import reinstate
from tests.proof.interleavings.encounters import (
    PAID,
    PAID_TWICE,
    Encounters,
    Given,
    Rest,
    alike,
    an_unpaid_order,
    in_any_order,
    overdue,
    pay,
    release_of,
    to,
)
from tests.proof.interleavings.sides import Work
from tests.support.builders import a_trade_notice, deliver_outbox, place_command
from tests.support.late import reinstating

LATE: Final = Encounters()

# Of one piece: revived money has it, or another member does.
_LAST_ONE_PAID: Final = Rest("PAID", (0, 0), "9.90", "")
_LAST_ONE_SOLD: Final = Rest("CLOSED/EXPIRED, PENDING_PAYMENT", (1, 1), "0.00", "9.90 DONE")
_LONG_AFTER: Final = datetime(2030, 1, 1, tzinfo=UTC)


def _expired(given: Given, stock: int = 10) -> Order:
    """While its money was on the way, which was paid in time; the old hold is there still."""
    order = an_unpaid_order(given, stock=stock)
    overdue(given)
    assert expire(order.id)
    given.database.execute("UPDATE oms_order SET expires_at = %s", (_LONG_AFTER,))
    reinstating(given.patch)
    return order


def _revivable(given: Given, stock: int = 10) -> Order:
    """And the money is there."""
    order = _expired(given, stock)
    assert accept(a_trade_notice(order)) is Result.REINSTATE_PENDING
    return order


def _reinstate(order: Order) -> Work:
    return lambda _: reinstate(order.id)


@LATE.ending(to(PAID_TWICE, ("REINSTATE_PENDING", "REINSTATE_PENDING")))
def pay_late_pay_late(given: Given) -> Sequence[Work]:
    order = _expired(given)
    return pay(order), pay(order)


@LATE.ending(in_any_order(PAID, "REINSTATE_PENDING", "REPLAYED"))
def one_late_notice_twice(given: Given) -> Sequence[Work]:
    return alike(pay(_expired(given)))


@LATE.ending(to(PAID_TWICE, ("Reinstated", "REFUND_PENDING"), ("Reinstated", "REINSTATE_PENDING")))
def reinstate_pay_late(given: Given) -> Sequence[Work]:
    order = _revivable(given)
    return _reinstate(order), pay(order)


@LATE.ending(to(_LAST_ONE_PAID, ("Reinstated", "Released"), ("Reinstated", "Released again")))
def reinstate_release(given: Given) -> Sequence[Work]:
    """The only piece there is."""
    order = _revivable(given, stock=1)
    return _reinstate(order), release_of(order)


@LATE.ending(in_any_order(PAID, "Reinstated", "NothingLate"))
def reinstate_reinstate(given: Given) -> Sequence[Work]:
    return alike(_reinstate(_revivable(given)))


@LATE.ending(
    to(_LAST_ONE_PAID, ("Reinstated", "OutOfStock")),
    to(_LAST_ONE_SOLD, ("SentBack", "Placed")),
)
def reinstate_place(given: Given) -> Sequence[Work]:
    """There is one piece, and another member wants it."""
    order = _expired(given, stock=1)
    deliver_outbox(given.database)
    accept(a_trade_notice(order))
    return _reinstate(order), _place_as_another()


@LATE.ending(
    to(
        _LAST_ONE_PAID,
        ("Reinstated", "Released", "OutOfStock"),
        ("Reinstated", "Released again", "OutOfStock"),
    ),
    to(_LAST_ONE_SOLD, ("SentBack", "Released", "Placed")),
)
def reinstate_release_place(given: Given) -> Sequence[Work]:
    order = _revivable(given, stock=1)
    return _reinstate(order), release_of(order), _place_as_another()


def _place_as_another() -> Work:
    command = place_command(member_id=43)
    return lambda _: place(command)
