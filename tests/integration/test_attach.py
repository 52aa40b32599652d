"""An operator gives money that fits no order to the order it was meant for."""

import json
from decimal import Decimal

import pytest

from lockstep.orders.model import OrderNotFound, OrderStatus
from lockstep.payments.attach import attach
from lockstep.payments.model import (
    Attached,
    OrderTakesNone,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
    Result,
)
from lockstep.upkeep.sweep import sweep
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import cancel, nobody
from tests.support.database import Database
from tests.support.histories import what_is_left
from tests.support.late import an_expired_order, reinstating
from tests.support.notices import (
    an_attempt,
    finished,
    notice_rows,
    order_row,
    payment_row,
    refunded,
    refunded_in_full,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

NOTHING = Decimal("0.00")
ALL = Decimal("9.90")
MONEY_TABLES = ("oms_order", "oms_order_event", "oms_order_payment", "oms_notice", "outbox")


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, and money of 9.90 that names another order."""
    a_sku(database)
    found = the_order(database)
    assert ALIPAY.accept(out_trade_no="SHOP-7") is Result.UNMATCHED
    return found


def by_alice(trade_no: str = "T1", order_no: str = "O1") -> object:
    return attach(trade_no, order_no, "operator:alice", "the member showed the receipt")


def look(database: Database) -> None:
    assert sweep(lambda: True, nobody).failed == []


def test_attached_money_pays_its_order(database, order_id):
    assert by_alice() == Attached(PaymentState.APPLIED, repeated=False)
    assert order_row(database) == ("PAID", None, ALL, NOTHING)
    assert payment_row(database)["order_id"] == order_id
    assert payment_row(database)["out_trade_no"] == "SHOP-7"
    assert trail(database, order_id) == [("PENDING_PAYMENT", "PAID", "operator:alice", "PAID")]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE reason = 'PAID'")
    assert json.loads(evidence) == {
        "trade_no": "T1",
        "told_by": "operator:alice: the member showed the receipt",
    }
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_what_waits_in_the_inbox_is_decided_with_the_next_sweep(database, order_id):
    ALIPAY.accept(notify_id="N2", out_trade_no="SHOP-7", total_amount="9.91")
    by_alice()
    look(database)
    assert notice_rows(database) == [
        ("N1", "DONE", None),
        ("N2", "CONFLICT", "TRADE_BOUND_OTHERWISE"),
    ]
    assert len(trail(database, order_id)) == 1


def test_it_is_decided_even_long_after_the_notice_was_given_up(database, order_id):
    database.execute(
        "UPDATE oms_notice SET created_at = NOW(3) - INTERVAL 9 DAY, next_ask_at = NULL"
    )
    by_alice()
    look(database)
    assert notice_rows(database) == [("N1", "DONE", None)]


@pytest.mark.parametrize("later", [{}, refunded("3.00"), finished()])
def test_what_is_told_of_the_trade_later_finds_the_order_it_was_attached_to(
    database, order_id, later
):
    by_alice()
    told = {"out_trade_no": "SHOP-7", **later}
    assert ALIPAY.accept(**told) not in {Result.CONFLICT, Result.UNMATCHED}
    assert order_row(database)[3] == Decimal("3.00" if "refund_fee" in later else "0.00")


def test_an_order_that_turns_up_under_that_number_does_not_take_the_trade(database, order_id):
    by_alice()
    the_order(database, "SHOP-7")
    assert ALIPAY.accept(out_trade_no="SHOP-7", notify_id="N2") is Result.REPLAYED
    assert order_row(database, "SHOP-7")[0] == "PENDING_PAYMENT"


@pytest.mark.parametrize(
    ("what_it_is", "status", "reason"),
    [
        ("cancelled", "CLOSED", "LATE_PAYMENT"),
        ("dearer", "PENDING_PAYMENT", "AMOUNT_MISMATCH"),
        ("paid", "PAID", "SECOND_PAYMENT"),
    ],
)
def test_an_order_that_cannot_take_it_leaves_it_waiting(
    database, order_id, what_it_is, status, reason
):
    """A slip of the pen in order_no must not give a sale away."""
    match what_it_is:
        case "cancelled":
            cancel(42, "O1")
        case "dearer":
            database.execute("UPDATE oms_order SET total_amount = 19, pay_amount = 19")
        case "paid":
            ALIPAY.accept(notify_id="N2", trade_no="T2")
    before = what_is_left(database)
    assert by_alice() == OrderTakesNone(OrderStatus(status), reason)
    assert what_is_left(database) == before
    assert (
        database.value("SELECT state FROM oms_order_payment WHERE trade_no = 'T1'") == "UNMATCHED"
    )


def test_money_in_time_may_revive_the_order_it_is_attached_to(database, monkeypatch):
    reinstating(monkeypatch)
    an_expired_order(database)
    ALIPAY.accept(out_trade_no="SHOP-7")
    assert by_alice() == Attached(PaymentState.REINSTATE_PENDING, repeated=False)
    deliver_outbox(database)
    assert order_row(database)[0] == "PAID"
    assert_at_rest(database)


def test_what_went_back_of_it_and_the_end_of_its_window_go_with_it(database, order_id):
    ALIPAY.accept(**refunded("3.00", out_trade_no="SHOP-7"))
    ALIPAY.accept(**finished(out_trade_no="SHOP-7"))
    before = payment_row(database)["finished_at"]
    by_alice()
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert payment_row(database)["finished_at"] == before is not None


def test_a_repeat_answers_the_same_and_changes_nothing(database, order_id):
    by_alice()
    look(database)
    tables = ("oms_order", "oms_order_event", "oms_order_payment", "outbox", "oms_money_entry")
    before = database.dump(tables)
    assert by_alice() == Attached(PaymentState.APPLIED, repeated=True)
    assert database.dump(tables) == before


def test_a_page_of_the_order_names_it_as_well(database, order_id):
    an_attempt(database, order_id, "O1_2")
    assert by_alice(order_no="O1_2") == Attached(PaymentState.APPLIED, repeated=False)
    assert payment_row(database)["order_id"] == order_id


# --- refused, and nothing changes ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("trade_no", "order_no", "refusal"),
    [("T9", "O1", PaymentNotFound()), ("T1", "O9", OrderNotFound())],
)
def test_unknown_money_or_an_unknown_order_is_refused(
    database, order_id, trade_no, order_no, refusal
):
    before = database.dump(MONEY_TABLES)
    assert by_alice(trade_no, order_no) == refusal
    assert database.dump(MONEY_TABLES) == before


def test_money_of_another_order_is_not_given_away(database, order_id):
    the_order(database, "O2")
    by_alice()
    before = database.dump(MONEY_TABLES[:3])
    assert by_alice(order_no="O2") == PaymentNotWaiting(PaymentState.APPLIED)
    assert database.dump(MONEY_TABLES[:3]) == before


def test_money_that_went_back_is_not_given_to_anybody(database, order_id):
    ALIPAY.accept(**refunded_in_full(out_trade_no="SHOP-7"))
    assert by_alice() == PaymentNotWaiting(PaymentState.REFUNDED)
    assert order_row(database)[0] == "PENDING_PAYMENT"
