"""What the channel says of refunds, in any order, with refunds of our own in between.

Totals, states and the ledger come out the same for every order. Refunds of our own are rows with
their own numbers in every order; those of the merchant's console may melt into one, since the
channel tells totals and a later one can be told first.
"""

from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest

from lockstep import fingerprint
from lockstep.alipay.answers import Done, RefundReply, Refused, TradeStatus
from lockstep.db.transaction import in_transaction
from lockstep.payments import refund_store
from lockstep.payments.ask_refund import Asked, AskRefund, RefundTooLarge, ask_refund
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried
from lockstep.payments.revisit import ask as ask_channel
from lockstep.payments.revisit import claim_notice, conclude
from tests.support.builders import a_sku, assert_at_rest
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.notices import (
    notice_rows,
    order_row,
    payment_row,
    payment_state,
    refunded,
    refunded_in_full,
    the_order,
)
from tests.support.reading import SIGNER as ALIPAY
from tests.support.refund_channel import (
    LOSE_THE_ANSWER,
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
def order_id(database: Database) -> int:
    a_sku(database)
    order_id = the_order(database)
    ALIPAY.accept()
    return order_id


def ask(amount: str | None, key: str = "k1") -> str:
    """Have an operator ask for a refund of O1; its number."""
    part = None if amount is None else Decimal(amount)
    outcome = ask_refund(AskRefund("O1", key, "alice", "broken", part))
    assert isinstance(outcome, Asked), outcome
    return outcome.refund.out_request_no


def told(total: Decimal, number: str | None, name: str = "N2") -> Result:
    changes = refunded if total < ALL else refunded_in_full
    return ALIPAY.accept(**changes(str(total), out_biz_no=number, notify_id=name))


def test_what_went_back_without_a_row_is_not_left_to_refund(database, channel, order_id):
    """The version before this one books no rows, and runs on while a deployment is under way."""
    for table in ("oms_order_payment", "oms_order"):
        database.execute(f"UPDATE {table} SET refunded_amount = 3.00")  # noqa: S608
    ask(None)
    assert [row[1:3] for row in refund_rows(database)] == [(Decimal("6.90"), "DUE")]
    channel.console_refund("R1", "3.00")
    assert channel.work_off(database) == [Tried.DONE]
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)


def test_nothing_is_left_where_more_is_asked_for_than_the_console_left(database, channel, order_id):
    ask("5.00")
    told(channel.console_refund("R1", "8.00"), "R1")
    outcome = ask_refund(AskRefund("O1", "k2", "alice", "broken"))
    assert outcome == RefundTooLarge(Decimal("0.00"))
    assert channel.work_off(database) == [Tried.FAILED]
    assert order_row(database) == ("PAID", None, ALL, Decimal("8.00"))
    assert_at_rest(database)


def test_a_notice_completes_the_refund_that_it_names(database, channel, order_id):
    number = ask("3.00")
    channel.faults.append(LOSE_THE_ANSWER)
    assert channel.try_refund(the_refund(database)) is Tried.UNKNOWN
    assert told(Decimal("3.00"), number) is Result.REFUND_RECORDED
    assert refund_rows(database) == [(number, Decimal("3.00"), "DONE", None)]
    assert channel.work_off(database) == []
    assert channel.try_refund(the_refund(database)) is Tried.ENDED
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert_at_rest(database)


def test_an_answer_after_its_notice_changes_nothing(database, channel, order_id):
    """P3, P5: the notice comes before the call returns."""
    number = ask(None)
    channel.during = lambda: None
    move = channel._move

    def move_and_tell(*arguments):
        reply = move(*arguments)
        assert told(channel.total(), number) is Result.REFUND_RECORDED
        return reply

    channel._move = move_and_tell
    assert channel.try_refund(the_refund(database)) is Tried.DONE
    assert refund_rows(database) == [(number, ALL, "DONE", None)]
    assert order_row(database)[0] == "REFUNDED"
    assert database.count("oms_money_entry", kind="REFUND") == 1
    assert_at_rest(database)


def test_a_refund_that_was_given_up_is_done_if_the_channel_says_so(database, channel, order_id):
    number = ask("3.00")
    database.execute("UPDATE oms_refund SET state = 'FAILED', code = 'X', next_try_at = NULL")
    assert told(Decimal("3.00"), number) is Result.REFUND_RECORDED
    assert refund_rows(database) == [(number, Decimal("3.00"), "DONE", None)]
    assert order_row(database)[3] == Decimal("3.00")
    assert_at_rest(database)


def test_a_console_refund_is_a_row_of_its_number(database, channel, order_id):
    assert told(Decimal("3.00"), "R9") is Result.REFUND_RECORDED
    row = database.one("SELECT requested_by, reason FROM oms_refund")
    assert row["requested_by"] == "alipay"
    assert refund_rows(database) == [("R9", Decimal("3.00"), "DONE", None)]
    assert told(Decimal("9.90"), None, "N3") is Result.REFUND_RECORDED
    assert refund_rows(database)[1] == ("X990", Decimal("6.90"), "DONE", None)
    assert order_row(database)[0] == "REFUNDED"
    assert_at_rest(database)


def test_more_than_a_named_refund_that_is_done_gets_a_number_of_its_total(
    database, channel, order_id
):
    number = ask("3.00")
    channel.work_off(database)
    assert told(Decimal("5.00"), number) is Result.REFUND_RECORDED
    assert refund_rows(database)[1] == ("X500", Decimal("2.00"), "DONE", None)
    assert told(Decimal("5.00"), "R9", "N3") is Result.REFUND_RECORDED
    assert len(refund_rows(database)) == 2
    assert_at_rest(database)


def test_while_a_refund_is_in_flight_a_larger_total_is_not_decidable(database, channel, order_id):
    number = ask("3.00")
    channel.faults.append(LOSE_THE_ANSWER)
    channel.try_refund(the_refund(database))
    total = channel.console_refund("R9", "2.00")
    assert told(total, "R9") is Result.QUERY_DUE
    assert notice_rows(database)[1][1:] == ("QUERY_DUE", "REFUND_IN_FLIGHT")
    assert refund_rows(database) == [(number, Decimal("3.00"), "UNKNOWN", None)]
    assert database.value("SELECT next_try_at <= NOW(3) FROM oms_refund") == 1
    assert payment_row(database)["refunded_amount"] == Decimal("0.00")
    channel.work_off(database)
    look_again(database, channel)
    assert notice_rows(database)[1][1:] == ("QUERY_DUE", "REFUND_AMONG_OURS")
    look_again(database, channel)
    assert refund_rows(database) == [
        (number, Decimal("3.00"), "DONE", None),
        ("R9", Decimal("2.00"), "DONE", None),
    ]
    assert notice_rows(database)[1][1] == "DONE"
    assert_at_rest(database)


def test_a_refund_that_would_be_more_than_was_paid_is_a_conflict(database, channel, order_id):
    number = ask("9.00")
    told(Decimal("3.00"), "R9")
    before = refund_rows(database), order_row(database)
    assert told(Decimal("9.90"), number, "N3") is Result.CONFLICT
    assert (refund_rows(database), order_row(database)) == before


# Ours of 3.00, asked for by an operator; then 2.00 and 4.90 in the console: so it happened there.
# What is left is who tells us, and when; each notice comes twice, in words of its own.
CASES = ("try", "ours", "part", "all")


@pytest.mark.parametrize("order", list(permutations(CASES)), ids="-".join)
@pytest.mark.parametrize("how", ["answer lost", "process died"])
def test_reports_come_to_the_same_in_any_order(database, channel, order_id, order, how):
    number = ask("3.00")
    refund_id = the_refund(database)
    if how == "answer lost":
        channel.faults.append(LOSE_THE_ANSWER)
        channel.try_refund(refund_id)
    else:
        in_transaction(lambda tx: refund_store.claim_call(tx, refund_id, 60))
        channel.console_refund(number, "3.00")
    assert channel.console_refund("R2", "2.00") == Decimal("5.00")
    assert channel.console_refund("R3", "4.90") == ALL
    time_passes(database)
    notices = {
        "ours": (Decimal("3.00"), number),
        "part": (Decimal("5.00"), "R2"),
        "all": (ALL, "R3"),
    }

    def tell(name: str) -> None:
        for once in ("first", "second"):
            told(*notices[name], f"N-{name}-{once}")

    for name in order:
        if name == "try":
            channel.try_refund(refund_id)
        else:
            tell(name)
    channel.work_off(database)
    for _ in range(2):  # what could not be decided is decided again, and then asked about
        look_again(database, channel)
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert payment_row(database)["refunded_amount"] == ALL
    assert {row[1] for row in notice_rows(database)} == {"DONE"}
    ours, *others = refund_rows(database)
    assert ours == (number, Decimal("3.00"), "DONE", None)
    assert {row[2] for row in others} == {"DONE"}
    assert sum(row[1] for row in others) == Decimal("6.90")
    if order.index("ours") < order.index("part") < order.index("all"):
        assert [row[:2] for row in others] == [("R2", Decimal("2.00")), ("R3", Decimal("4.90"))]
    assert channel.executed[number] == 1
    assert_at_rest(database)


# 2.00 in the console, then ours of 3.00, then 1.00 in the console.
@pytest.mark.parametrize("order", list(permutations(("try", "R2", "ours", "R3"))), ids="-".join)
def test_refunds_of_the_console_around_ours_come_to_the_same(database, channel, order_id, order):
    channel.console_refund("R2", "2.00")
    number = ask("3.00")
    channel.faults.append(LOSE_THE_ANSWER)
    channel.try_refund(the_refund(database))
    channel.console_refund("R3", "1.00")
    time_passes(database)
    notices = {"R2": ("2.00", "R2"), "ours": ("5.00", number), "R3": ("6.00", "R3")}
    for name in order:
        if name == "try":
            channel.try_refund(the_first(database))
        else:
            told(Decimal(notices[name][0]), notices[name][1], f"N-{name}")
        look_again(database, channel)
    look_again(database, channel)
    assert {row[1] for row in notice_rows(database)} == {"DONE"}
    assert refund_rows(database)[0] == (number, Decimal("3.00"), "DONE", None)
    assert_gone_back(database, "6.00")


def test_what_a_later_total_brought_with_it_is_not_counted_again(database, channel, order_id):
    number = ask("3.00")
    database.execute("UPDATE oms_refund SET state = 'FAILED', code = 'X', next_try_at = NULL")
    assert told(Decimal("5.00"), "R2") is Result.REFUND_RECORDED  # ours of 3.00 in it
    assert told(Decimal("3.00"), number, "N3") is Result.REFUND_RECORDED
    assert payment_row(database)["refunded_amount"] == Decimal("5.00")
    assert [row[2] for row in refund_rows(database)] == ["FAILED", "DONE"]
    assert_at_rest(database)


def the_first(database: Database) -> int:
    return int(database.value("SELECT MIN(id) FROM oms_refund"))


def test_late_money_that_the_console_gave_back_first_is_not_given_back_again(database, channel):
    a_sku(database)
    the_order(database)
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'CLOSED', close_reason = 'EXPIRED'"
    )
    ALIPAY.accept()
    told(channel.console_refund("R9", "9.90"), "R9")
    assert payment_state(database)[0] == "REFUNDED"
    time_passes(database)
    assert channel.try_refund(the_first(database)) is Tried.FAILED
    assert channel.calls == []
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.total() == ALL


def test_one_that_is_being_called_is_not_hurried(database, channel, order_id):
    ask("3.00")
    refund_id = the_refund(database)
    in_transaction(lambda tx: refund_store.claim_call(tx, refund_id, 60))
    assert told(Decimal("2.00"), "R9") is Result.QUERY_DUE
    assert database.value("SELECT next_try_at > NOW(3) FROM oms_refund") == 1


# --- what the console did, and no notice told ----------------------------------------------------


def refunds_in_ledger(database: Database) -> Decimal:
    value = database.value("SELECT SUM(amount) FROM oms_money_entry WHERE kind = 'REFUND'")
    return -Decimal(value)


def assert_gone_back(database: Database, total: str) -> None:
    """Payment, ledger and order agree."""
    known = payment_row(database)["refunded_amount"], refunds_in_ledger(database)
    assert known == (Decimal(total), Decimal(total))
    assert order_row(database)[3] == Decimal(total)
    assert_at_rest(database)


def look_again(database: Database, channel: RefundChannel) -> None:
    """Decide every notice again that waits, with what the channel says."""
    database.execute(
        "UPDATE oms_notice SET next_ask_at = NOW(3) - INTERVAL 1 SECOND "
        "WHERE next_ask_at IS NOT NULL"
    )
    for row in database.rows("SELECT id FROM oms_notice WHERE state <> 'DONE' ORDER BY id"):
        question = claim_notice(row["id"])
        assert question is not None
        conclude(question, ask_channel(channel.connect, question))


def test_the_total_of_our_own_answer_books_what_the_console_did_untold(database, channel, order_id):
    channel.console_refund("R9", "4.00")
    number = ask("3.00")
    assert channel.work_off(database) == [Tried.DONE]
    assert refund_rows(database) == [
        (number, Decimal("3.00"), "DONE", None),
        ("X700", Decimal("4.00"), "DONE", None),
    ]
    assert_gone_back(database, "7.00")
    assert told(Decimal("4.00"), "R9") is Result.REFUND_RECORDED
    assert told(Decimal("7.00"), number, "N3") is Result.REFUND_RECORDED
    assert_gone_back(database, "7.00")


def test_our_answer_that_makes_it_all_ends_the_order(database, channel, order_id):
    channel.console_refund("R9", "6.90")
    ask("3.00")
    assert channel.work_off(database) == [Tried.DONE]
    assert order_row(database)[0] == "REFUNDED"
    assert_gone_back(database, "9.90")


def test_a_total_of_more_than_was_paid_books_our_refund_alone(database, channel, order_id):
    ask("3.00")
    channel.faults.append(Done(RefundReply(True, Decimal("9.91"))))
    assert channel.try_refund(the_refund(database)) is Tried.DONE
    assert_gone_back(database, "3.00")
    assert len(refund_rows(database)) == 1


def ours_done_by_a_question(database: Database, channel: RefundChannel, amount: str) -> str:
    number = ask(amount)
    channel.faults.append(LOSE_THE_ANSWER)
    assert channel.work_off(database) == [Tried.UNKNOWN, Tried.DONE]
    return number


@pytest.mark.parametrize("ours", ["3.00", "5.00"])
def test_a_console_refund_before_ours_is_asked_about(database, channel, order_id, ours):
    """Its total alone might as well be ours and a smaller one, or ours alone."""
    total = channel.console_refund("R9", "4.00")
    number = ours_done_by_a_question(database, channel, ours)
    assert told(total, "R9") is Result.QUERY_DUE
    assert notice_rows(database)[1][1:] == ("QUERY_DUE", "REFUND_AMONG_OURS")
    assert payment_row(database)["refunded_amount"] == Decimal(ours)
    look_again(database, channel)
    assert refund_rows(database) == [
        (number, Decimal(ours), "DONE", None),
        ("R9", Decimal("4.00"), "DONE", None),
    ]
    assert notice_rows(database)[1][1] == "DONE"
    assert told(total, "R9", "N3") is Result.REFUND_RECORDED
    assert_gone_back(database, str(channel.total()))


def test_a_console_refund_after_ours_is_asked_about_too(database, channel, order_id):
    ours_done_by_a_question(database, channel, "3.00")
    channel.console_refund("R8", "1.00")  # its notice is lost, or late
    assert told(channel.console_refund("R9", "4.00"), "R9") is Result.QUERY_DUE
    look_again(database, channel)
    assert [row[:2] for row in refund_rows(database)[1:]] == [
        ("R9", Decimal("4.00")),
        ("X800", Decimal("1.00")),
    ]
    assert told(Decimal("4.00"), "R8", "N3") is Result.REFUND_RECORDED
    assert_gone_back(database, "8.00")


def test_a_named_refund_that_the_channel_does_not_find_is_asked_about_again(
    database, channel, order_id
):
    ours_done_by_a_question(database, channel, "3.00")
    assert told(Decimal("4.00"), "R9") is Result.QUERY_DUE
    look_again(database, channel)
    assert notice_rows(database)[1][1:] == ("QUERY_DUE", "REFUND_AMONG_OURS")
    assert database.value("SELECT next_ask_at > NOW(3) FROM oms_notice WHERE notify_id = 'N2'") == 1
    assert_gone_back(database, "3.00")


def test_a_total_told_with_our_own_refund_places_it(database, channel, order_id):
    number = ours_done_by_a_question(database, channel, "3.00")
    assert told(Decimal("3.00"), number) is Result.REFUND_RECORDED
    assert told(channel.console_refund("R9", "4.00"), "R9", "N3") is Result.REFUND_RECORDED
    assert refund_rows(database)[1][:2] == ("R9", Decimal("4.00"))
    assert_gone_back(database, "7.00")


def test_a_total_without_a_number_has_the_rest_of_it_in_a_row_of_its_own(
    database, channel, order_id
):
    """There is no number that the channel could be asked about."""
    number = ours_done_by_a_question(database, channel, "3.00")
    assert told(channel.console_refund("R9", "2.00"), None) is Result.REFUND_RECORDED
    assert [row[:2] for row in refund_rows(database)] == [
        (number, Decimal("3.00")),
        ("X500", Decimal("2.00")),
    ]
    assert_gone_back(database, "5.00")


def test_a_total_of_all_that_was_paid_asks_nobody(database, channel, order_id):
    """Whatever the refund that it names is, the rest is what is left."""
    ours_done_by_a_question(database, channel, "3.00")
    assert told(channel.console_refund("R9", "6.90"), "R9") is Result.REFUND_RECORDED
    assert refund_rows(database)[1][:2] == ("R9", Decimal("6.90"))
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert_at_rest(database)


def all_back_in_the_console(channel: RefundChannel) -> None:
    """Nobody was told of it; to refund such a trade is refused because of its state."""
    channel.console_refund("R9", "9.90")
    channel.trades["T1"] = replace(channel.trades["T1"], status=TradeStatus.TRADE_CLOSED)
    channel.faults.append(Refused("ACQ.TRADE_STATUS_ERROR"))


@pytest.mark.parametrize("amount", [None, "3.00"])
def test_a_trade_that_is_closed_though_paid_went_back_in_whole(database, channel, order_id, amount):
    number = ask(amount)
    all_back_in_the_console(channel)
    assert channel.work_off(database) == [Tried.UNKNOWN, Tried.FAILED]
    assert order_row(database)[0] == "REFUNDED"
    assert refund_rows(database) == [
        (number, ALL if amount is None else Decimal(amount), "FAILED", "ACQ.TRADE_STATUS_ERROR"),
        ("X990", ALL, "DONE", None),
    ]
    assert told(ALL, "R9") is Result.REFUND_RECORDED
    assert_gone_back(database, "9.90")


def test_a_total_with_a_refund_of_ours_in_flight_is_not_counted_with_a_refusal(
    database, channel, order_id
):
    """Its end may show that it is in that total; until then nothing but itself is counted."""
    ask("5.00", "k1")
    ask(None, "k2")
    first, second = (row["id"] for row in database.rows("SELECT id FROM oms_refund ORDER BY id"))
    all_back_in_the_console(channel)
    assert channel.try_refund(second) is Tried.UNKNOWN
    time_passes(database)
    database.execute("UPDATE oms_refund SET state = 'UNKNOWN' WHERE id = %s", (first,))
    assert channel.try_refund(second) is Tried.FAILED
    assert [row[2] for row in refund_rows(database)] == ["UNKNOWN", "FAILED"]
    assert order_row(database) == ("PAID", None, ALL, Decimal("0.00"))


def test_a_trade_that_is_closed_after_a_part_of_ours_books_the_rest(database, channel, order_id):
    ask("3.00")
    channel.work_off(database)
    ask("2.00", "k2")
    channel.console_refund("R9", "6.90")
    channel.trades["T1"] = replace(channel.trades["T1"], status=TradeStatus.TRADE_CLOSED)
    channel.faults.append(Refused("ACQ.TRADE_STATUS_ERROR"))
    assert channel.work_off(database) == [Tried.UNKNOWN, Tried.FAILED]
    assert refund_rows(database)[2] == ("X990", Decimal("6.90"), "DONE", None)
    assert order_row(database)[0] == "REFUNDED"
    assert_gone_back(database, "9.90")


def test_late_money_of_a_trade_that_is_closed_though_paid_is_refunded(database, channel):
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    ALIPAY.accept()
    all_back_in_the_console(channel)
    assert channel.work_off(database) == [Tried.UNKNOWN, Tried.FAILED]
    assert payment_state(database)[0] == "REFUNDED"
    assert payment_row(database)["refunded_amount"] == refunds_in_ledger(database) == ALL
    assert order_row(database)[0] == "CLOSED"
    assert_at_rest(database)


def test_automatic_refunds_go_on_with_what_the_console_left(database, channel):
    """It was told while ours waited for the merchant's balance."""
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    ALIPAY.accept()
    channel.faults.append(Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH"))
    assert channel.try_refund(the_refund(database)) is Tried.DUE
    told(channel.console_refund("R9", "3.00"), "R9")
    assert channel.work_off(database) == [Tried.FAILED, Tried.DONE]
    assert_goes_on(database, channel)
    assert [row[0] for row in refund_rows(database)][1:] == [
        "R9",
        fingerprint.of_automatic_refund("alipay", "T1", 1),
    ]


def test_automatic_refunds_of_money_that_was_told_after_its_refund_go_on(database, channel):
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    assert told(channel.console_refund("R9", "3.00"), "R9") is Result.QUERY_DUE
    ALIPAY.accept()
    channel.work_off(database)
    assert_goes_on(database, channel)


def assert_goes_on(database: Database, channel: RefundChannel) -> None:
    """3.00 went back in the console; the rest of late money by itself, and nobody is asked."""
    assert [(row[1], row[2], row[3]) for row in refund_rows(database)] == [
        (ALL, "FAILED", "EXCEEDS_REFUNDABLE"),
        (Decimal("3.00"), "DONE", None),
        (Decimal("6.90"), "DONE", None),
    ]
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.total() == refunds_in_ledger(database) == ALL
    assert database.count("outbox", queue="refund") >= 2
    assert_at_rest(database)


def test_the_console_may_shrink_an_automatic_refund_twice(database, channel):
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    ALIPAY.accept()
    told(channel.console_refund("R8", "3.00"), "R8")
    time_passes(database)
    assert channel.try_refund(the_first(database)) is Tried.FAILED
    told(channel.console_refund("R9", "2.00"), "R9", "N3")
    assert channel.work_off(database) == [Tried.FAILED, Tried.DONE]
    assert [row[1] for row in refund_rows(database) if row[2] == "DONE"] == [
        Decimal("3.00"),
        Decimal("2.00"),
        Decimal("4.90"),
    ]
    assert payment_state(database)[0] == "REFUNDED"
    assert channel.total() == refunds_in_ledger(database) == ALL
