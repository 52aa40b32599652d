"""Goal: what keeps the relay, the sweep and the queue of hot orders apart is missed when it is
gone.

Method: see guards.py. Meanwhile lets a second session do all its work in the middle of the first.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.messaging import outbox, relay
from lockstep.messaging import store as messages
from lockstep.messaging.contracts import ReleaseStock
from lockstep.messaging.store import Staged
from lockstep.orders import store, turn_store
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Closed, Held, Order
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.threads import Meanwhile

OVERDUE: Final = "UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND"
WAITED: Final = "UPDATE oms_order SET created_at = NOW(3) - INTERVAL 5 MINUTE"


# --- ways to get there ---------------------------------------------------------------------------


def unpaid(database: Database) -> Order:
    a_sku(database)
    return an_order()


def waiting(database: Database) -> Order:
    a_sku(database, hot=True)
    return an_order()


def status(database: Database) -> str:
    return str(database.value("SELECT status FROM oms_order"))


def turn_of(order: Order) -> object:
    return hold(order.id)


# --- the end of an order's time ------------------------------------------------------------------


def expire_too_early(database: Database) -> tuple[bool, str]:
    order = unpaid(database)
    return expire(order.id), status(database)


def expire_a_paid_order(database: Database) -> tuple[bool, str]:
    order = unpaid(database)
    database.execute(OVERDUE)
    accept(a_trade_notice(order))
    return expire(order.id), status(database)


def expire_an_order_with_a_payment_page(database: Database, state: str) -> tuple[bool, str]:
    an_attempt(database, order := unpaid(database), state=state)
    database.execute(OVERDUE)
    return expire(order.id), status(database)


def give_up_too_early(database: Database) -> tuple[bool, str]:
    order = waiting(database)
    return expire(order.id), status(database)


def give_up_a_held_order(database: Database) -> tuple[bool, str]:
    order = waiting(database)
    turn_of(order)
    database.execute(WAITED)
    return expire(order.id), status(database)


def hold_a_closed_order(database: Database) -> tuple[int, str]:
    """As code that had not looked at the order would."""
    order = waiting(database)
    cancel(42, order.order_no)
    held = in_transaction(
        partial(turn_store.mark_held, order_ids=[order.id], expires_at=order.created_at)
    )
    return held, status(database)


# --- who comes in the middle ---------------------------------------------------------------------


def pay_in_the_middle_of_an_expiry(database: Database) -> tuple[bool, Result, str]:
    order = unpaid(database)
    database.execute(OVERDUE)
    other = Meanwhile(database, lambda: accept(a_trade_notice(order)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "lock_order", other.after(store.lock_order))
        expired = expire(order.id)
    return expired, other.outcome(), status(database)


def expire_in_the_middle_of_an_expiry(database: Database) -> tuple[set[bool], int]:
    """What two sweeps said, and how many releases were staged."""
    order = unpaid(database)
    database.execute(OVERDUE)
    other = Meanwhile(database, lambda: expire(order.id))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "expire_order", other.after(store.expire_order))
        expired = expire(order.id)
    return {expired, other.outcome()}, database.count("outbox", queue="release")


def cancel_in_the_middle_of_a_hold(database: Database) -> tuple[object, type, str]:
    """The hold's outcome, the cancel's, and the order's status."""
    order = waiting(database)
    other = Meanwhile(database, lambda: type(cancel(42, order.order_no)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_store, "lock_waiting", other.after(turn_store.lock_waiting))
        try:
            held = turn_of(order)
        except InvariantBroken as broken:
            if str(broken) != "an order changed under its lock":
                raise
            held = "noticed"
    return held, other.outcome(), status(database)


# --- two relays ----------------------------------------------------------------------------------


def relay_in_the_middle_of_a_claim(database: Database) -> tuple[int, int, bool]:
    """What each relay sent of ten messages, and whether the second had to wait for that."""

    def stage_ten(tx: Tx) -> None:
        for n in range(10):
            messages.insert_outbox(tx, f"{n:032}", "release", f"g{n}-1", "{}")

    in_transaction(stage_ten)
    database.execute("UPDATE outbox SET next_at = created_at")
    other = Meanwhile(database, lambda: relay.relay(lambda: True).sent)

    def takes_all(_: str, batch: Sequence[Staged]) -> list[str]:
        return [message.message_id for message in batch]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay, "send_batch", takes_all)
        patch.setattr(messages, "lock_due", other.after(messages.lock_due))
        sent = relay.relay(lambda: True).sent
    return sent, other.outcome(), other.had_to_wait


def mark_twice(database: Database) -> tuple[bool, bool]:
    """Whether the second mark took, and whether the first one's time is kept."""
    command = ReleaseStock(reservation_id="x-1", order_id=1)
    in_transaction(lambda tx: outbox.stage(tx, command))
    message_id = database.value("SELECT message_id FROM outbox")
    in_transaction(partial(messages.mark_sent, message_id=message_id))
    database.execute("UPDATE outbox SET sent_at = '2026-11-30'")
    again = in_transaction(partial(messages.mark_sent, message_id=message_id))
    return again, database.count("outbox", sent_at="2026-11-30") == 1


LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")
LEGAL_EVENTS: Final = constraint("oms_order_event", "FOREIGN KEY fk_event_transition")
BY_PAIRS: Final = "refused by fk_order_transition"
BY_EVENTS: Final = "refused by fk_event_transition"
PENDING: Final = "PENDING_PAYMENT"
NO_OPEN_ATTEMPT: Final = store.EXPIRE_ORDER[store.EXPIRE_ORDER.index("AND NOT EXISTS") :]
LOCK: Final = Clause(store, "LOCK_ORDER", "FOR UPDATE")
IS_UNPAID: Final = Clause(
    store, "EXPIRE_ORDER", "AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
)
LOCK_WAITING: Final = Clause(turn_store, "LOCK_WAITING", "FOR UPDATE OF o")
IS_RESERVING: Final = Clause(turn_store, "MARK_HELD", "AND status = 'RESERVING'")

GUARDS: Final = (
    Guard(
        "EXPIRE_ORDER: its time is over by the database's clock",
        expire_too_early,
        (False, PENDING),
        ((Clause(store, "EXPIRE_ORDER", "AND expires_at <= NOW(3)"), (True, "CLOSED")),),
    ),
    Guard(
        "EXPIRE_ORDER: not paid",
        expire_a_paid_order,
        (False, "PAID"),
        (
            (IS_UNPAID, BY_PAIRS),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, (True, "CLOSED")),
        ),
    ),
    Guard(
        "EXPIRE_ORDER: no attempt is OPEN",
        partial(expire_an_order_with_a_payment_page, state="OPEN"),
        (False, PENDING),
        ((Clause(store, "EXPIRE_ORDER", NO_OPEN_ATTEMPT), (True, "CLOSED")),),
    ),
    Guard(
        "EXPIRE_ORDER: no attempt is CLOSING",
        partial(expire_an_order_with_a_payment_page, state="CLOSING"),
        (False, PENDING),
        ((Clause(store, "EXPIRE_ORDER", "'OPEN', 'CLOSING'", "'OPEN'"), (True, "CLOSED")),),
    ),
    Guard(
        "GIVE_UP_ORDER: it waited for long enough",
        give_up_too_early,
        (False, "RESERVING"),
        (
            (
                Clause(
                    store,
                    "GIVE_UP_ORDER",
                    "AND created_at <= TIMESTAMPADD(SECOND, -%s, NOW(3))",
                    "AND %s",
                ),
                (True, "CLOSED"),
            ),
        ),
    ),
    Guard(
        "GIVE_UP_ORDER: it still waits",
        give_up_a_held_order,
        (False, PENDING),
        ((Clause(store, "GIVE_UP_ORDER", "AND status = 'RESERVING'"), (True, "CLOSED")),),
    ),
    Guard(
        "MARK_HELD: it still waits",
        hold_a_closed_order,
        (False, "CLOSED"),
        (
            (IS_RESERVING, "refused by ck_order_close_reason"),
            (constraint("oms_order", "CHECK ck_order_close_reason"), BY_PAIRS),
            (LEGAL_PAIRS, (True, PENDING)),
        ),
    ),
    Guard(
        "LOCK_ORDER: FOR UPDATE, or a payment overtakes the expiry that trusts its look",
        pay_in_the_middle_of_an_expiry,
        (True, Result.REFUND_PENDING, "CLOSED"),
        (
            (LOCK, (False, Result.APPLIED, "PAID")),
            (IS_UNPAID, BY_PAIRS),
            (LEGAL_PAIRS, (True, Result.APPLIED, "CLOSED")),
        ),
    ),
    Guard(
        "EXPIRE_ORDER: two sweeps close an order once",
        expire_in_the_middle_of_an_expiry,
        ({True, False}, 1),
        ((IS_UNPAID, BY_PAIRS), (LEGAL_PAIRS, BY_EVENTS), (LEGAL_EVENTS, ({True}, 2))),
    ),
    Guard(
        "LOCK_WAITING: FOR UPDATE, or a cancel overtakes the hold; then MARK_HELD's state",
        cancel_in_the_middle_of_a_hold,
        (Held(), Closed, "CLOSED"),
        (
            (LOCK_WAITING, ("noticed", Closed, "CLOSED")),
            (IS_RESERVING, "refused by ck_order_close_reason"),
            (constraint("oms_order", "CHECK ck_order_close_reason"), BY_PAIRS),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, (Held(), Closed, PENDING)),
        ),
    ),
    Guard(
        "LOCK_DUE: SKIP LOCKED, or a relay waits for another",
        relay_in_the_middle_of_a_claim,
        (10, 0, False),
        ((Clause(messages, "LOCK_DUE", "SKIP LOCKED"), (10, 0, True)),),
    ),
    Guard(
        "LOCK_DUE: FOR UPDATE, or two relays send the same",
        relay_in_the_middle_of_a_claim,
        (10, 0, False),
        ((Clause(messages, "LOCK_DUE", "FOR UPDATE SKIP LOCKED"), (10, 10, False)),),
    ),
    Guard(
        "MARK_SENT: not marked before",
        mark_twice,
        (False, True),
        ((Clause(messages, "MARK_SENT", "AND sent_at IS NULL"), (True, False)),),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
