"""A refund from its row to the buyer: one number, one amount, once, whatever the channel says."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from lockstep.alipay.answers import Done, NotExecuted, Refused, Trade, TradeStatus, Unknown
from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import store
from lockstep.orders.model import NotCancellable
from lockstep.orders.refund import begin_refund, give_up_refund
from lockstep.payments import refundable_store
from lockstep.payments.ask_refund import Asked, AskRefund, ask_refund
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried
from tests.support.builders import a_sku, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.notices import (
    finished,
    order_row,
    payment_row,
    payment_state,
    refunded,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY
from tests.support.refund_channel import (
    LOSE_THE_ANSWER,
    LOSE_THE_REQUEST,
    SAY_NOTHING,
    Fault,
    RefundChannel,
    refund_rows,
    the_refund,
    time_passes,
)

ALL = Decimal("9.90")


@pytest.fixture
def channel() -> RefundChannel:
    channel = RefundChannel()
    channel.paid()
    return channel


@pytest.fixture
def late(database: Database) -> int:
    """9.90 that came after its order was cancelled; the refund that is owed."""
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    assert ALIPAY.accept() is Result.REFUND_PENDING
    return the_refund(database)


def ledger(database: Database) -> list[tuple[str, Decimal]]:
    rows = database.rows("SELECT kind, amount FROM oms_money_entry WHERE kind = 'REFUND'")
    return [(row["kind"], row["amount"]) for row in rows]


def test_money_that_no_order_takes_is_owed_with_the_payment(database, late):
    [(number, amount, state, code)] = refund_rows(database)
    assert (amount, state, code) == (ALL, "DUE", None)
    assert number.startswith("A")
    assert len(number) == 33
    row = database.one("SELECT requested_by, reason, next_try_at <= NOW(3) AS due FROM oms_refund")
    assert row == {"requested_by": "system:refund_payment", "reason": "LATE_PAYMENT", "due": 1}
    assert staged(database).count("refund") == 1
    group = database.value("SELECT group_key FROM outbox WHERE queue = 'refund'")
    assert group == str(database.value("SELECT id FROM oms_order_payment"))


def test_paid_after_cancel_it_is_refunded_once(database, channel, late):
    """E1, E11."""
    assert channel.try_refund(late) is Tried.DONE
    assert refund_rows(database)[0][1:] == (ALL, "DONE", None)
    assert payment_state(database) == ("REFUNDED", "LATE_PAYMENT")
    assert payment_row(database)["refunded_amount"] == ALL
    assert order_row(database) == ("CLOSED", "CANCELLED", Decimal("0.00"), Decimal("0.00"))
    assert ledger(database) == [("REFUND", -ALL)]
    assert channel.try_refund(late) is Tried.ENDED
    assert ALIPAY.accept() is Result.REPLAYED
    assert len(refund_rows(database)) == 1
    assert channel.calls == [("refund", refund_rows(database)[0][0])]
    assert_at_rest(database)


def test_a_second_payment_goes_back_and_the_first_stays(database, channel):
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    ALIPAY.accept(notify_id="N2", trade_no="T2")
    channel.paid("T2")
    assert channel.try_refund(the_refund(database)) is Tried.DONE
    assert payment_state(database, "T2") == ("REFUNDED", "SECOND_PAYMENT")
    assert order_row(database) == ("PAID", None, ALL, Decimal("0.00"))
    assert_at_rest(database)


@pytest.mark.parametrize("fault", [LOSE_THE_ANSWER, LOSE_THE_REQUEST, SAY_NOTHING])
def test_without_a_clear_answer_the_same_number_is_asked_about_before_it_is_tried_again(
    database, channel, late, fault
):
    """F1, C7, P22, P23."""
    channel.faults.append(fault)
    assert channel.try_refund(late) is Tried.UNKNOWN
    assert payment_state(database)[0] == "REFUNDING"
    assert channel.try_refund(late) is Tried.NOT_DUE
    channel.work_off(database)
    number = refund_rows(database)[0][0]
    assert channel.calls[:2] == [("refund", number), ("query_refund", number)]
    assert {number for _, number in channel.calls} == {number}
    assert channel.executed == {number: 1}
    assert payment_state(database)[0] == "REFUNDED"
    assert ledger(database) == [("REFUND", -ALL)]


def test_a_question_is_asked_ten_seconds_after_the_call_at_least(database, channel, late):
    channel.faults.append(LOSE_THE_ANSWER)
    channel.try_refund(late)
    database.execute("UPDATE oms_refund SET next_try_at = NOW(3)")
    assert channel.try_refund(late) is Tried.DEFERRED
    assert [call for call, _ in channel.calls] == ["refund"]
    seconds = database.value("SELECT TIMESTAMPDIFF(SECOND, called_at, next_try_at) FROM oms_refund")
    assert seconds >= 10


def test_what_a_dead_process_left_calling_is_asked_about_when_its_lease_is_over(
    database, channel, late
):
    def die() -> None:
        raise KeyboardInterrupt

    channel.during = die
    with pytest.raises(KeyboardInterrupt):
        channel.try_refund(late)
    channel.during = lambda: None
    assert refund_rows(database)[0][2] == "CALLING"
    assert channel.try_refund(late) is Tried.NOT_DUE
    time_passes(database)
    assert channel.try_refund(late) is Tried.DUE
    assert [call for call, _ in channel.calls] == ["refund", "query_refund"]
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert sum(channel.executed.values()) == 1


@pytest.mark.parametrize(
    "fault",
    [
        NotExecuted("isp.app-call-limited", is_our_fault=False),
        NotExecuted("isv.invalid-signature", is_our_fault=True),
        Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH"),
    ],
)
def test_what_was_not_done_is_tried_again_with_the_same_number(database, channel, late, fault):
    channel.faults.append(fault)
    assert channel.try_refund(late) is Tried.DUE
    assert refund_rows(database)[0][2:] == ("DUE", fault.code)
    assert payment_state(database)[0] == "REFUNDING"
    assert channel.work_off(database) == [Tried.DONE]
    assert [call for call, _ in channel.calls] == ["refund", "refund"]
    assert refund_rows(database)[0][2:] == ("DONE", None)


def test_a_second_refund_of_a_trade_waits_until_the_first_has_ended(database, channel):
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    for key in ("a", "b"):
        assert isinstance(ask_refund(AskRefund("O1", key, "alice", "x", Decimal("1.00"))), Asked)
    first, second = (row["id"] for row in database.rows("SELECT id FROM oms_refund ORDER BY id"))
    channel.faults.append(LOSE_THE_ANSWER)
    assert channel.try_refund(first) is Tried.UNKNOWN
    time_passes(database)
    assert channel.try_refund(second) is Tried.DEFERRED
    assert database.value("SELECT next_try_at > NOW(3) FROM oms_refund WHERE id = %s", (second,))
    time_passes(database)
    assert channel.try_refund(first) is Tried.DONE
    assert channel.try_refund(second) is Tried.DONE
    assert channel.total() == Decimal("2.00")
    assert_at_rest(database)


def test_two_refunds_of_a_trade_are_asked_for_three_seconds_apart(database, channel):
    """Also where the first is done by then: the channel wants it so."""
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    for key in ("a", "b"):
        ask_refund(AskRefund("O1", key, "alice", "x", Decimal("1.00")))
    first, second = (row["id"] for row in database.rows("SELECT id FROM oms_refund ORDER BY id"))
    assert channel.try_refund(first) is Tried.DONE
    assert channel.try_refund(second) is Tried.DEFERRED
    assert len(channel.calls) == 1
    time_passes(database)
    assert channel.try_refund(second) is Tried.DONE


def test_a_refund_that_is_not_there_has_ended(database, channel):
    assert channel.try_refund(1) is Tried.ENDED
    assert channel.calls == []


def test_an_order_is_locked_though_the_payment_found_it_meanwhile(database, channel, monkeypatch):
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    ask_refund(AskRefund("O1", "a", "alice", "x"))
    look = refundable_store.read_refund_place
    looks: list[Any] = []

    def without_its_order_once(*arguments):
        looks.append(look(*arguments))
        payment_id, order_id = looks[0]
        return payment_id, None if len(looks) == 2 else order_id

    monkeypatch.setattr(refundable_store, "read_refund_place", without_its_order_once)
    assert channel.try_refund(the_refund(database)) is Tried.DONE
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert_at_rest(database)


def test_a_short_balance_is_tried_slowly_but_at_least_every_four_hours(database, channel, late):
    waits = []
    for _ in range(8):
        channel.faults.append(Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH"))
        channel.try_refund(late)
        waits.append(
            database.value("SELECT TIMESTAMPDIFF(SECOND, called_at, next_try_at) FROM oms_refund")
        )
        time_passes(database)
    assert waits == [900, 1800, 3600, 7200, *[14400] * 4]
    assert channel.try_refund(late) is Tried.DONE


FOR_GOOD = [
    "ACQ.TRADE_HAS_FINISHED",
    "ACQ.TRADE_NOT_ALLOW_REFUND",
    "ACQ.REASON_TRADE_BEEN_FREEZEN",
    "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL",
    "ACQ.REASON_TRADE_REFUND_FEE_ERR",
    "ACQ.REFUND_FEE_ERROR",
]


@pytest.mark.parametrize("code", FOR_GOOD)
def test_what_the_channel_will_never_do_waits_for_a_person(database, channel, late, code):
    channel.faults.append(Refused(code))
    assert channel.try_refund(late) is Tried.FAILED
    assert refund_rows(database)[0][2:] == ("FAILED", code)
    assert payment_state(database)[0] == "REFUND_FAILED"
    assert channel.work_off(database) == []
    assert len(channel.calls) == 1
    assert_at_rest(database)


@pytest.mark.parametrize("code", ["ACQ.DISCORDANT_REPEAT_REQUEST", "ACQ.SOMETHING_NEW"])
@pytest.mark.parametrize("was_done", [False, True])
def test_a_refusal_that_may_hide_a_refund_is_looked_into_and_never_tried_under_another_number(
    database, channel, late, code, was_done
):
    number = refund_rows(database)[0][0]
    if was_done:
        channel.console_refund(number, "9.90")
    channel.faults.append(Refused(code))
    assert channel.try_refund(late) is Tried.UNKNOWN
    channel.work_off(database)
    assert channel.calls == [("refund", number), ("query_refund", number)]
    expected = ("DONE", None) if was_done else ("FAILED", code)
    assert refund_rows(database) == [(number, ALL, *expected)]
    assert payment_state(database)[0] == ("REFUNDED" if was_done else "REFUND_FAILED")


@pytest.mark.parametrize("code", ["ACQ.SYSTEM_ERROR", "ACQ.REFUND_CHARGE_ERROR"])
def test_a_passing_fault_is_looked_into_and_tried_again(database, channel, late, code):
    channel.faults.append(Refused(code))
    assert channel.try_refund(late) is Tried.UNKNOWN
    channel.work_off(database)
    assert [call for call, _ in channel.calls] == ["refund", "query_refund", "refund"]
    assert payment_state(database)[0] == "REFUNDED"


@pytest.mark.parametrize("code", ["ACQ.TRADE_NOT_EXIST", "ACQ.TRADE_STATUS_ERROR"])
@pytest.mark.parametrize("trade", [None, TradeStatus.WAIT_BUYER_PAY, TradeStatus.TRADE_CLOSED])
def test_a_trade_that_cannot_be_refunded_is_asked_about_before_a_person_is(
    database, channel, late, code, trade
):
    channel.faults.append(Refused(code))
    paid = channel.trades["T1"]
    channel.trade_faults.append(
        Refused("ACQ.TRADE_NOT_EXIST") if trade is None else Done(_with_status(paid, trade))
    )
    assert channel.try_refund(late) is Tried.UNKNOWN
    assert channel.work_off(database) == [Tried.FAILED]
    assert [call for call, _ in channel.calls] == ["refund", "query"]
    assert refund_rows(database)[0][2:] == ("FAILED", code)
    assert payment_state(database)[0] == "REFUND_FAILED"


def _with_status(trade: Trade, status: TradeStatus) -> Trade:
    """Of a trade that nobody paid."""
    return replace(trade, status=status, paid_at=None)


def test_a_refusal_that_another_claim_has_overtaken_changes_nothing(database, channel):
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    ask_refund(AskRefund("O1", "a", "alice", "x"))
    channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
    channel.during = lambda: database.execute("UPDATE oms_refund SET tries = tries + 1")
    assert channel.try_refund(the_refund(database)) is Tried.OVERTAKEN
    assert refund_rows(database)[0][2:] == ("CALLING", None)
    assert order_row(database)[0] == "REFUNDING"


def test_a_trade_that_is_paid_after_all_is_refunded_after_all(database, channel, late):
    channel.faults.append(Refused("ACQ.TRADE_STATUS_ERROR"))
    channel.trade_faults.append(Unknown("timeout"))
    channel.work_off(database)
    assert [call for call, _ in channel.calls] == ["refund", "query", "query", "refund"]
    assert payment_state(database)[0] == "REFUNDED"


def test_a_refund_found_with_another_amount_waits_for_a_person(database, channel, late):
    """As after a restore: the number was used before, for what was left then."""
    number = refund_rows(database)[0][0]
    channel.faults.append(LOSE_THE_REQUEST)
    channel.try_refund(late)
    channel.console_refund(number, "3.00")
    time_passes(database)
    assert channel.try_refund(late) is Tried.FAILED
    assert refund_rows(database) == [(number, ALL, "FAILED", "REFUND_AMOUNT_DIFFERS")]
    assert payment_state(database)[0] == "REFUND_FAILED"
    assert ledger(database) == []


def test_after_the_refund_window_nobody_is_asked(database, channel, late):
    ALIPAY.accept(**finished())
    assert channel.try_refund(late) is Tried.FAILED
    assert channel.calls == []
    assert refund_rows(database)[0][2:] == ("FAILED", "ACQ.TRADE_HAS_FINISHED")
    assert payment_state(database)[0] == "REFUND_FAILED"


def test_what_the_console_was_quicker_with_is_not_asked_for_again(database, channel, late):
    channel.console_refund("R-3.00", "3.00")
    ALIPAY.accept(**refunded("3.00"))
    assert channel.try_refund(late) is Tried.FAILED
    assert channel.calls == []
    assert refund_rows(database)[0][2:] == ("FAILED", "EXCEEDS_REFUNDABLE")
    assert payment_state(database)[0] == "REFUNDING"  # the rest, under another number
    assert refund_rows(database)[2][1:] == (Decimal("6.90"), "DUE", None)
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert_at_rest(database)


FAULTS: list[Callable[[], Fault]] = [
    lambda: LOSE_THE_ANSWER,
    lambda: LOSE_THE_REQUEST,
    lambda: SAY_NOTHING,
    lambda: Refused("ACQ.SYSTEM_ERROR"),
    lambda: Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH"),
    lambda: NotExecuted("isp.app-call-limited", is_our_fault=False),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
@pytest.mark.parametrize("second", range(len(FAULTS)))
@pytest.mark.parametrize("question", ["answered", "lost"])
def test_two_faults_in_a_row_never_make_two_refunds(
    database, channel, late, first, second, question
):
    channel.faults.extend([FAULTS[first](), FAULTS[second]()])
    if question == "lost":
        channel.query_faults.append(Unknown("timeout"))
    channel.work_off(database)
    [(number, amount, state, code)] = refund_rows(database)
    assert (amount, state, code) == (ALL, "DONE", None)
    assert channel.executed == {number: 1}
    assert payment_state(database)[0] == "REFUNDED"
    assert ledger(database) == [("REFUND", -ALL)]
    assert_at_rest(database)


def test_a_member_cannot_cancel_what_was_refunded_in_part(database):
    """F9."""
    a_sku(database)
    the_order(database)
    ALIPAY.accept()
    ALIPAY.accept(**refunded("3.00"))
    outcome = cancel(42, "O1")
    assert isinstance(outcome, NotCancellable)
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert [row[1:] for row in refund_rows(database)] == [(Decimal("3.00"), "DONE", None)]
    assert ledger(database) == [("REFUND", Decimal("-3.00"))]


# --- the order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", [begin_refund, give_up_refund])
def test_a_refund_that_does_not_fit_the_orders_state_leaves_no_trace(
    database: Database, move: Callable[..., bool]
) -> None:
    """Neither does one begin of what is unpaid, nor is one given up that never began."""
    a_sku(database)
    order_id = the_order(database)

    def try_it(tx: Tx) -> bool:
        order = store.lock_order(tx, order_id)
        assert order is not None
        return move(tx, order, "test", "TEST", {})

    assert not in_transaction(try_it)
    assert order_row(database)[0] == "PENDING_PAYMENT"
    assert trail(database, order_id) == []
