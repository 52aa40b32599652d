"""Goal: every guard of what is asked about attempts is missed when it is gone.

Method: see guards.py. Where the code looks before the statement does, the proof calls the statement
as code that had not looked would.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import store as orders
from lockstep.orders import unpaid_store
from lockstep.orders.model import Order
from lockstep.payments import attempt_store
from lockstep.payments.accept import accept
from lockstep.payments.ask import Concluded, claim, conclude
from lockstep.payments.conversation import Question, Unpaid
from lockstep.payments.model import Started
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order
from tests.support.channel import ScriptedChannel, cancel, start
from tests.support.database import Database
from tests.support.threads import Meanwhile

DUE: Final = "UPDATE oms_payment_attempt SET next_ask_at = NOW(3)"
LATER: Final = "UPDATE oms_payment_attempt SET next_ask_at = '2099-01-01'"


def an_attempt_in(database: Database, state: str) -> tuple[Order, int]:
    a_sku(database)
    order = an_order()
    an_attempt(database, order, state=state)
    return order, database.value("SELECT id FROM oms_payment_attempt")


def change(
    database: Database, statement: str, *, state: str, **more: int
) -> tuple[bool, str, int, bool]:
    """What ``statement`` does to an attempt in ``state`` whose turn has come: whether it took, the
    state after it, how often it was asked, and whether it is still due or owed."""
    _, attempt_id = an_attempt_in(database, state)
    database.execute(DUE)
    changed: Callable[..., bool] = getattr(attempt_store, statement)
    took = in_transaction(partial(changed, attempt_id=attempt_id, **more))
    row = database.one("SELECT state, asks, next_ask_at <= NOW(3) AS due FROM oms_payment_attempt")
    return took, row["state"], row["asks"], bool(row["due"])


def ask_twice_at_once(database: Database) -> tuple[type, type]:
    """What two sweeps that both saw the attempt may ask."""
    order, attempt_id = an_attempt_in(database, "OPEN")
    database.execute(DUE)
    other = Meanwhile(database, lambda: type(claim(attempt_id, order.id, "two")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt_store, "lease_attempt", other.after(attempt_store.lease_attempt))
        one = type(claim(attempt_id, order.id, "one"))
    return one, other.outcome()


def start_twice_at_once(database: Database) -> list[tuple[bool, str]]:
    """Of both starts, whether it repeats the other's, and its number's ending."""
    a_sku(database)
    order = an_order()

    def begin() -> tuple[bool, str]:
        outcome = start(order.order_no)
        assert isinstance(outcome, Started)
        return outcome.repeated, outcome.attempt.out_trade_no.removeprefix(order.order_no)

    other = Meanwhile(database, begin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt_store, "read_attempts", other.after(attempt_store.read_attempts))
        one = begin()
    return [one, other.outcome()]


class Died(BaseException):
    """The process is gone."""


def poll_that_ends_while_a_cancel_asks(database: Database) -> tuple[str, bool]:
    """The poll found the page unpaid, the cancel then died: the attempt's state, and whether it is
    asked about again within the minute."""
    order, attempt_id = an_attempt_in(database, "OPEN")
    polled = Question(attempt_id, order.id, order.order_no, 4, False, True)

    def end_of_the_poll_and_of_the_cancel() -> None:
        conclude(polled, Unpaid(), "poll")
        raise Died

    channel = ScriptedChannel(while_asked=end_of_the_poll_and_of_the_cancel)
    with pytest.raises(Died):
        cancel(42, order.order_no, channel)
    row = database.one(
        "SELECT state, next_ask_at < NOW(3) + INTERVAL 60 SECOND AS soon FROM oms_payment_attempt"
    )
    return row["state"], bool(row["soon"])


def put_off_what_is_over(database: Database, statement: str, **more: int) -> tuple[bool, bool]:
    """Whether it took, and whether something is owed after it."""
    _, attempt_id = an_attempt_in(database, "CLOSED")
    changed: Callable[..., bool] = getattr(attempt_store, statement)
    took = in_transaction(partial(changed, attempt_id=attempt_id, **more))
    return took, database.value("SELECT next_ask_at FROM oms_payment_attempt") is not None


def wait_for_the_channel(database: Database, status: str) -> tuple[bool, str]:
    a_sku(database)
    order = an_order()
    if status == "PAID":
        accept(a_trade_notice(order))
    elif status == "CLOSED":
        cancel(42, order.order_no)
    took = in_transaction(partial(unpaid_store.mark_processing, order_id=order.id))
    return took, database.value("SELECT status FROM oms_order")


def lease_of_another(database: Database) -> tuple[bool, int]:
    """Whether an attempt that somebody asks about is leased again, and how often it was asked."""
    _, attempt_id = an_attempt_in(database, "OPEN")
    database.execute(LATER)

    def lease(tx: Tx) -> bool:
        return attempt_store.lease_attempt(tx, attempt_id)

    return in_transaction(lease), database.value("SELECT asks FROM oms_payment_attempt")


def of(statement: str, text: str, instead: str = "") -> Clause:
    return Clause(attempt_store, statement, text, instead)


LIVE: Final = "AND state IN ('OPEN', 'CLOSING')"
BY_PAIRS: Final = "refused by fk_order_transition"
BY_NUMBER: Final = "refused by uk_attempt_out_trade_no"
LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")
IS_PENDING: Final = Clause(unpaid_store, "MARK_PROCESSING", "AND status = 'PENDING_PAYMENT'")

GUARDS: Final = (
    Guard(
        "LOCK_OWN_ORDER: FOR UPDATE, or two starts open two pages; then the number's key",
        start_twice_at_once,
        [(False, ""), (True, "")],
        (
            (Clause(orders, "LOCK_OWN_ORDER", "FOR UPDATE"), BY_NUMBER),
            (
                constraint("oms_payment_attempt", "KEY uk_attempt_out_trade_no"),
                [(False, ""), (False, "")],
            ),
        ),
    ),
    Guard(
        "BEGIN_CLOSING: OPEN",
        partial(change, statement="begin_closing", state="PAID"),
        (False, "PAID", 0, True),
        ((of("BEGIN_CLOSING", "AND state = 'OPEN'"), (True, "CLOSING", 0, True)),),
    ),
    Guard(
        "ASK_NOW: not over",
        partial(put_off_what_is_over, statement="ask_now"),
        (False, False),
        ((of("ASK_NOW", LIVE), (True, True)),),
    ),
    Guard(
        "LEASE_ATTEMPT: not PAID",
        partial(change, statement="lease_attempt", state="PAID"),
        (False, "PAID", 0, True),
        (
            (
                of("LEASE_ATTEMPT", "AND state IN ('OPEN', 'CLOSING', 'CLOSED')"),
                (True, "PAID", 1, False),
            ),
        ),
    ),
    Guard(
        "LEASE_ATTEMPT: its turn has come",
        lease_of_another,
        (False, 0),
        ((of("LEASE_ATTEMPT", "AND next_ask_at <= NOW(3)"), (True, 1)),),
    ),
    Guard(
        "LEASE_ATTEMPT: one asks, however many saw it",
        ask_twice_at_once,
        (Question, Concluded),
        ((of("LEASE_ATTEMPT", "AND next_ask_at <= NOW(3)"), (Question, Question)),),
    ),
    Guard(
        "CLOSE_ATTEMPT: not PAID",
        partial(change, statement="close_attempt", state="PAID"),
        (False, "PAID", 0, True),
        ((of("CLOSE_ATTEMPT", LIVE), (True, "CLOSED", 0, False)),),
    ),
    Guard(
        "POSTPONE_POLL: OPEN",
        partial(change, statement="postpone_poll", state="CLOSING", seconds=900),
        (False, "CLOSING", 0, True),
        ((of("POSTPONE_POLL", "AND state = 'OPEN'"), (True, "CLOSING", 0, False)),),
    ),
    Guard(
        "POSTPONE_POLL: OPEN, or a poll puts off what a cancel is asking about",
        poll_that_ends_while_a_cancel_asks,
        ("CLOSING", True),
        ((of("POSTPONE_POLL", "AND state = 'OPEN'"), ("CLOSING", False)),),
    ),
    Guard(
        "POSTPONE_CLOSE: CLOSING or CLOSED",
        partial(change, statement="postpone_close", state="PAID", seconds=60),
        (False, "PAID", 0, True),
        (
            (
                of("POSTPONE_CLOSE", "AND state IN ('CLOSING', 'CLOSED')"),
                (True, "PAID", 0, False),
            ),
        ),
    ),
    Guard(
        "POSTPONE_CLOSE: something is owed",
        partial(put_off_what_is_over, statement="postpone_close", seconds=60),
        (False, False),
        ((of("POSTPONE_CLOSE", "AND next_ask_at IS NOT NULL"), (True, True)),),
    ),
    Guard(
        "ASK_AT_THE_END: CLOSED",
        partial(change, statement="ask_at_the_end", state="PAID"),
        (False, "PAID", 0, True),
        ((of("ASK_AT_THE_END", "AND state = 'CLOSED'"), (True, "PAID", 0, False)),),
    ),
    Guard(
        "FORGET_ATTEMPT: over",
        partial(change, statement="forget_attempt", state="OPEN"),
        (False, "OPEN", 0, True),
        ((of("FORGET_ATTEMPT", "AND state IN ('CLOSED', 'PAID')"), (True, "OPEN", 0, False)),),
    ),
    Guard(
        "MARK_PROCESSING: not paid",
        partial(wait_for_the_channel, status="PAID"),
        (False, "PAID"),
        ((IS_PENDING, BY_PAIRS), (LEGAL_PAIRS, (True, "PAYMENT_PROCESSING"))),
    ),
    Guard(
        "MARK_PROCESSING: not closed",
        partial(wait_for_the_channel, status="CLOSED"),
        (False, "CLOSED"),
        (
            (IS_PENDING, "refused by ck_order_close_reason"),
            (constraint("oms_order", "CHECK ck_order_close_reason"), BY_PAIRS),
            (LEGAL_PAIRS, (True, "PAYMENT_PROCESSING")),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
