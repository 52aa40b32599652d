"""Faults that shops, plugins and SDKs reported of their notices, each as a small input.

Through the function, with one base payment of 9.90 for order O1 that is changed and signed again.
P numbers are reports about Alipay's notices, E numbers about late, doubled, wrong or lost payments.
"""

from decimal import Decimal
from urllib.parse import quote

import pytest

from lockstep.alipay.answers import Done
from lockstep.payments import accept as accept_module
from lockstep.upkeep.sweep import sweep
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import ScriptedChannel, cancel, the_trade
from tests.support.database import Database
from tests.support.notices import (
    FAILURE,
    SUCCESS,
    an_attempt,
    answer,
    closed_unpaid,
    finished,
    http_event,
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
from tests.support.reading import full_width
from tests.support.threads import at_once

NOTHING = Decimal("0.00")
ALL = Decimal("9.90")
OPEN = ("PENDING_PAYMENT", None, NOTHING, NOTHING)
PAID = ("PAID", None, ALL, NOTHING)


@pytest.fixture(autouse=True)
def known_to_the_function(monkeypatch):
    ALIPAY.configure(monkeypatch)


@pytest.fixture(autouse=True)
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def test_p1_two_success_notices_at_once_have_one_effect(database, order_id):
    assert at_once(ALIPAY.notify, ALIPAY.notify) == [SUCCESS, SUCCESS]
    assert database.count("oms_order_payment") == 1
    assert len(trail(database, order_id)) == 1
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_p2_e19_a_finished_trade_after_its_payment_pays_nothing_again(database, order_id):
    ALIPAY.notify()
    before = (order_row(database), trail(database, order_id), staged(database))
    assert ALIPAY.notify(**finished()) == SUCCESS
    assert (order_row(database), trail(database, order_id), staged(database)) == before
    assert database.count("oms_order_payment") == 1


def test_p3_a_partial_refund_that_arrives_as_success_is_a_refund_only(database, order_id):
    ALIPAY.notify()
    assert ALIPAY.notify(**refunded("3.00")) == SUCCESS
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert len(trail(database, order_id)) == 1
    assert payment_state(database) == ("APPLIED", None)


def test_p4_a_refund_before_its_payment_does_not_pay(database):
    assert ALIPAY.notify(**refunded("3.00")) == SUCCESS
    assert order_row(database) == OPEN
    assert notice_rows(database)[0][1] == "QUERY_DUE"


def test_p5_a_full_refund_is_refunded_and_frees_no_stock(database):
    ALIPAY.notify()
    deliver_outbox(database)
    assert ALIPAY.notify(**refunded_in_full()) == SUCCESS
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert database.stock(1001) == (9, 0)
    assert "release" not in staged(database)


def test_p6_closed_has_two_meanings(database):
    assert ALIPAY.notify(**closed_unpaid()) == SUCCESS
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")


def test_p6_closed_of_another_trade_leaves_a_paid_order_alone(database):
    ALIPAY.notify(trade_no="T2")
    assert ALIPAY.notify(**closed_unpaid()) == SUCCESS
    assert order_row(database) == PAID


def test_p9_a_second_channels_payment_is_kept_to_go_back_and_answered_success(database):
    """O1 was paid by another provider: its row is like any other's."""
    ALIPAY.notify()
    database.execute("UPDATE oms_order_payment SET provider = 'other', trade_no = 'W1'")
    database.execute("UPDATE oms_money_entry SET source = 'payment:other:W1'")
    assert ALIPAY.notify(notify_id="N2") == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert payment_state(database, "W1") == ("APPLIED", None)
    assert order_row(database) == PAID


def test_p10_a_genuine_notice_of_another_app_is_refused(database):
    assert ALIPAY.notify(app_id="2021000199999999") == FAILURE
    assert (order_row(database), database.count("oms_notice")) == (OPEN, 0)


def test_p10_money_of_another_orders_sum_does_not_pay_it(database):
    the_order(database, "O2", {1001: 2})
    assert ALIPAY.notify(out_trade_no="O2") == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert order_row(database, "O2") == OPEN


def test_p11_e5_a_genuine_payment_of_a_cent_pays_nothing_and_goes_back(database):
    assert ALIPAY.notify(total_amount="0.01") == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert payment_row(database)["amount"] == Decimal("0.01")
    assert order_row(database) == OPEN


def test_p18_a_doubled_parameter_is_refused(database):
    assert answer(http_event(ALIPAY.body() + b"&total_amount=0.01")) == FAILURE
    assert (order_row(database), database.count("oms_notice")) == (OPEN, 0)


@pytest.mark.parametrize(
    "amount",
    ["NaN", "Infinity", "1e1", "-9.90", "+9.90", "9.900", "9,90", " 9.90", full_width("9.90"), "0"],
)
def test_p25_hostile_amounts_are_refused(database, amount):
    assert ALIPAY.notify(total_amount=amount) == FAILURE
    assert (order_row(database), database.count("oms_notice")) == (OPEN, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"sign=",
        b"&".join(b"f%d=x" % n for n in range(2000)),
        b"subject=" + b"x" * 1024 * 1024,
        ALIPAY.encode(ALIPAY.base(), mangle=(b"sign_type=RSA2", b"sign_type=RSA")),
    ],
    ids=["empty", "unsigned", "2000 fields", "1 MB", "RSA"],
)
def test_p25_hostile_bodies_are_refused(database, body):
    assert answer(http_event(body)) == FAILURE
    assert (order_row(database), database.count("oms_notice")) == (OPEN, 0)


# --- late, doubled, wrong, lost ------------------------------------------------------------------


def test_e3_three_pages_paid_are_one_payment_and_two_to_go_back(database, order_id):
    for n in (1, 2, 3):
        an_attempt(database, order_id, f"O1_{n}")
        paid = {"notify_id": f"N{n}", "trade_no": f"T{n}", "out_trade_no": f"O1_{n}"}
        assert ALIPAY.notify(**paid) == SUCCESS
    states = [payment_state(database, f"T{n}")[0] for n in (1, 2, 3)]
    assert states == ["APPLIED", "REFUND_PENDING", "REFUND_PENDING"]
    assert order_row(database) == PAID


def test_e7_an_old_quotes_sum_goes_back_once_the_order_comes_to_another(database):
    database.execute("UPDATE oms_order SET total_amount = 12.90, pay_amount = 12.90")
    assert ALIPAY.notify() == SUCCESS
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")
    assert order_row(database) == OPEN


@pytest.mark.parametrize("text", ["0.01", "9.90元", "付款0.01", "1e9"])
def test_e9_no_text_of_the_payers_is_taken_for_the_sum(database, text):
    """The signed total_amount alone counts."""
    said = {"subject": text, "body": text, "buyer_logon_id": text, "passback_params": quote(text)}
    assert ALIPAY.notify(**said) == SUCCESS
    assert payment_row(database)["amount"] == ALL
    assert order_row(database) == PAID


def test_e13_money_for_no_order_is_kept_and_asked_for_again(database):
    assert ALIPAY.notify(out_trade_no="NO-SUCH-ORDER") == FAILURE
    assert payment_state(database) == ("UNMATCHED", None)
    assert database.count("oms_money_entry") == 1


def test_e15_nothing_is_answered_success_before_it_is_durable(database, monkeypatch):
    def dies(*_: object, **__: object) -> None:
        raise RuntimeError("before the commit")

    with monkeypatch.context() as fate:
        fate.setattr(accept_module, "in_transaction", dies)
        assert ALIPAY.notify() == FAILURE
    assert database.count("oms_notice") == 0
    assert ALIPAY.notify() == SUCCESS
    assert SUCCESS["body"] == "success"


@pytest.mark.parametrize(
    "said", [{"subject": "a+b c"}, {"subject": "两件"}, {"sign_type": None}, {"subject": "100%"}]
)
def test_e17_a_plus_a_blank_chinese_and_no_sign_type_verify(database, said):
    assert ALIPAY.notify(**said) == SUCCESS
    assert order_row(database) == PAID


def test_e17_one_byte_changed_is_refused(database):
    body = ALIPAY.encode(ALIPAY.base(), mangle=(b"total_amount=9.90", b"total_amount=9.80"))
    assert answer(http_event(body)) == FAILURE
    assert order_row(database) == OPEN


def events_of(database: Database) -> list[tuple[object, ...]]:
    rows = database.rows("SELECT from_status, to_status, actor, reason FROM oms_order_event")
    return [tuple(row.values()) for row in rows]


def test_e23_the_trail_is_the_same_whatever_way_the_payment_was_told(database, order_id):
    ALIPAY.notify()
    by_notice = events_of(database)
    database.empty()
    a_sku(database)
    the_order(database)
    ALIPAY.notify(**finished())
    sweep(lambda: True, ScriptedChannel(query=Done(the_trade("TRADE_FINISHED"))))
    assert events_of(database) == by_notice


def test_d7_an_unknown_status_moves_a_cancelled_order_nowhere(database):
    cancel(42, "O1")
    assert ALIPAY.notify(trade_status="TRADE_DISPUTED") == SUCCESS
    assert order_row(database)[:2] == ("CLOSED", "CANCELLED")
    assert database.count("oms_order_payment") == 0
