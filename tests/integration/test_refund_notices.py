"""Money that goes back, as notices tell of it: in part, in whole, before its payment, or late."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lockstep.payments.model import Result
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import cancel
from tests.support.notices import (
    Changes,
    finished,
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    refunded,
    refunded_in_full,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

PAID = ("PENDING_PAYMENT", "PAID", "alipay", "PAID")
REFUNDED = [
    ("PAID", "REFUNDING", "alipay", "REFUNDED_IN_FULL"),
    ("REFUNDING", "REFUNDED", "alipay", "REFUNDED_IN_FULL"),
]


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def test_a_part_that_went_back_is_counted_and_leaves_the_order_paid(database, order_id):
    ALIPAY.accept()
    assert ALIPAY.accept(**refunded("3.00")) is Result.REFUND_RECORDED
    assert order_row(database) == ("PAID", None, Decimal("9.90"), Decimal("3.00"))
    assert payment_state(database) == ("APPLIED", None)
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert trail(database, order_id) == [PAID]
    assert notice_rows(database)[1] == ("N-refunded-3.00", "DONE", None)
    assert_at_rest(database)


def test_sums_of_refunds_are_cumulative_and_only_grow(database, order_id):
    ALIPAY.accept()
    for fee, known in (("3.00", "3.00"), ("5.00", "5.00"), ("4.00", "5.00"), ("5.00", "5.00")):
        changes = refunded(fee, notify_id=f"N-{fee}-{known}")
        assert ALIPAY.accept(**changes) in {Result.REFUND_RECORDED, Result.REPLAYED}
        assert order_row(database)[3] == Decimal(known)
        assert payment_row(database)["refunded_amount"] == Decimal(known)


def test_a_full_refund_takes_two_steps_and_touches_no_stock(database, order_id):
    ALIPAY.accept()
    deliver_outbox(database)
    assert database.stock(1001) == (9, 0)
    assert ALIPAY.accept(**refunded_in_full()) is Result.REFUND_RECORDED
    assert order_row(database) == ("REFUNDED", None, Decimal("9.90"), Decimal("9.90"))
    assert trail(database, order_id) == [PAID, *REFUNDED]
    assert payment_state(database) == ("APPLIED", None)
    assert database.stock(1001) == (9, 0)
    assert database.count("outbox", queue="release") == 0
    assert_at_rest(database)


def test_the_last_of_several_parts_is_a_full_refund(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**refunded("3.00"))
    ALIPAY.accept(**refunded_in_full())
    assert order_row(database)[0] == "REFUNDED"
    assert trail(database, order_id) == [PAID, *REFUNDED]


def test_a_full_refund_told_as_success_is_one_all_the_same(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**refunded("9.90"))
    assert order_row(database)[0] == "REFUNDED"


def test_a_repeated_full_refund_changes_nothing(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**refunded_in_full())
    assert ALIPAY.accept(**refunded_in_full()) is Result.REPLAYED
    assert ALIPAY.accept(**refunded_in_full(notify_id="N-again")) is Result.REFUND_RECORDED
    assert ALIPAY.accept(**refunded("3.00")) is Result.REFUND_RECORDED
    assert order_row(database) == ("REFUNDED", None, Decimal("9.90"), Decimal("9.90"))
    assert trail(database, order_id) == [PAID, *REFUNDED]


@pytest.mark.parametrize("status", ["SHIPPED", "FINISHED"])
def test_a_full_refund_also_follows_goods_that_are_on_their_way(database, order_id, status):
    ALIPAY.accept()
    deliver_outbox(database)
    database.execute("UPDATE oms_order SET prev_status = 'PAID', status = 'SHIPPED'")
    if status == "FINISHED":
        database.execute("UPDATE oms_order SET prev_status = 'SHIPPED', status = 'FINISHED'")
    ALIPAY.accept(**refunded_in_full())
    assert order_row(database)[0] == "REFUNDED"
    assert trail(database, order_id)[1][:2] == (status, "REFUNDING")


def test_an_order_that_is_being_refunded_gets_there(database, order_id):
    ALIPAY.accept()
    database.execute("UPDATE oms_order SET prev_status = 'PAID', status = 'REFUNDING'")
    ALIPAY.accept(**refunded("3.00"))
    assert order_row(database) == ("REFUNDING", None, Decimal("9.90"), Decimal("3.00"))
    ALIPAY.accept(**refunded_in_full())
    assert order_row(database)[0] == "REFUNDED"
    assert trail(database, order_id) == [PAID, REFUNDED[1]]


def test_more_back_than_was_paid_is_a_conflict_and_changes_nothing(database, order_id):
    ALIPAY.accept()
    before = (order_row(database), payment_row(database), trail(database, order_id))
    assert ALIPAY.accept(**refunded("9.91")) is Result.CONFLICT
    assert (order_row(database), payment_row(database), trail(database, order_id)) == before
    assert notice_rows(database)[1] == ("N-refunded-9.91", "CONFLICT", "REFUNDED_MORE_THAN_PAID")


def test_a_time_of_a_refund_without_its_sum_asks_the_gateway(database, order_id):
    ALIPAY.accept()
    without_sum: Changes = {"notify_id": "N2", "gmt_refund": "2026-10-25 09:00:00"}
    assert ALIPAY.accept(**without_sum) is Result.QUERY_DUE
    assert ALIPAY.accept(**(without_sum | {"refund_fee": "0.00"})) is Result.QUERY_DUE
    assert order_row(database)[3] == Decimal("0.00")
    assert notice_rows(database)[1:] == [("N2", "QUERY_DUE", "REFUND_WITHOUT_AMOUNT")] * 2


def test_a_refund_fee_of_nothing_is_a_payment(database, order_id):
    assert ALIPAY.accept(refund_fee="0.00") is Result.APPLIED
    assert order_row(database) == ("PAID", None, Decimal("9.90"), Decimal("0.00"))


def test_a_refund_before_its_payment_waits_and_pays_nothing(database, order_id):
    assert ALIPAY.accept(**refunded("3.00")) is Result.QUERY_DUE
    assert order_row(database) == ("PENDING_PAYMENT", None, Decimal("0.00"), Decimal("0.00"))
    assert database.count("oms_order_payment") == 0
    assert database.count("outbox") == 0
    waiting = ("N-refunded-3.00", "QUERY_DUE", "REFUND_OF_UNKNOWN_PAYMENT")
    assert notice_rows(database) == [waiting]
    assert ALIPAY.accept(**refunded("3.00")) is Result.QUERY_DUE
    assert notice_rows(database) == [waiting]


@pytest.mark.parametrize("fee", ["3.00", "9.90"])
def test_a_waiting_refund_is_decided_with_its_payment(database, order_id, fee):
    ALIPAY.accept(**refunded(fee))
    assert ALIPAY.accept() is Result.APPLIED
    assert order_row(database)[3] == Decimal(fee)
    assert payment_row(database)["refunded_amount"] == Decimal(fee)
    in_full = fee == "9.90"
    assert trail(database, order_id) == [PAID, *(REFUNDED if in_full else [])]
    assert notice_rows(database) == [(f"N-refunded-{fee}", "DONE", None), ("N1", "DONE", None)]
    assert_at_rest(database)


def test_a_waiting_refund_of_another_trade_goes_on_waiting(database, order_id):
    ALIPAY.accept(**refunded("3.00", trade_no="T2"))
    ALIPAY.accept()
    assert order_row(database)[3] == Decimal("0.00")
    assert notice_rows(database)[0][1] == "QUERY_DUE"


def test_late_money_that_went_back_is_refunded_and_its_order_stays_closed(database, order_id):
    cancel(42, "O1")
    ALIPAY.accept()
    ALIPAY.accept(**refunded("3.00"))
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert ALIPAY.accept(**refunded_in_full()) is Result.REFUND_RECORDED
    assert payment_state(database) == ("REFUNDED", "LATE_PAYMENT")
    assert order_row(database) == ("CLOSED", "CANCELLED", Decimal("0.00"), Decimal("0.00"))
    assert_at_rest(database)


def test_late_money_whose_refund_is_told_first_ends_the_same(database, order_id):
    cancel(42, "O1")
    ALIPAY.accept(**refunded_in_full())
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUNDED", "LATE_PAYMENT")
    assert order_row(database) == ("CLOSED", "CANCELLED", Decimal("0.00"), Decimal("0.00"))


def test_a_second_payment_that_went_back_leaves_the_first_alone(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(notify_id="N2", trade_no="T2")
    ALIPAY.accept(**refunded_in_full(trade_no="T2"))
    assert payment_state(database, "T2") == ("REFUNDED", "SECOND_PAYMENT")
    assert payment_row(database)["refunded_amount"] == Decimal("0.00")
    assert order_row(database) == ("PAID", None, Decimal("9.90"), Decimal("0.00"))
    assert_at_rest(database)


def test_unmatched_money_that_went_back_is_refunded(database):
    ALIPAY.accept()
    assert ALIPAY.accept(**refunded_in_full()) is Result.REFUND_RECORDED
    assert payment_state(database) == ("REFUNDED", None)
    assert payment_row(database)["order_id"] is None


def test_what_went_back_of_unmatched_money_follows_it_to_its_order(database):
    ALIPAY.accept()
    ALIPAY.accept(**refunded("3.00"))
    a_sku(database)
    order_id = the_order(database)
    assert ALIPAY.accept() is Result.APPLIED
    assert order_row(database) == ("PAID", None, Decimal("9.90"), Decimal("3.00"))
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert trail(database, order_id) == [PAID]


# --- the end of the refund window ----------------------------------------------------------------


def test_the_end_of_the_refund_window_is_kept_and_moves_nothing(database, order_id):
    ALIPAY.accept()
    before = (order_row(database), trail(database, order_id))
    assert ALIPAY.accept(**finished()) is Result.NOTED
    assert (order_row(database), trail(database, order_id)) == before
    at = datetime(2027, 1, 24, 2, 0, 5)  # noqa: DTZ001 - as the column shows it
    assert payment_row(database)["finished_at"] == at
    later = finished(notify_id="N3", gmt_close="2028-01-01 00:00:00")
    assert ALIPAY.accept(**later) is Result.NOTED
    assert payment_row(database)["finished_at"] == at
    assert database.count("oms_order_payment") == 1


def test_the_end_of_a_window_without_a_time_is_taken_as_now(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**(finished() | {"gmt_close": None}))
    finished_at = payment_row(database)["finished_at"].replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - finished_at).total_seconds()) < 60


def test_a_refund_of_a_finished_trade_says_both(database, order_id):
    ALIPAY.accept()
    assert ALIPAY.accept(**(finished() | {"refund_fee": "3.00"})) is Result.REFUND_RECORDED
    assert order_row(database)[3] == Decimal("3.00")
    assert payment_row(database)["finished_at"] is not None


def test_finished_but_never_told_to_be_paid_asks_the_gateway(database, order_id):
    assert ALIPAY.accept(**finished()) is Result.QUERY_DUE
    assert database.count("oms_order_payment") == 0
    assert order_row(database)[0] == "PENDING_PAYMENT"
    assert notice_rows(database) == [("N-finished", "QUERY_DUE", "FINISHED_UNKNOWN_PAYMENT")]
    assert ALIPAY.accept() is Result.APPLIED
    assert payment_row(database)["finished_at"] is not None
    assert notice_rows(database)[0] == ("N-finished", "DONE", None)


def test_a_total_of_which_nothing_is_ours_is_known_to_have_been_told(database, order_id):
    """As of a row that was written before totals were kept."""
    ALIPAY.accept()
    for total in ("3.00", "5.00"):
        ALIPAY.accept(**refunded(total))
    database.execute("UPDATE oms_order_payment SET told_amount = 0")
    ALIPAY.accept(**refunded("5.00", notify_id="N-again"))
    assert database.value("SELECT told_amount FROM oms_order_payment") == Decimal("5.00")
