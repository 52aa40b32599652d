"""Each guarded statement of a payment's way, alone, against every state there is.

Most states are ruled out before these statements run, under the same lock. They are the last word
all the same: whoever calls them, from any state but those they name nothing may change.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import refund_store as order_refunds
from lockstep.orders import store as orders
from lockstep.orders import unpaid_store
from lockstep.orders.model import ORDER_TRANSITIONS, CloseReason, OrderStatus
from lockstep.payments import attempt_store
from lockstep.payments import refundable_store as refundable
from lockstep.payments import store as payments
from lockstep.payments.model import PaymentState
from tests.support.builders import a_sku
from tests.support.notices import an_attempt, attempt_state, payment_row, the_order

type Statement = Callable[[Tx, int], bool]

PAY = Decimal("9.90")
UNPAID = {"PENDING_PAYMENT", "PAYMENT_PROCESSING"}
WITH_MONEY = {"PAID", "SHIPPED", "FINISHED"}


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90."""
    a_sku(database)
    return the_order(database)


def put(database, status: str, *, paid: str, refunded: str = "0.00") -> None:
    """Bring the order into a status, by a legal way."""
    before = next(s for s, after in ORDER_TRANSITIONS.items() if OrderStatus(status) in after)
    database.execute(
        "UPDATE oms_order SET prev_status = %s, status = %s, close_reason = %s, "
        "paid_amount = %s, refunded_amount = %s",
        (before, status, "EXPIRED" if status == "CLOSED" else None, paid, refunded),
    )


def runs_from(database, statement: Statement, order_id: int) -> bool:
    """Run it; what it says must be what it did."""
    before = database.one("SELECT * FROM oms_order")
    won: bool = in_transaction(lambda tx: statement(tx, order_id))
    assert (database.one("SELECT * FROM oms_order") != before) == won
    return won


STATUSES = [status for status in OrderStatus if status is not OrderStatus.NONE]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        (partial(orders.mark_paid, amount=PAY), UNPAID),
        (partial(orders.close_order, reason=CloseReason.EXPIRED), {"RESERVING", *UNPAID}),
        (unpaid_store.request_cancel, {"RESERVING", *UNPAID}),
    ],
    ids=["mark_paid", "close_order", "request_cancel"],
)
def test_an_order_is_paid_closed_or_cancelled_from_open_states_only(
    database, order_id, statement, allowed, status
):
    put(database, status, paid="0.00")
    assert runs_from(database, statement, order_id) is (status in allowed)


@pytest.mark.parametrize("amount", ["0.01", "9.89", "9.91"])
def test_an_order_is_paid_with_its_own_sum_only(database, order_id, amount):
    pay = partial(orders.mark_paid, amount=Decimal(amount))
    assert runs_from(database, pay, order_id) is False


@pytest.mark.parametrize("status", STATUSES)
def test_refunds_are_counted_of_paid_orders_only(database, order_id, status):
    put(database, status, paid="9.90")
    record = partial(order_refunds.record_refunded_amount, refunded=PAY)
    allowed = {*WITH_MONEY, "REFUNDING"}
    assert runs_from(database, record, order_id) is (status in allowed)


@pytest.mark.parametrize(("refunded", "counts"), [("3.00", False), ("3.01", True), ("9.91", False)])
def test_refunds_grow_up_to_what_was_paid(database, order_id, refunded, counts):
    put(database, "PAID", paid="9.90", refunded="3.00")
    record = partial(order_refunds.record_refunded_amount, refunded=Decimal(refunded))
    assert runs_from(database, record, order_id) is counts


@pytest.mark.parametrize("refunded", ["9.89", "9.90"])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(
    ("statement", "allowed"),
    [(order_refunds.mark_refunding, WITH_MONEY), (order_refunds.mark_refunded, {"REFUNDING"})],
)
def test_only_an_order_all_of_whose_money_went_back_is_refunded(
    database, order_id, statement, allowed, status, refunded
):
    put(database, status, paid="9.90", refunded=refunded)
    in_whole = refunded == "9.90"
    assert runs_from(database, statement, order_id) is (in_whole and status in allowed)


@pytest.mark.parametrize("state", ["OPEN", "CLOSING", "CLOSED", "PAID"])
@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        (attempt_store.mark_attempt_paid, {"OPEN", "CLOSING"}),
        (attempt_store.close_open_attempt, {"OPEN"}),
        (attempt_store.close_asked_attempt, {"CLOSING"}),
    ],
)
def test_an_attempt_ends_once(database, order_id, statement, allowed, state):
    an_attempt(database, order_id, "O1", state)
    an_attempt(database, order_id, "O1_2", "OPEN")
    an_attempt(database, order_id, "O1_3", "CLOSING")
    won = in_transaction(lambda tx: statement(tx, "O1"))
    assert won is (state in allowed)
    assert (attempt_state(database, "O1") != state) is won
    assert [attempt_state(database, n) for n in ("O1_2", "O1_3")] == ["OPEN", "CLOSING"]


def a_payment(database, order_id: int, state: str, refunded: str) -> int:
    database.execute(
        "INSERT INTO oms_order_payment "
        "(provider, trade_no, out_trade_no, order_id, amount, state, refunded_amount) "
        "VALUES ('alipay', 'T1', 'O1', %s, 9.90, %s, %s)",
        (None if state == "UNMATCHED" else order_id, state, refunded),
    )
    return int(database.value("SELECT id FROM oms_order_payment"))


@pytest.mark.parametrize("state", PaymentState)
def test_only_unmatched_money_is_given_to_an_order(database, order_id, state):
    payment_id = a_payment(database, order_id, state, "0.00")
    before = payment_row(database)
    won = in_transaction(
        lambda tx: payments.match_payment(tx, payment_id, order_id, PaymentState.APPLIED, None)
    )
    assert won is (state == "UNMATCHED")
    assert (payment_row(database) != before) is won


@pytest.mark.parametrize("refunded", ["9.89", "9.90"])
@pytest.mark.parametrize("state", PaymentState)
def test_only_money_that_no_order_took_becomes_refunded(database, order_id, state, refunded):
    payment_id = a_payment(database, order_id, state, refunded)
    won = in_transaction(lambda tx: refundable.mark_payment_refunded(tx, payment_id))
    waiting = {"REFUND_PENDING", "REFUNDING", "REFUND_FAILED", "UNMATCHED"}
    assert won is (refunded == "9.90" and state in waiting)
    assert payment_row(database)["state"] == ("REFUNDED" if won else state)


@pytest.mark.parametrize(("more", "fits"), [("0.01", True), ("6.90", True), ("6.91", False)])
def test_what_goes_back_of_a_payment_is_added_up_to_what_was_paid(database, order_id, more, fits):
    payment_id = a_payment(database, order_id, "APPLIED", "3.00")
    won = in_transaction(lambda tx: refundable.add_refunded(tx, payment_id, Decimal(more)))
    assert won is fits
    known = Decimal("3.00") + (Decimal(more) if fits else 0)
    assert payment_row(database)["refunded_amount"] == known
