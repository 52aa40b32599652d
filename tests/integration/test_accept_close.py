"""What a notice without money does: an unpaid trade that closed, and all that is only kept."""

from decimal import Decimal

import pytest

from lockstep.orders.model import CancelRequested
from lockstep.payments.model import Result
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import cancel, sweep
from tests.support.notices import (
    an_attempt,
    attempt_state,
    closed_unpaid,
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

NOTHING = Decimal("0.00")
OPEN = ("PENDING_PAYMENT", None, NOTHING, NOTHING)


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def test_an_unpaid_close_closes_its_order_and_frees_the_stock(database, order_id):
    assert ALIPAY.accept(**closed_unpaid()) is Result.ORDER_CLOSED
    assert order_row(database) == ("CLOSED", "GATEWAY_CLOSED", NOTHING, NOTHING)
    assert trail(database, order_id) == [("PENDING_PAYMENT", "CLOSED", "alipay", "GATEWAY_CLOSED")]
    assert notice_rows(database) == [("N-closed", "DONE", None)]
    assert staged(database) == ["release"]
    assert database.count("oms_order_payment") == 0
    assert database.stock(1001) == (10, 1)
    assert_at_rest(database)
    assert database.stock(1001) == (10, 0)


def test_a_refund_fee_of_nothing_is_no_refund(database, order_id):
    assert ALIPAY.accept(**closed_unpaid(refund_fee="0.00")) is Result.ORDER_CLOSED


def test_a_repeated_close_frees_the_stock_once(database, order_id):
    ALIPAY.accept(**closed_unpaid())
    assert ALIPAY.accept(**closed_unpaid()) is Result.REPLAYED
    assert ALIPAY.accept(**closed_unpaid(notify_id="N2")) is Result.NOTED
    assert staged(database) == ["release"]
    assert len(trail(database, order_id)) == 1


def test_money_that_comes_after_the_close_is_kept_to_go_back(database, order_id):
    ALIPAY.accept(**closed_unpaid())
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")


def test_a_close_of_another_trade_leaves_a_paid_order_alone(database, order_id):
    ALIPAY.accept(trade_no="T2")
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert order_row(database)[0] == "PAID"
    assert staged(database) == ["confirm"]
    assert notice_rows(database)[1] == ("N-closed", "DONE", None)
    assert_at_rest(database)


def test_an_unpaid_close_of_a_trade_that_was_paid_asks_the_gateway(database, order_id):
    ALIPAY.accept()
    before = (order_row(database), payment_row(database))
    assert ALIPAY.accept(**closed_unpaid()) is Result.QUERY_DUE
    assert (order_row(database), payment_row(database)) == before
    assert notice_rows(database)[1] == ("N-closed", "QUERY_DUE", "CLOSED_THOUGH_PAID")
    assert staged(database) == ["confirm"]


def test_an_order_without_held_stock_is_not_the_channels_to_close(database, order_id):
    database.execute("UPDATE oms_order SET status = 'RESERVING'")
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert order_row(database)[0] == "RESERVING"


# --- attempts ------------------------------------------------------------------------------------


def test_the_page_of_another_order_has_no_say_in_a_close(database, order_id):
    an_attempt(database, the_order(database, "O2"), "O2")
    assert ALIPAY.accept(**closed_unpaid()) is Result.ORDER_CLOSED
    assert attempt_state(database, "O2") == "OPEN"


def test_the_close_of_the_only_open_attempt_closes_the_order(database, order_id):
    an_attempt(database, order_id, "O1")
    assert ALIPAY.accept(**closed_unpaid()) is Result.ORDER_CLOSED
    assert attempt_state(database, "O1") == "CLOSED"
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")
    assert_at_rest(database)


def test_a_close_that_we_asked_for_closes_its_attempt_only(database, order_id):
    an_attempt(database, order_id, "O1", "CLOSING")
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert attempt_state(database, "O1") == "CLOSED"
    assert order_row(database) == OPEN
    assert staged(database) == []


@pytest.mark.parametrize("other", ["OPEN", "CLOSING"])
def test_an_order_stays_open_while_another_attempt_may_be_paid(database, order_id, other):
    an_attempt(database, order_id, "O1")
    an_attempt(database, order_id, "O1_2", other)
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert attempt_state(database, "O1") == "CLOSED"
    assert attempt_state(database, "O1_2") == other
    assert order_row(database) == OPEN
    assert staged(database) == []


def test_the_last_of_two_closes_closes_the_order(database, order_id):
    an_attempt(database, order_id, "O1")
    an_attempt(database, order_id, "O1_2")
    ALIPAY.accept(**closed_unpaid())
    second = closed_unpaid(notify_id="N2", out_trade_no="O1_2", trade_no="T2")
    assert ALIPAY.accept(**second) is Result.ORDER_CLOSED
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")


@pytest.mark.parametrize("state", ["CLOSED", "PAID"])
def test_the_close_of_an_attempt_that_is_over_moves_nothing(database, order_id, state):
    an_attempt(database, order_id, "O1", state)
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert attempt_state(database, "O1") == state
    assert order_row(database) == OPEN


def test_the_close_of_no_attempt_of_an_order_that_has_some_moves_nothing(database, order_id):
    an_attempt(database, order_id, "O1_2")
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert attempt_state(database, "O1_2") == "OPEN"
    assert order_row(database) == OPEN


def test_a_close_that_a_cancel_asked_for_ends_in_the_members_name(database, order_id):
    """It comes after an answer that was lost: it closes the attempt, the sweep the order."""
    an_attempt(database, order_id, "O1")
    assert cancel(42, "O1") == CancelRequested(order_id)
    assert ALIPAY.accept(**closed_unpaid()) is Result.NOTED
    assert attempt_state(database, "O1") == "CLOSED"
    database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3)")
    swept = sweep(lambda: True)
    assert (swept.orders_closed, swept.asked) == (1, 0)
    assert order_row(database)[:2] == ("CLOSED", "CANCELLED")
    assert trail(database, order_id) == [
        ("PENDING_PAYMENT", "PAYMENT_PROCESSING", "member:42", "ANSWER_UNKNOWN"),
        ("PAYMENT_PROCESSING", "CLOSED", "system:sweep_expired", "CANCELLED"),
    ]
    assert_at_rest(database)


def test_the_money_of_an_attempt_pays_its_order(database, order_id):
    an_attempt(database, order_id, "O1")
    an_attempt(database, order_id, "O1_2")
    assert ALIPAY.accept(out_trade_no="O1_2") is Result.APPLIED
    assert payment_row(database)["order_id"] == order_id
    assert payment_row(database)["out_trade_no"] == "O1_2"
    assert order_row(database)[0] == "PAID"
    assert attempt_state(database, "O1_2") == "PAID"
    assert attempt_state(database, "O1") == "OPEN"
    assert_at_rest(database)


@pytest.mark.parametrize("state", ["OPEN", "CLOSING"])
def test_a_wrong_amount_uses_its_attempt_up_as_well(database, order_id, state):
    an_attempt(database, order_id, "O1_2", state)
    wrong = {"out_trade_no": "O1_2", "total_amount": "0.01"}
    assert ALIPAY.accept(**wrong) is Result.REFUND_PENDING
    assert attempt_state(database, "O1_2") == "PAID"
    assert order_row(database) == OPEN


def test_money_for_an_attempt_that_was_closed_counts_all_the_same(database, order_id):
    an_attempt(database, order_id, "O1", "CLOSED")
    assert ALIPAY.accept() is Result.APPLIED
    assert attempt_state(database, "O1") == "CLOSED"
    assert order_row(database)[0] == "PAID"


def test_an_attempts_number_goes_before_an_order_of_the_same_name(database, order_id):
    other = the_order(database, "O1_2")
    an_attempt(database, order_id, "O1_2")
    ALIPAY.accept(out_trade_no="O1_2")
    assert payment_row(database)["order_id"] == order_id != other


def test_three_pages_paid_are_one_payment_and_two_to_go_back(database, order_id):
    for number in ("O1", "O1_2", "O1_3"):
        an_attempt(database, order_id, number)
    results = [
        ALIPAY.accept(notify_id=f"N{n}", trade_no=f"T{n}", out_trade_no=number)
        for n, number in enumerate(("O1", "O1_2", "O1_3"))
    ]
    assert results == [Result.APPLIED, Result.REFUND_PENDING, Result.REFUND_PENDING]
    assert [payment_state(database, f"T{n}") for n in range(3)] == [
        ("APPLIED", None),
        ("REFUND_PENDING", "SECOND_PAYMENT"),
        ("REFUND_PENDING", "SECOND_PAYMENT"),
    ]
    assert {attempt_state(database, n) for n in ("O1", "O1_2", "O1_3")} == {"PAID"}
    assert_at_rest(database)


# --- only kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"trade_status": "WAIT_BUYER_PAY", "gmt_payment": None},
        {"trade_status": "TRADE_PENDING"},
        {"trade_status": "trade_success"},
        {"trade_status": None},
        {"notify_type": "dut_user_sign"},
        {"trade_status": "WAIT_BUYER_PAY", "out_trade_no": "NO-SUCH-ORDER"},
        {"notify_type": "servicemarket_order_notify", "trade_no": None, "out_trade_no": None},
    ],
)
@pytest.mark.parametrize("status", ["PENDING_PAYMENT", "CLOSED"])
def test_what_is_not_about_paid_or_closed_trades_is_kept_and_moves_nothing(
    database, order_id, other, status
):
    if status == "CLOSED":
        cancel(42, "O1")
        deliver_outbox(database)
    tables = ("oms_order", "oms_order_event", "oms_order_payment", "ims_sku_stock", "outbox")
    before = database.dump(tables)
    assert ALIPAY.accept(**other) is Result.NOTED
    assert ALIPAY.accept(**other) is Result.REPLAYED
    assert database.dump(tables) == before
    assert notice_rows(database) == [("N1", "DONE", None)]
