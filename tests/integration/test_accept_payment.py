"""Accepting a payment: it pays its order once, or is kept to go back; no stock row is touched."""

from datetime import datetime
from decimal import Decimal

import pytest

from lockstep.db import connection
from lockstep.errors import TryAgain
from lockstep.inventory.confirm import confirm
from lockstep.payments import accept as accepting
from lockstep.payments import store
from lockstep.payments.model import Result
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import cancel
from tests.support.notices import (
    an_attempt,
    closed_unpaid,
    finished,
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    refunded,
    refunded_in_full,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

NOTHING = Decimal("0.00")
PAID = ("PENDING_PAYMENT", "PAID", "alipay", "PAID")


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def test_a_first_payment_pays_its_order_and_asks_for_its_stock(database, order_id):
    assert ALIPAY.accept() is Result.APPLIED
    assert order_row(database) == ("PAID", None, Decimal("9.90"), NOTHING)
    assert payment_row(database) == {
        "provider": "alipay",
        "trade_no": "T1",
        "out_trade_no": "O1",
        "order_id": order_id,
        "amount": Decimal("9.90"),
        "state": "APPLIED",
        "reason": None,
        "refunded_amount": NOTHING,
        "told_amount": NOTHING,
        "gateway_paid_at": datetime(2026, 10, 24, 2, 0, 5),  # noqa: DTZ001 - as it is stored
        "finished_at": None,
        "applied_to": order_id,
    }
    assert notice_rows(database) == [("N1", "DONE", None)]
    assert trail(database, order_id) == [PAID]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE to_status = 'PAID'")
    assert evidence == '{"told_by": "N1", "trade_no": "T1"}'
    assert database.value("SELECT paid_at IS NOT NULL FROM oms_order") == 1
    assert staged(database) == ["confirm"]
    assert database.stock(1001) == (10, 1)
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


UNSAID = {"id", "content_hash", "created_at", "asks", "next_ask_at"}


def test_what_a_notice_says_is_kept_in_the_inbox(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    row = database.one("SELECT * FROM oms_notice")
    kept = {name: row[name] for name in row if name not in UNSAID}
    assert kept == {
        "provider": "alipay",
        "notify_id": "N-refunded-3.00",
        "kind": "REFUND",
        "notify_type": "trade_status_sync",
        "app_id": ALIPAY.app_id,
        "seller_id": ALIPAY.seller_id,
        "trade_no": "T1",
        "out_trade_no": "O1",
        "trade_status": "TRADE_SUCCESS",
        "total_amount": Decimal("9.90"),
        "refund_fee": Decimal("3.00"),
        "out_biz_no": "R-3.00",
        "gmt_payment": datetime(2026, 10, 24, 2, 0, 5),  # noqa: DTZ001 - as it is stored
        "gmt_refund": datetime(2026, 10, 25, 1, 0, 0, 123000),  # noqa: DTZ001
        "gmt_close": None,
        "state": "QUERY_DUE",
        "reason": "REFUND_OF_UNKNOWN_PAYMENT",
    }


# --- again ---------------------------------------------------------------------------------------


def test_a_repeated_notice_is_one_payment(database, order_id):
    ALIPAY.accept()
    before = (order_row(database), payment_row(database), trail(database, order_id))
    assert ALIPAY.accept() is Result.REPLAYED
    assert ALIPAY.accept(notify_time="2026-10-25 11:24:28") is Result.REPLAYED
    assert (order_row(database), payment_row(database), trail(database, order_id)) == before
    assert notice_rows(database) == [("N1", "DONE", None)]
    assert_at_rest(database)


def test_another_notice_of_the_same_trade_is_the_same_payment(database, order_id):
    ALIPAY.accept()
    before = (order_row(database), payment_row(database), trail(database, order_id))
    assert ALIPAY.accept(notify_id="N2") is Result.REPLAYED
    assert (order_row(database), payment_row(database), trail(database, order_id)) == before
    assert notice_rows(database) == [("N1", "DONE", None), ("N2", "DONE", None)]
    assert_at_rest(database)


@pytest.mark.parametrize("notify_id", ["N1", "N2"])
def test_a_repeat_asks_for_the_stock_again_only_while_it_is_held(database, order_id, notify_id):
    ALIPAY.accept()
    ALIPAY.accept(notify_id=notify_id)
    assert staged(database) == ["confirm", "confirm"]
    deliver_outbox(database)
    ALIPAY.accept(notify_id=notify_id)
    assert staged(database) == ["confirm", "confirm"]
    assert database.stock(1001) == (9, 0)


def test_a_repeat_of_money_that_goes_back_asks_for_no_stock(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(notify_id="N2", trade_no="T2")
    assert ALIPAY.accept(notify_id="N2", trade_no="T2") is Result.REPLAYED
    assert ALIPAY.accept(notify_id="N3", trade_no="T2") is Result.REPLAYED
    assert staged(database) == ["confirm", "refund"]
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")


def test_a_repeat_after_a_full_refund_pays_nothing_again(database, order_id):
    ALIPAY.accept()
    deliver_outbox(database)
    ALIPAY.accept(**refunded_in_full())
    for notify_id in ("N1", "N2"):
        assert ALIPAY.accept(notify_id=notify_id) is Result.REPLAYED
    assert order_row(database)[0] == "REFUNDED"
    assert staged(database) == ["confirm"]


def test_a_repeat_asks_for_the_stock_of_an_order_whose_money_went_back(database, order_id):
    ALIPAY.accept()
    database.execute("UPDATE outbox SET sent_at = NOW(3)")  # sent, and lost on its way
    ALIPAY.accept(**refunded_in_full())
    assert ALIPAY.accept() is Result.REPLAYED
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


# --- money that its order cannot take ------------------------------------------------------------


def test_money_for_a_closed_order_is_kept_to_go_back(database, order_id):
    cancel(42, "O1")
    deliver_outbox(database)
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert payment_row(database)["order_id"] == order_id
    assert order_row(database) == ("CLOSED", "CANCELLED", NOTHING, NOTHING)
    assert notice_rows(database) == [("N1", "DONE", "LATE_PAYMENT")]
    assert staged(database) == ["release", "refund"]
    assert database.stock(1001) == (10, 0)
    assert_at_rest(database)


def test_late_money_never_takes_stock_that_was_sold_to_another(database):
    a_sku(database, stock=1)
    the_order(database)
    cancel(42, "O1")
    deliver_outbox(database)
    the_order(database, "O2")
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert ALIPAY.accept(notify_id="N2", out_trade_no="O2", trade_no="T2") is Result.APPLIED
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)
    assert (order_row(database)[0], order_row(database, "O2")[0]) == ("CLOSED", "PAID")


def test_a_second_payment_is_kept_to_go_back(database, order_id):
    ALIPAY.accept()
    assert ALIPAY.accept(notify_id="N2", trade_no="T2") is Result.REFUND_PENDING
    assert payment_state(database, "T1") == ("APPLIED", None)
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert order_row(database) == ("PAID", None, Decimal("9.90"), NOTHING)
    assert notice_rows(database)[1] == ("N2", "DONE", "SECOND_PAYMENT")
    assert trail(database, order_id) == [PAID]
    assert staged(database) == ["confirm", "refund"]
    assert_at_rest(database)


def test_an_order_that_another_channel_paid_keeps_this_money_to_go_back(database, order_id):
    database.execute(
        "INSERT INTO oms_order_payment (provider, trade_no, out_trade_no, order_id, amount, state) "
        "VALUES ('wechat', 'T1', 'O1', %s, 9.90, 'APPLIED')",
        (order_id,),
    )
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'PAID', paid_amount = pay_amount"
    )
    assert ALIPAY.accept() is Result.REFUND_PENDING
    rows = database.rows("SELECT provider, state, reason FROM oms_order_payment ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("wechat", "APPLIED", None),
        ("alipay", "REFUND_PENDING", "SECOND_PAYMENT"),
    ]


@pytest.mark.parametrize("amount", ["0.01", "9.89", "9.91", "99.00", "999999999.99"])
def test_a_wrong_amount_is_kept_to_go_back_and_pays_nothing(database, order_id, amount):
    assert ALIPAY.accept(total_amount=amount) is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert payment_row(database)["amount"] == Decimal(amount)
    assert order_row(database) == ("PENDING_PAYMENT", None, NOTHING, NOTHING)
    assert notice_rows(database) == [("N1", "DONE", "AMOUNT_MISMATCH")]
    assert staged(database) == ["refund"]
    assert ALIPAY.accept(notify_id="N2", trade_no="T2") is Result.APPLIED


def test_only_the_amount_of_the_trade_counts(database, order_id):
    less = {"receipt_amount": "9.00", "buyer_pay_amount": "0.01", "subject": "999.00 yuan"}
    assert ALIPAY.accept(**less) is Result.APPLIED


def test_an_old_amount_pays_no_order_whose_sum_has_changed(database, order_id):
    database.execute("UPDATE oms_order SET pay_amount = 8.90")
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert order_row(database) == ("PENDING_PAYMENT", None, NOTHING, NOTHING)


def test_an_order_whose_stock_is_not_held_yet_takes_no_money(database, order_id):
    database.execute("UPDATE oms_order SET status = 'RESERVING', reservation_id = NULL")
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "NOT_PAYABLE")
    assert order_row(database)[0] == "RESERVING"
    assert staged(database) == ["refund"]


def test_an_order_past_its_time_is_paid_while_it_is_still_open(database, order_id):
    database.execute("UPDATE oms_order SET expires_at = TIMESTAMPADD(DAY, -1, NOW(3))")
    assert ALIPAY.accept() is Result.APPLIED
    assert order_row(database)[0] == "PAID"
    assert_at_rest(database)


def test_an_order_that_waits_for_the_gateway_is_paid(database, order_id):
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'PAYMENT_PROCESSING', "
        "cancel_requested_at = NOW(3)"
    )
    assert ALIPAY.accept() is Result.APPLIED
    assert trail(database, order_id)[0][:2] == ("PAYMENT_PROCESSING", "PAID")


# --- what a notice waits for, and what it costs --------------------------------------------------


def test_no_notice_needs_a_stock_row(database, order_id):
    the_order(database, "O2")
    with database.another_session() as counting, counting.cursor() as cursor:
        cursor.execute("SELECT * FROM ims_sku_stock FOR UPDATE")
        cursor.execute("SELECT * FROM ims_reservation FOR UPDATE")
        assert ALIPAY.accept() is Result.APPLIED
        assert ALIPAY.accept() is Result.REPLAYED
        assert ALIPAY.accept(**refunded("3.00")) is Result.REFUND_RECORDED
        assert ALIPAY.accept(**refunded_in_full()) is Result.REFUND_RECORDED
        assert ALIPAY.accept(**finished()) is Result.NOTED
        closed = closed_unpaid(out_trade_no="O2", trade_no="T2")
        assert ALIPAY.accept(**closed) is Result.ORDER_CLOSED
        assert ALIPAY.accept(trade_status="WAIT_BUYER_PAY") is Result.NOTED
    assert database.stock(1001) == (10, 2)


def test_a_notice_waits_for_nobody_elses_order(database, order_id):
    the_order(database, "O2")
    ALIPAY.accept(notify_id="N2", out_trade_no="O2", trade_no="T2")
    with database.another_session() as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM oms_order WHERE order_no = 'O2' FOR UPDATE")
        cursor.execute("SELECT * FROM oms_order_payment WHERE trade_no = 'T2' FOR UPDATE")
        cursor.execute("SELECT * FROM oms_notice WHERE notify_id = 'N2' FOR UPDATE")
        assert ALIPAY.accept() is Result.APPLIED


def test_a_repeat_waits_for_no_other_repeat(database, order_id):
    ALIPAY.accept()
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute("SELECT * FROM oms_notice WHERE notify_id = 'N1' FOR SHARE")
        assert ALIPAY.accept() is Result.REPLAYED


def test_a_repeat_of_a_notice_that_is_gone_meanwhile_comes_again_as_the_first(
    database, monkeypatch
):
    assert ALIPAY.accept() is Result.UNMATCHED
    lock = store.lock_notice

    def gone(*arguments):
        database.execute("DELETE FROM oms_notice")
        return lock(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "lock_notice", gone)
        patch.setattr(accepting, "WITHIN_SECONDS", 0.3)
        with pytest.raises(TryAgain):
            ALIPAY.accept()
    assert ALIPAY.accept() is Result.UNMATCHED
    assert notice_rows(database) == [("N1", "UNMATCHED", "NO_SUCH_ORDER")]


@pytest.mark.parametrize(("attempts", "trips"), [(0, 9), (1, 10)])
def test_a_first_payment_takes_so_many_round_trips(database, order_id, attempts, trips):
    if attempts:
        an_attempt(database, order_id, "O1")
    session = connection.current()
    before = session.round_trips
    assert ALIPAY.accept() is Result.APPLIED
    assert session.round_trips - before == trips <= 12


def test_a_confirm_of_one_line_takes_four_round_trips(database, order_id):
    ALIPAY.accept()
    session = connection.current()
    before = session.round_trips
    confirm(database.value("SELECT reservation_id FROM oms_order"), order_id)
    assert session.round_trips - before == 4
