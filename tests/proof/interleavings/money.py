"""Encounters of money: paid twice, given back, told of."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from lockstep.alipay.model import NoticeKind
from lockstep.orders.model import Order
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import AskRefund, ask_refund
from lockstep.payments.attach import attach
from lockstep.payments.give_back import GiveBack, give_back
from lockstep.payments.model import Result
from tests.proof.interleavings.encounters import (
    PAID,
    PAID_TWICE,
    Encounters,
    Given,
    Rest,
    a_paid_order,
    alike,
    an_unpaid_order,
    in_any_order,
    pay,
    to,
    trade_of,
)
from tests.proof.interleavings.sides import Work
from tests.support.builders import a_trade_notice
from tests.support.refund_channel import the_refund

MONEY: Final = Encounters()

_REFUNDED: Final = Rest("REFUNDED", (9, 0), "0.00", "9.90 DONE")
_PART_REFUNDED: Final = Rest("PAID", (9, 0), "3.90", "6.00 DONE")
_PART: Final = "6.00"


# --- money comes ---------------------------------------------------------------------------------


@MONEY.ending(in_any_order(PAID_TWICE, "APPLIED", "REFUND_PENDING"))
def pay_pay(given: Given) -> Sequence[Work]:
    """Two trades."""
    order = an_unpaid_order(given)
    return pay(order), pay(order)


@MONEY.ending(in_any_order(PAID, "APPLIED", "REPLAYED"))
def one_notice_twice(given: Given) -> Sequence[Work]:
    return alike(pay(an_unpaid_order(given)))


@MONEY.ending(in_any_order(PAID, "APPLIED", "REPLAYED"))
def one_trade_by_two_notices(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    return pay(order, trade_no="T1"), pay(order, trade_no="T1")


def _told_of_refund(order: Order, amount: str = "9.90", number: str | None = None) -> Work:
    return pay(
        order,
        kind=NoticeKind.REFUND,
        trade_no=trade_of(order),
        refund_fee=Decimal(amount),
        out_biz_no=number,
    )


@MONEY.ending(
    to(_REFUNDED, ("APPLIED", "REFUND_RECORDED"), ("APPLIED", "QUERY_DUE")),
)
def pay_refund_notice(given: Given) -> Sequence[Work]:
    """Of a refund in the merchant's console, before or after we know of the payment."""
    order = an_unpaid_order(given)
    return pay(order, trade_no=trade_of(order)), _told_of_refund(order, number="C1")


@MONEY.ending(
    to(
        Rest("REFUNDED", (9, 0), "0.00"),
        ("APPLIED", "REFUND_PENDING", "REFUND_RECORDED"),
        ("APPLIED", "REFUND_PENDING", "QUERY_DUE"),
    ),
    to(
        Rest("PAID", (9, 0), "9.90"),
        ("REFUND_PENDING", "APPLIED", "REFUND_RECORDED"),
        ("REFUND_PENDING", "APPLIED", "QUERY_DUE"),
    ),
)
def pay_pay_refund_notice(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    first = pay(order, trade_no=trade_of(order))
    return first, pay(order), _told_of_refund(order, number="C1")


@MONEY.ending(
    to(PAID, ("PaymentNotWaiting", "Attached")),
    to(
        Rest("PENDING_PAYMENT", (10, 1), "0.00", "9.90 DONE"),
        ("GivenBack", "PaymentNotWaiting"),
    ),
)
def give_back_attach(given: Given) -> Sequence[Work]:
    """Two people decide what becomes of money that fits no order."""
    order = an_unpaid_order(given)
    stray = a_trade_notice(trade_no=trade_of(order))
    assert accept(stray) is Result.UNMATCHED
    given.channel.paid(trade_of(order))
    asked = GiveBack(trade_of(order), "alice", "nobody claims it")
    return (
        lambda _: give_back(asked),
        lambda _: attach(trade_of(order), order.order_no, "operator:bob", "it is hers"),
    )


# --- money goes back -----------------------------------------------------------------------------


def _ask(order: Order, key: str, amount: str | None = None) -> Work:
    part = None if amount is None else Decimal(amount)
    return lambda _: ask_refund(AskRefund(order.order_no, key, "alice", "broken", part))


@MONEY.ending(in_any_order(_REFUNDED, "Asked", "NotRefundable REFUNDING"))
def refund_refund(given: Given) -> Sequence[Work]:
    order = a_paid_order(given)
    return _ask(order, "k1"), _ask(order, "k2")


@MONEY.ending(in_any_order(_REFUNDED._replace(stock=(10, 0)), "Asked", "Asked again"))
def one_refund_asked_twice(given: Given) -> Sequence[Work]:
    """Its goods came back."""
    asked = AskRefund(a_paid_order(given).order_no, "k", "alice", "broken", restock={1001: 1})
    return alike(lambda _: ask_refund(asked))


@MONEY.ending(in_any_order(_PART_REFUNDED, "Asked", "RefundTooLarge"))
def parts_exceed_together(given: Given) -> Sequence[Work]:
    order = a_paid_order(given)
    return _ask(order, "k1", _PART), _ask(order, "k2", _PART)


@MONEY.ending(
    to(_PART_REFUNDED._replace(refunds="6.00 DONE, 6.00 FAILED"), ("Asked", "REFUND_RECORDED")),
    to(_PART_REFUNDED, ("RefundTooLarge", "REFUND_RECORDED")),
)
def part_and_console_exceed(given: Given) -> Sequence[Work]:
    """Somebody refunds in the merchant's console at the same time."""
    order = a_paid_order(given)
    given.channel.console_refund("C1", _PART, trade_of(order))
    return _ask(order, "k1", _PART), _told_of_refund(order, _PART, "C1")


def _try(given: Given) -> Work:
    refund_id = the_refund(given.database)
    return lambda _: given.channel.try_refund(refund_id)


def _a_refund_asked_for(given: Given) -> Order:
    order = a_paid_order(given)
    ask_refund(AskRefund(order.order_no, "k1", "alice", "broken"))
    return order


@MONEY.ending(in_any_order(_REFUNDED, "DONE", "NOT_DUE"), in_any_order(_REFUNDED, "DONE", "ENDED"))
def two_tries(given: Given) -> Sequence[Work]:
    _a_refund_asked_for(given)
    return alike(_try(given))


@MONEY.ending(to(_REFUNDED, ("DONE", "REFUND_RECORDED"), ("ENDED", "REFUND_RECORDED")))
def try_refund_notice(given: Given) -> Sequence[Work]:
    """The money may have moved by an earlier try, of which nothing came back."""
    order = _a_refund_asked_for(given)
    number = given.database.value("SELECT out_request_no FROM oms_refund")
    return _try(given), _told_of_refund(order, number=number)
