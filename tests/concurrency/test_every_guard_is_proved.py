"""Goal: no guarded UPDATE and no locking read comes into a store without a proof that misses it.

Method: read the statements of the stores. Each condition of an UPDATE beyond the row's own
key, and each lock of a SELECT, must be taken away by a row of some table of guards.
"""

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

from lockstep.inventory import store as inventory
from lockstep.messaging import store as messages
from lockstep.orders import refund_store as order_refunds
from lockstep.orders import reinstate_store as revived
from lockstep.orders import request_store as requests
from lockstep.orders import store as orders
from lockstep.orders import unpaid_store as unpaid
from lockstep.payments import attempt_store as attempts
from lockstep.payments import refund_store as refunds
from lockstep.payments import refundable_store as refundable
from lockstep.payments import reinstate_store as late
from lockstep.payments import revisit_store as revisits
from lockstep.payments import store as payments
from tests.concurrency import (
    test_guards_of_attempts,
    test_guards_of_late_money,
    test_guards_of_orders,
    test_guards_of_payments,
    test_guards_of_refunds,
    test_guards_of_stock,
    test_guards_of_tries,
    test_guards_of_upkeep,
    test_locks_of_orders,
    test_locks_of_payments,
    test_locks_of_refunds,
    test_locks_of_stock,
)
from tests.concurrency.taking_away import Clause

TABLES: Final = (
    test_guards_of_attempts,
    test_guards_of_late_money,
    test_guards_of_orders,
    test_guards_of_payments,
    test_guards_of_refunds,
    test_guards_of_stock,
    test_guards_of_tries,
    test_guards_of_upkeep,
    test_locks_of_orders,
    test_locks_of_payments,
    test_locks_of_refunds,
    test_locks_of_stock,
)
# They say which row it is, not in which state it must be.
KEY: Final = re.compile(r"AND (member_id|idempotency_key|provider) = %s")
CONDITION: Final = re.compile(r"^  (AND .*)$", re.MULTILINE)
LOCK: Final = re.compile(r"^ *(FOR (?:UPDATE|SHARE)[^)\n]*)", re.MULTILINE)

TAKEN_AWAY: Final = [
    away
    for table in TABLES
    for guard in table.GUARDS
    for away, _ in guard.without
    if isinstance(away, Clause)
]


def guards_in(store: ModuleType) -> Iterator[tuple[str, str]]:
    """(statement, condition or lock) of everything in ``store`` that decides a race."""
    for name, sql in vars(store).items():
        if not name.isupper() or not isinstance(sql, str):
            continue
        if sql.lstrip().startswith("UPDATE"):
            for condition in CONDITION.findall(sql):
                if not KEY.fullmatch(condition):
                    yield name, condition
        for lock in LOCK.findall(sql):
            yield name, lock


# Each with how many guards it has at least, so that a search which finds none is noticed.
STORES: Final = (
    (inventory, 8),
    (orders, 12),
    (unpaid, 2),
    (order_refunds, 10),
    (revived, 3),
    (requests, 2),
    (messages, 2),
    (payments, 2),
    (attempts, 11),
    (refunds, 13),
    (refundable, 7),
    (late, 1),
    (revisits, 3),
)


@pytest.mark.parametrize(
    ("store", "at_least"), STORES, ids=lambda one: getattr(one, "__name__", "")
)
def test_every_condition_and_lock_of_a_store_is_taken_away_somewhere(store, at_least):
    guards = list(guards_in(store))
    assert len(guards) >= at_least
    for statement, text in guards:
        assert any(
            away.store is store
            and away.statement == statement
            and (text in away.text or away.text in text)
            for away in TAKEN_AWAY
        ), f"{statement} is never tried without {text!r}"
