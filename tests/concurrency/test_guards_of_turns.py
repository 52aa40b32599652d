"""Goal: every guard and lock of the statements that decide a turn is missed when it is gone.

Method: see guards.py. A second session does its whole work right after the statement that locks.
"""

from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from lockstep import fingerprint
from lockstep.db.transaction import in_transaction
from lockstep.inventory import release as release_module
from lockstep.inventory.model import Refusal, Refused, Released
from lockstep.inventory.release import release
from lockstep.orders import turn, turn_store
from lockstep.orders.hold import hold
from lockstep.orders.model import Held, NotWaiting, Order
from lockstep.orders.turn import TurnTaken
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, an_order
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.threads import Meanwhile

HOT: Final = 2001


def waiting(database: Database) -> Order:
    if not database.count("ims_sku_stock", sku_id=HOT):
        a_sku(database, HOT, hot=True)
    return an_order({HOT: 1})


def turn_of(order: Order) -> object:
    try:
        return hold(order.id)
    except TurnTaken:
        return "taken"


def decide_while_another_does(database: Database) -> tuple[object, object, bool]:
    """What the first and the second came to, and whether the second stood behind a lock."""
    first, second = waiting(database), waiting(database)
    database.execute("INSERT INTO ims_hot_turn (sku_id) VALUES (%s)", (HOT,))
    other = Meanwhile(database, lambda: turn_of(second))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn, "PATIENCE_SECONDS", 0)
        patch.setattr(turn_store, "lock_turn", other.after(turn_store.lock_turn))
        outcome = turn_of(first)
    return outcome, other.outcome(), other.had_to_wait


def hold_what_is_just_given_back(database: Database) -> tuple[object, object]:
    """A hold is there that the order does not know of, and its release has not committed."""
    order = waiting(database)
    database.execute(
        "INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)"
        " VALUES (%s, %s, 1, %s, 'RESERVED', '2030-01-01')",
        (order.reservation_id, order.id, fingerprint.of_reservation(order.id, {HOT: 1})),
    )
    other = Meanwhile(database, lambda: turn_of(order))
    with pytest.MonkeyPatch.context() as patch:
        end = release_module._RETURN
        patch.setattr(release_module, "_RETURN", replace(end, mark=other.after(end.mark)))
        released = release(str(order.reservation_id), order.id)
    return released, other.outcome()


def hold_a_cancelled_order(database: Database) -> object:
    order = waiting(database)
    cancel(42, order.order_no)
    return turn_of(order)


def sell_out_a_cancelled_order(database: Database) -> tuple[int, str]:
    """As code that had not looked at the order would."""
    order = waiting(database)
    cancel(42, order.order_no)
    changed = in_transaction(partial(turn_store.mark_sold_out, order_ids=[order.id]))
    return changed, database.value("SELECT close_reason FROM oms_order")


def next_in_line(database: Database) -> list[bool]:
    """Which of four orders is said to wait: one that was looked at already, one that is decided,
    one of another turn, and one that does wait."""
    a_sku(database, HOT - 1, hot=True)
    a_sku(database, HOT, hot=True)
    looked_at, done, other, waits = (an_order({sku: 1}) for sku in (HOT, HOT, HOT - 1, HOT))
    hold(done.id)
    found = in_transaction(lambda tx: turn_store.read_waiting_ids(tx, HOT, looked_at.id, 10))
    return [order.id in found for order in (looked_at, done, other, waits)]


def whoever_waits(database: Database) -> list[bool]:
    """Of an order in line, one that is decided, one whose late money waits, and one whose money was
    taken up."""
    orders = [waiting(database) for _ in range(4)]
    for order in orders[1:]:
        hold(order.id)
    for order, state in ((orders[2], "REINSTATE_PENDING"), (orders[3], "APPLIED")):
        database.execute(
            "INSERT INTO oms_order_payment "
            "(provider, trade_no, out_trade_no, order_id, amount, state) "
            "VALUES ('alipay', %s, %s, %s, 9.90, %s)",
            (f"T{order.id}", order.order_no, order.id, state),
        )
    ids = [order.id for order in orders]
    places = in_transaction(partial(turn_store.read_places, order_ids=ids))
    waits = {place.order_id: place.waits for place in places}
    return [waits[order_id] for order_id in ids]


LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")
replacing: Final = partial(Clause, turn_store)

GUARDS: Final = (
    Guard(
        "LOCK_TURN: FOR UPDATE, and never waited for",
        decide_while_another_does,
        (Held(), "taken", False),
        ((replacing("LOCK_TURN", "FOR UPDATE NOWAIT"), (Held(), Held(), False)),),
    ),
    Guard(
        "LOCK_TURN: NOWAIT",
        decide_while_another_does,
        (Held(), "taken", False),
        ((replacing("LOCK_TURN", "NOWAIT"), (Held(), Held(), True)),),
    ),
    Guard(
        "LOCK_WAITING: FOR SHARE, or a hold that is gone is taken for one that is there",
        hold_what_is_just_given_back,
        (Released(repeated=False), Refused(Refusal.RESERVATION_ALREADY_RELEASED)),
        (
            (
                replacing("LOCK_WAITING", "FOR SHARE OF r"),
                (Released(repeated=False), Held()),
            ),
        ),
    ),
    Guard(
        "LOCK_WAITING: RESERVING",
        hold_a_cancelled_order,
        NotWaiting(),
        (
            (
                replacing("LOCK_WAITING", "AND o.status = 'RESERVING'"),
                "refused: an order changed under its lock",
            ),
        ),
    ),
    Guard(
        "MARK_SOLD_OUT: RESERVING",
        sell_out_a_cancelled_order,
        (0, "CANCELLED"),
        (
            (
                replacing("MARK_SOLD_OUT", "AND status = 'RESERVING'"),
                "refused by fk_order_transition",
            ),
            (LEGAL_PAIRS, (1, "OUT_OF_STOCK")),
        ),
    ),
    Guard(
        "READ_WAITING_IDS: at this turn",
        next_in_line,
        [False, False, False, True],
        (
            (
                replacing("READ_WAITING_IDS", "turn_sku_id = %s", "%s > 0"),
                [False, False, True, True],
            ),
        ),
    ),
    Guard(
        "READ_WAITING_IDS: RESERVING",
        next_in_line,
        [False, False, False, True],
        ((replacing("READ_WAITING_IDS", "AND status = 'RESERVING'"), [False, True, False, True]),),
    ),
    Guard(
        "READ_WAITING_IDS: behind those that were looked at",
        next_in_line,
        [False, False, False, True],
        ((replacing("READ_WAITING_IDS", "id > %s", "%s > 0"), [True, False, False, True]),),
    ),
    Guard(
        "READ_PLACES: an order in line",
        whoever_waits,
        [True, False, True, False],
        (
            (
                replacing("READ_PLACES", "o.status = 'RESERVING' OR "),
                [False, False, True, False],
            ),
        ),
    ),
    Guard(
        "READ_PLACES: an order with late money",
        whoever_waits,
        [True, False, True, False],
        (
            (
                Clause(
                    turn_store, "READ_PLACES", "\n             AND p.state = 'REINSTATE_PENDING'"
                ),
                [True, False, True, True],
            ),
        ),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
