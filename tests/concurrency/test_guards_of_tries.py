"""Goal: every guard of a refund's tries is missed when it is gone.

Method: see guards.py. The code looks before each statement does, under the payment's lock; the
proof calls the statement as code that had not looked, or had looked too early, would.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import refund_store as order_refunds
from lockstep.orders.model import OrderStatus
from lockstep.payments import refund_store as refunds
from lockstep.payments import refundable_store as refundable
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, TakenAway, constraint
from tests.support.database import Database
from tests.support.raw_rows import insert_row

LATER: Final = "2099-01-01"


def of_a_refund(
    database: Database,
    *,
    state: str,
    step: Callable[[Tx, int], bool],
    next_try_at: str = "2026-11-01",
) -> tuple[bool, str]:
    """Whether ``step`` did something to a refund in this state that was tried twice; its state."""
    payment_id = insert_row(database, "oms_order_payment", state="REFUNDING")
    refund_id = insert_row(
        database,
        "oms_refund",
        payment_id=payment_id,
        state=state,
        tries=2,
        next_try_at=next_try_at,
    )
    won = in_transaction(lambda tx: step(tx, refund_id))
    return won, str(database.value("SELECT state FROM oms_refund"))


def of_a_payment(
    database: Database, *, state: str, step: Callable[[Tx, int], bool]
) -> tuple[bool, str]:
    payment_id = insert_row(database, "oms_order_payment", state=state)
    won = in_transaction(lambda tx: step(tx, payment_id))
    return won, str(database.value("SELECT state FROM oms_order_payment"))


def of_an_order(
    database: Database, *, status: str, came_from: str, step: Callable[[Tx, int], bool]
) -> tuple[bool, str]:
    order_id = insert_row(
        database, "oms_order", status=status, prev_status=came_from, paid_amount="9.90"
    )
    won = in_transaction(lambda tx: step(tx, order_id))
    return won, str(database.value("SELECT status FROM oms_order"))


def guard(
    statement: str,
    clause: str,
    state: str,
    step: Callable[[Tx, int], bool],
    becomes: str,
    next_try_at: str = "2026-11-01",
) -> Guard:
    """A refund in ``state`` is left alone; without ``clause`` it becomes something else."""
    proof = partial(of_a_refund, state=state, step=step, next_try_at=next_try_at)
    instead = "AND %s IS NOT NULL" if clause == OURS else ""
    without = ((Clause(refunds, statement, clause, instead), (True, becomes)),)
    return Guard(f"{statement}: {clause}", proof, (False, state), without)


OPEN: Final = "AND state IN ('DUE', 'CALLING', 'UNKNOWN')"
IN_FLIGHT: Final = "AND state IN ('CALLING', 'UNKNOWN')"
OURS: Final = "AND tries = %s"
DUE: Final = "AND next_try_at <= NOW(3)"
LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")


def unknown(tx: Tx, refund_id: int, tries: int = 2) -> bool:
    return refunds.mark_unknown(tx, refund_id, tries, None, 10)


def due(tx: Tx, refund_id: int, tries: int = 2) -> bool:
    return refunds.mark_due(tx, refund_id, tries, None, 10)


def failed(tx: Tx, refund_id: int, tries: int = 2) -> bool:
    return refunds.mark_failed(tx, refund_id, tries, "X")


call = partial(refunds.claim_call, lease_seconds=60)
query = partial(refunds.claim_query, lease_seconds=60)


def of_payment(statement: str, clause: str, step: Callable[[Tx, int], bool], to: str) -> Guard:
    """An APPLIED payment stays APPLIED."""
    proof = partial(of_a_payment, state="APPLIED", step=step)
    without = ((Clause(refundable, statement, clause), (True, to)),)
    return Guard(f"{statement}: {clause}", proof, (False, "APPLIED"), without)


def of_order(
    name: str,
    proof: Callable[[Database], object],
    holds: object,
    *without: tuple[TakenAway, object],
) -> Guard:
    return Guard(name, proof, holds, without)


begin_refund_of_an_unpaid_order = partial(
    of_an_order, status="PENDING_PAYMENT", came_from="NONE", step=order_refunds.begin_refund
)
give_up_what_is_refunded = partial(
    of_an_order,
    status="REFUNDED",
    came_from="REFUNDING",
    step=partial(order_refunds.give_up_refund, back_to=OrderStatus.REFUNDING),
)
give_up_to_another_state = partial(
    of_an_order,
    status="REFUNDING",
    came_from="PAID",
    step=partial(order_refunds.give_up_refund, back_to=OrderStatus.SHIPPED),
)

GUARDS: Final = (
    guard(
        "ASK_AGAIN",
        "AND state = 'FAILED'",
        "DONE",
        partial(refunds.ask_again, requested_by="operator:alice"),
        "DUE",
    ),
    guard("CLAIM_CALL", "AND state = 'DUE'", "UNKNOWN", call, "CALLING"),
    guard("CLAIM_CALL", DUE, "DUE", call, "CALLING", LATER),
    guard("CLAIM_QUERY", IN_FLIGHT, "DUE", query, "UNKNOWN"),
    guard("CLAIM_QUERY", DUE, "CALLING", query, "UNKNOWN", LATER),
    Guard(
        "DEFER: what is open",
        partial(of_a_refund, state="FAILED", step=partial(refunds.defer, seconds=10)),
        (False, "FAILED"),
        ((Clause(refunds, "DEFER", OPEN), (True, "FAILED")),),
    ),
    Guard(
        "MARK_DONE: once",
        partial(of_a_refund, state="DONE", step=refunds.mark_done),
        (False, "DONE"),
        (
            (
                Clause(
                    refunds, "MARK_DONE", "AND state IN ('DUE', 'CALLING', 'UNKNOWN', 'FAILED')"
                ),
                (True, "DONE"),
            ),
        ),
    ),
    guard("MARK_UNKNOWN", IN_FLIGHT, "DONE", unknown, "UNKNOWN"),
    guard("MARK_UNKNOWN", OURS, "CALLING", partial(unknown, tries=1), "UNKNOWN"),
    guard("MARK_DUE", IN_FLIGHT, "DONE", due, "DUE"),
    guard("MARK_DUE", OURS, "CALLING", partial(due, tries=1), "DUE"),
    guard("MARK_FAILED", OPEN, "DONE", failed, "FAILED"),
    guard("MARK_FAILED", OURS, "CALLING", partial(failed, tries=1), "FAILED"),
    of_payment(
        "MARK_PAYMENT_REFUNDING",
        "AND state IN ('REFUND_PENDING', 'REFUND_FAILED')",
        refundable.mark_payment_refunding,
        "REFUNDING",
    ),
    of_payment(
        "MARK_PAYMENT_FAILED",
        "AND state = 'REFUNDING'",
        refundable.mark_payment_failed,
        "REFUND_FAILED",
    ),
    of_payment(
        "GIVE_UNMATCHED_BACK",
        "AND state = 'UNMATCHED'",
        refundable.give_unmatched_back,
        "REFUND_PENDING",
    ),
    of_order(
        "BEGIN_REFUND: of a paid order",
        begin_refund_of_an_unpaid_order,
        (False, "PENDING_PAYMENT"),
        (
            Clause(order_refunds, "BEGIN_REFUND", "AND status IN ('PAID', 'SHIPPED', 'FINISHED')"),
            "refused by fk_order_transition",
        ),
        (LEGAL_PAIRS, (True, "REFUNDING")),
    ),
    of_order(
        "GIVE_UP_REFUND: from REFUNDING",
        give_up_what_is_refunded,
        (False, "REFUNDED"),
        (
            Clause(order_refunds, "GIVE_UP_REFUND", "AND status = 'REFUNDING'"),
            "refused by fk_order_transition",
        ),
        (LEGAL_PAIRS, (True, "REFUNDING")),
    ),
    of_order(
        "GIVE_UP_REFUND: to where it came from",
        give_up_to_another_state,
        (False, "REFUNDING"),
        (
            Clause(order_refunds, "GIVE_UP_REFUND", "AND prev_status = %(back_to)s"),
            (True, "SHIPPED"),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
