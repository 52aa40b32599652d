"""Money that fits no order, and trades that contradict themselves: kept, moving nothing, and tried
again whenever the notice comes again."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from lockstep.db import connection
from lockstep.payments import store
from lockstep.payments.model import Result
from tests.support.builders import a_sku, assert_at_rest
from tests.support.notices import (
    Changes,
    closed_unpaid,
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    refunded,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

MONEY_TABLES = ("oms_order", "oms_order_payment", "oms_order_event", "outbox")


def test_money_for_an_unknown_order_is_kept_and_stays_unmatched(database):
    for _ in range(2):
        assert ALIPAY.accept() is Result.UNMATCHED
        assert notice_rows(database) == [("N1", "UNMATCHED", "NO_SUCH_ORDER")]
        assert payment_state(database) == ("UNMATCHED", None)
        assert payment_row(database)["order_id"] is None
        assert payment_row(database)["amount"] == Decimal("9.90")
    assert ALIPAY.accept(notify_id="N2") is Result.UNMATCHED
    assert database.count("oms_order_payment") == 1
    assert staged(database) == []


@pytest.mark.parametrize("notify_id", ["N1", "N2"])
def test_an_order_that_turns_up_takes_its_money(database, notify_id):
    ALIPAY.accept()
    a_sku(database)
    order_id = the_order(database)
    assert ALIPAY.accept(notify_id=notify_id) is Result.APPLIED
    assert payment_state(database) == ("APPLIED", None)
    assert payment_row(database)["order_id"] == order_id
    assert order_row(database)[0] == "PAID"
    assert notice_rows(database)[-1] == (notify_id, "DONE", None)
    assert ALIPAY.accept(notify_id=notify_id) is Result.REPLAYED
    assert_at_rest(database)


def test_an_order_that_turns_up_with_another_sum_takes_nothing(database):
    ALIPAY.accept(total_amount="9.00")
    a_sku(database)
    order_id = the_order(database)
    assert ALIPAY.accept(total_amount="9.00") is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert payment_row(database)["order_id"] == order_id
    assert notice_rows(database) == [("N1", "DONE", "AMOUNT_MISMATCH")]


def test_a_refund_stored_while_its_payment_went_unmatched_is_decided_in_the_end(
    database, monkeypatch
):
    """Without an order there is no lock: the payment is committed after the refund looked for it,
    and does not see the refund that waits for it."""
    looked = store.lock_payment

    def look_then_let_the_payment_in(tx, provider, trade_no):
        found = looked(tx, provider, trade_no)
        monkeypatch.setattr(store, "lock_payment", looked)
        with ThreadPoolExecutor(1) as elsewhere:
            assert elsewhere.submit(ALIPAY.accept).result() is Result.UNMATCHED
            elsewhere.submit(connection.discard).result()
        return found

    monkeypatch.setattr(store, "lock_payment", look_then_let_the_payment_in)
    assert ALIPAY.accept(**refunded("3.00")) is Result.QUERY_DUE
    a_sku(database)
    the_order(database)
    assert ALIPAY.accept() is Result.APPLIED
    assert order_row(database)[3] == Decimal("3.00")
    assert sorted(notice_rows(database)) == [
        ("N-refunded-3.00", "DONE", None),
        ("N1", "DONE", None),
    ]


def test_an_unpaid_close_of_an_unknown_order_is_kept_until_the_order_turns_up(database):
    assert ALIPAY.accept(**closed_unpaid()) is Result.UNMATCHED
    assert database.count("oms_order_payment") == 0
    assert notice_rows(database) == [("N-closed", "UNMATCHED", "NO_SUCH_ORDER")]
    a_sku(database)
    the_order(database)
    assert ALIPAY.accept(**closed_unpaid()) is Result.ORDER_CLOSED
    assert notice_rows(database) == [("N-closed", "DONE", None)]
    assert_at_rest(database)


# --- one trade, one order, one amount ------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"out_trade_no": "O2"},
        {"out_trade_no": "NO-SUCH-ORDER"},
        {"total_amount": "9.91"},
        {"total_amount": "0.01"},
        refunded("3.00", out_trade_no="O2"),
        refunded("3.00", total_amount="99.00"),
        closed_unpaid(out_trade_no="O2"),
        {"trade_status": "TRADE_FINISHED", "total_amount": "9.91"},
    ],
)
def test_a_trade_bound_otherwise_is_kept_as_a_conflict_and_changes_nothing(
    database, other: Changes
):
    a_sku(database)
    the_order(database)
    the_order(database, "O2")
    ALIPAY.accept()
    before = database.dump(MONEY_TABLES)
    conflicting = other | {"notify_id": "N-other"}
    for _ in range(2):
        assert ALIPAY.accept(**conflicting) is Result.CONFLICT
        assert database.dump(MONEY_TABLES) == before
        assert notice_rows(database)[1:] == [("N-other", "CONFLICT", "TRADE_BOUND_OTHERWISE")]
    assert_at_rest(database)


def test_a_conflict_is_none_once_the_trade_is_bound_as_it_says(database):
    a_sku(database)
    the_order(database)
    ALIPAY.accept(total_amount="9.00", out_trade_no="O-lost")
    assert ALIPAY.accept(notify_id="N2") is Result.CONFLICT
    database.execute("DELETE FROM oms_order_payment")
    database.execute("DELETE FROM oms_money_entry")
    assert ALIPAY.accept(notify_id="N2") is Result.APPLIED
    assert notice_rows(database)[1] == ("N2", "DONE", None)


def test_the_same_notify_id_with_other_content_is_a_notice_of_its_own(database):
    a_sku(database)
    order_id = the_order(database)
    ALIPAY.accept()
    assert ALIPAY.accept(**refunded("3.00", notify_id="N1")) is Result.REFUND_RECORDED
    assert ALIPAY.accept(**refunded("5.00", notify_id="N1")) is Result.REFUND_RECORDED
    assert ALIPAY.accept() is Result.REPLAYED
    assert notice_rows(database) == [("N1", "DONE", None)] * 3
    assert order_row(database)[3] == Decimal("5.00")
    assert len(trail(database, order_id)) == 1
