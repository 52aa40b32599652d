"""Stored notices that were not final: decided again from our books, or by what the channel says.

However a payment becomes known, its rows end as if its notices had come in their order.
"""

import json
from decimal import Decimal

import pytest

from lockstep.alipay.answers import Done, NotExecuted, RefundFound, Unknown
from lockstep.payments.model import Result
from lockstep.payments.revisit import Ask, ask, claim_notice, conclude
from lockstep.upkeep.sweep import Swept, sweep
from tests.support.builders import a_sku, deliver_outbox
from tests.support.channel import NOT_EXIST, ScriptedChannel, cancel, nobody, the_trade
from tests.support.database import Database
from tests.support.engine import held
from tests.support.late import an_expired_order, reinstating
from tests.support.notices import (
    an_attempt,
    attempt_state,
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
ALL = Decimal("9.90")
OPEN = ("PENDING_PAYMENT", None, NOTHING, NOTHING)
PAID = ("PENDING_PAYMENT", "PAID", "alipay", "PAID")
REFUNDED = [
    ("PAID", "REFUNDING", "alipay", "REFUNDED_IN_FULL"),
    ("REFUNDING", "REFUNDED", "alipay", "REFUNDED_IN_FULL"),
]
SUCCESS = Done(the_trade())
FINISHED = Done(the_trade("TRADE_FINISHED"))
REFUNDED_WHOLE = Done(the_trade("TRADE_CLOSED"))
NEVER_PAID = Done(the_trade("TRADE_CLOSED", paid_at=None))
WAITS = Done(the_trade("WAIT_BUYER_PAY", paid_at=None))


@pytest.fixture
def order_id(database) -> int:
    """Order O1 of 9.90, one of SKU 1001 held."""
    a_sku(database)
    return the_order(database)


def look(database: Database, channel: ScriptedChannel | None = None) -> Swept:
    """One sweep, at a time when every waiting notice is due."""
    database.execute(
        "UPDATE oms_notice SET next_ask_at = NOW(3) - INTERVAL 1 SECOND "
        "WHERE next_ask_at IS NOT NULL"
    )
    return sweep(lambda: True, channel or nobody)


def waits_minutes(database: Database) -> float | None:
    """For how long the only notice is left alone; None: nobody looks at it again."""
    seconds = database.value(
        "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), next_ask_at) / 1000000 FROM oms_notice"
    )
    return None if seconds is None else round(float(seconds) / 60, 1)


# --- a refund that is told before its payment ----------------------------------------------------


def test_a_refund_told_first_is_a_paid_order_of_which_a_part_went_back_p4(database, order_id):
    """P4: the refund notice alone pays nothing; the channel's word that it was paid does."""
    ALIPAY.accept(**refunded("3.00"))
    assert (order_row(database), waits_minutes(database)) == (OPEN, 0.0)
    channel = ScriptedChannel(query=SUCCESS)
    assert look(database, channel).notices_decided == 1
    assert channel.calls == [("query", "T1")]
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert trail(database, order_id) == [PAID]
    assert notice_rows(database) == [("N-refunded-3.00", "DONE", None)]
    assert waits_minutes(database) is None
    assert staged(database) == ["confirm"]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE reason = 'PAID'")
    assert json.loads(evidence) == {"trade_no": "T1", "told_by": "query"}
    assert ALIPAY.accept() is Result.REPLAYED
    assert look(database).notices_decided == 0


def test_a_full_refund_told_first_ends_refunded(database, order_id):
    ALIPAY.accept(**refunded_in_full())
    look(database, ScriptedChannel(query=REFUNDED_WHOLE))
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert trail(database, order_id) == [PAID, *REFUNDED]
    assert payment_state(database) == ("APPLIED", None)


def test_what_the_channel_says_went_back_counts_though_no_notice_told_it(database, order_id):
    """A part was told; by now it is all."""
    ALIPAY.accept(**refunded("3.00"))
    look(database, ScriptedChannel(query=REFUNDED_WHOLE))
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)


def test_a_refund_of_late_money_told_first_leaves_the_order_closed(database, order_id):
    cancel(42, "O1")
    ALIPAY.accept(**refunded("3.00"))
    look(database, ScriptedChannel(query=SUCCESS))
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert order_row(database) == ("CLOSED", "CANCELLED", NOTHING, NOTHING)


def test_every_notice_that_waited_for_the_payment_is_decided_by_one_answer(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    ALIPAY.accept(**refunded("5.00"))
    ALIPAY.accept(**finished())
    question = claim_notice(database.value("SELECT MIN(id) FROM oms_notice"))
    assert question is not None
    conclude(question, ask(ScriptedChannel(query=FINISHED), question))
    assert order_row(database) == ("PAID", None, ALL, Decimal("5.00"))
    assert {state for _, state, _ in notice_rows(database)} == {"DONE"}


def test_a_refund_notice_whose_payment_came_by_another_way_asks_nobody(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    ALIPAY.accept()
    database.execute(
        "UPDATE oms_notice SET state = 'QUERY_DUE', next_ask_at = NOW(3) WHERE kind = 'REFUND'"
    )
    assert look(database).notices_decided == 1
    assert order_row(database)[3] == Decimal("3.00")


# --- the end of a window -------------------------------------------------------------------------


def test_a_finished_trade_that_nobody_told_of_was_paid_p2(database, order_id):
    """P2: TRADE_FINISHED itself is never a payment, the channel's answer is."""
    ALIPAY.accept(**finished())
    look(database, ScriptedChannel(query=FINISHED))
    assert order_row(database) == ("PAID", None, ALL, NOTHING)
    assert payment_row(database)["finished_at"] is not None
    assert trail(database, order_id) == [PAID]


def test_a_finished_trade_of_a_closed_order_is_to_go_back_and_cannot(database, order_id):
    cancel(42, "O1")
    ALIPAY.accept(**finished())
    look(database, ScriptedChannel(query=FINISHED))
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert payment_row(database)["finished_at"] is not None


def test_late_money_that_the_channel_tells_of_revives_its_order_where_it_may(database, monkeypatch):
    reinstating(monkeypatch)
    an_expired_order(database)
    ALIPAY.accept(**finished())
    look(database, ScriptedChannel(query=FINISHED))
    deliver_outbox(database)
    assert order_row(database) == ("PAID", None, ALL, NOTHING)


def test_the_channels_word_uses_the_page_up(database, order_id):
    an_attempt(database, order_id, "O1")
    ALIPAY.accept(**finished())
    look(database, ScriptedChannel(query=FINISHED))
    assert attempt_state(database, "O1") == "PAID"


# --- a close that contradicts the books ----------------------------------------------------------


def test_a_close_of_a_paid_trade_is_nothing_if_the_channel_says_paid(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**closed_unpaid())
    before = (order_row(database), payment_row(database))
    look(database, ScriptedChannel(query=SUCCESS))
    assert (order_row(database), payment_row(database)) == before
    assert notice_rows(database)[1] == ("N-closed", "DONE", None)


def test_a_close_of_a_paid_trade_is_a_refund_if_the_channel_says_so(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**closed_unpaid())
    look(database, ScriptedChannel(query=REFUNDED_WHOLE))
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)
    assert notice_rows(database)[1][1] == "DONE"


def test_a_close_of_a_paid_trade_that_the_channel_insists_on_waits_for_a_person(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**closed_unpaid())
    before = (order_row(database), payment_row(database))
    assert look(database, ScriptedChannel(query=NEVER_PAID)).notices_decided == 0
    assert (order_row(database), payment_row(database)) == before
    assert notice_rows(database)[1] == ("N-closed", "QUERY_DUE", "CLOSED_THOUGH_PAID")


def test_a_trade_that_the_channel_calls_never_paid_closes_its_order(database, order_id):
    ALIPAY.accept(**finished())
    look(database, ScriptedChannel(query=NEVER_PAID))
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")
    assert notice_rows(database)[0][1] == "QUERY_DUE"


# --- a refund without its sum --------------------------------------------------------------------


def without_sum(**changes: str | None) -> dict[str, str | None]:
    return {"notify_id": "N2", "gmt_refund": "2026-10-25 09:00:00", "out_biz_no": "R1"} | changes


def test_the_sum_of_a_refund_is_asked_by_its_number(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**without_sum())
    channel = ScriptedChannel(query_refund=Done(RefundFound(is_done=True, amount=Decimal("3.00"))))
    look(database, channel)
    assert channel.calls == [("query_refund", "T1 R1")]
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert notice_rows(database)[1] == ("N2", "DONE", None)


def test_a_refund_that_is_known_to_be_done_is_not_counted_twice(database, order_id):
    ALIPAY.accept()
    payment_id = database.value("SELECT id FROM oms_order_payment")
    database.execute("UPDATE oms_order_payment SET refunded_amount = 3.00")
    database.execute("UPDATE oms_order SET refunded_amount = 3.00")
    database.execute(
        "INSERT INTO oms_refund (payment_id, out_request_no, amount, state, requested_by) "
        "VALUES (%s, 'R1', 3.00, 'DONE', 'test')",
        (payment_id,),
    )
    ALIPAY.accept(**without_sum())
    look(
        database,
        ScriptedChannel(query_refund=Done(RefundFound(is_done=True, amount=Decimal("3.00")))),
    )
    assert order_row(database)[3] == Decimal("3.00")
    assert notice_rows(database)[1] == ("N2", "DONE", None)


def test_a_refund_that_is_not_done_yet_is_asked_for_again(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**without_sum())
    look(database, ScriptedChannel(query_refund=Done(RefundFound(is_done=False, amount=None))))
    assert order_row(database)[3] == NOTHING
    assert notice_rows(database)[1] == ("N2", "QUERY_DUE", "REFUND_WITHOUT_AMOUNT")


def test_without_a_number_the_trade_tells_whether_all_went_back(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**without_sum(out_biz_no=None))
    channel = ScriptedChannel(query=[SUCCESS, REFUNDED_WHOLE])
    look(database, channel)
    assert (order_row(database)[0], notice_rows(database)[1][1]) == ("PAID", "QUERY_DUE")
    look(database, channel)
    assert order_row(database) == ("REFUNDED", None, ALL, ALL)


# --- no answer yet -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        NOT_EXIST,
        Unknown("time-out"),
        NotExecuted("40005", is_our_fault=False),
        WAITS,
        Done(the_trade(is_settled=False)),
        Done(the_trade(trade_no="T2")),
        Done(the_trade(out_trade_no="O2")),
    ],
)
def test_what_says_nothing_of_the_trade_changes_nothing(database, order_id, answer):
    ALIPAY.accept(**refunded("3.00"))
    assert look(database, ScriptedChannel(query=answer)).notices_decided == 0
    assert order_row(database) == OPEN
    assert notice_rows(database)[0][1:] == ("QUERY_DUE", "REFUND_OF_UNKNOWN_PAYMENT")
    assert waits_minutes(database) == 1.0


def test_the_channel_is_asked_after_0_1_2_4_to_60_minutes_and_for_a_day(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    waits = [waits_minutes(database)]
    for _ in range(8):
        look(database, ScriptedChannel(query=Unknown("time-out")))
        waits.append(waits_minutes(database))
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    database.execute("UPDATE oms_notice SET created_at = NOW(3) - INTERVAL 86400 SECOND")
    look(database, ScriptedChannel(query=Unknown("time-out")))
    assert waits_minutes(database) is None
    assert notice_rows(database)[0][1] == "QUERY_DUE"
    assert look(database).notices_decided == 0


def test_the_books_are_looked_at_after_1_2_4_to_60_minutes_and_for_a_day(database):
    ALIPAY.accept()
    waits = [waits_minutes(database)]
    for _ in range(7):
        look(database)
        waits.append(waits_minutes(database))
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    database.execute("UPDATE oms_notice SET created_at = NOW(3) - INTERVAL 86400 SECOND")
    look(database)
    assert waits_minutes(database) is None
    assert payment_state(database) == ("UNMATCHED", None)


def test_a_delivery_does_not_shorten_the_waiting(database):
    ALIPAY.accept()
    for _ in range(3):
        look(database)
    assert waits_minutes(database) == 8.0
    assert ALIPAY.accept() is Result.UNMATCHED
    assert waits_minutes(database) == 8.0


# --- money without an order, and conflicts -------------------------------------------------------


def test_money_whose_order_turns_up_pays_it_without_another_delivery_e13(database):
    """E13."""
    ALIPAY.accept()
    a_sku(database)
    order_id = the_order(database)
    assert look(database).notices_decided == 1
    assert order_row(database) == ("PAID", None, ALL, NOTHING)
    assert trail(database, order_id) == [PAID]
    assert notice_rows(database) == [("N1", "DONE", None)]


def test_the_notice_of_money_whose_order_turns_up_is_the_one_that_pays(database):
    """And no repeat of what was told before it."""
    ALIPAY.accept()
    a_sku(database)
    the_order(database)
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3)")
    question = claim_notice(database.value("SELECT id FROM oms_notice"))
    assert question is not None
    assert conclude(question, None) is Result.APPLIED


def test_money_that_only_the_channel_told_of_waits_for_its_order_too(database):
    ALIPAY.accept(**refunded("3.00"))
    look(database, ScriptedChannel(query=SUCCESS))
    assert payment_state(database) == ("UNMATCHED", None)
    assert payment_row(database)["refunded_amount"] == Decimal("3.00")
    assert notice_rows(database) == [("N-refunded-3.00", "UNMATCHED", "NO_SUCH_ORDER")]
    look(database)
    assert notice_rows(database)[0][1] == "UNMATCHED"
    a_sku(database)
    the_order(database)
    assert look(database).notices_decided == 1
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))
    assert notice_rows(database) == [("N-refunded-3.00", "DONE", None)]


def test_a_close_of_an_order_that_turns_up_closes_it(database):
    ALIPAY.accept(**closed_unpaid())
    a_sku(database)
    the_order(database)
    look(database)
    assert order_row(database)[:2] == ("CLOSED", "GATEWAY_CLOSED")


def test_a_conflict_is_looked_at_again_and_stays_one(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(notify_id="N2", total_amount="9.91")
    assert look(database).notices_decided == 0
    assert notice_rows(database)[1] == ("N2", "CONFLICT", "TRADE_BOUND_OTHERWISE")


# --- claims --------------------------------------------------------------------------------------


def test_a_notice_is_claimed_once_and_after_a_crash_again(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    notice_id = database.value("SELECT id FROM oms_notice")
    question = claim_notice(notice_id)
    assert question is not None
    assert (question.ask, question.is_last) == (Ask.TRADE, False)
    assert (waits_minutes(database), claim_notice(notice_id)) == (1.0, None)
    # Whoever claimed it is dead: its lease ends.
    look(database, ScriptedChannel(query=SUCCESS))
    assert order_row(database)[0] == "PAID"
    assert conclude(question, SUCCESS) is None
    assert trail(database, order_id) == [PAID]


def test_an_answer_that_comes_after_the_payments_own_notice_changes_nothing(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    question = claim_notice(database.value("SELECT id FROM oms_notice"))
    assert question is not None
    answer = ask(ScriptedChannel(query=SUCCESS), question)
    assert ALIPAY.accept() is Result.APPLIED
    assert conclude(question, answer) is None
    assert trail(database, order_id) == [PAID]
    assert database.count("oms_order_payment") == 1


def test_an_answer_about_a_notice_that_is_gone_changes_nothing(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    question = claim_notice(database.value("SELECT id FROM oms_notice"))
    assert question is not None
    database.execute("DELETE FROM oms_notice")
    assert conclude(question, SUCCESS) is None
    assert database.count("oms_order_payment") == 0


def test_a_refund_whose_payment_is_gone_waits_for_it_again(database, order_id):
    ALIPAY.accept()
    ALIPAY.accept(**without_sum())
    question = claim_notice(database.value("SELECT id FROM oms_notice WHERE notify_id = 'N2'"))
    assert question is not None
    database.execute("DELETE FROM oms_order_payment")
    found = Done(RefundFound(is_done=True, amount=Decimal("3.00")))
    assert conclude(question, found) is Result.QUERY_DUE
    assert notice_rows(database)[1] == ("N2", "QUERY_DUE", "REFUND_OF_UNKNOWN_PAYMENT")


def test_no_transaction_is_open_and_nothing_locked_while_the_channel_is_asked(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    seen: list[tuple[int, int]] = []
    channel = ScriptedChannel(query=SUCCESS, while_asked=lambda: seen.append(held(database)))
    look(database, channel)
    assert seen == [(0, 0)]


def test_one_notice_that_fails_is_named_and_the_next_is_decided(database, order_id):
    ALIPAY.accept(**refunded("3.00", trade_no="T2"))
    ALIPAY.accept(**refunded("3.00"))
    broken = database.value("SELECT MIN(id) FROM oms_notice")
    swept = look(database, ScriptedChannel(query=[RuntimeError("no"), SUCCESS]))
    assert swept.failed == [f"notice:{broken}: RuntimeError"]
    assert swept.notices_decided == 1
    assert order_row(database)[0] == "PAID"


def test_what_is_not_due_is_left_alone(database, order_id):
    ALIPAY.accept(**refunded("3.00"))
    database.execute("UPDATE oms_notice SET next_ask_at = NOW(3) + INTERVAL 1 MINUTE")
    assert sweep(lambda: True, nobody).notices_decided == 0
    assert database.value("SELECT asks FROM oms_notice") == 0


def test_more_than_a_page_of_notices_is_gone_through_once(database):
    for n in range(101):
        ALIPAY.accept(notify_id=f"N{n}", trade_no=f"T{n}", out_trade_no=f"O{n}")
    assert look(database).failed == []
    assert {row["asks"] for row in database.rows("SELECT asks FROM oms_notice")} == {1}
