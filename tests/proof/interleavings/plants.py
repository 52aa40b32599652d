"""Faults that only an order of steps shows, and for each the encounter that must see it.

``with plant(database):`` takes it into the product.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from lockstep.inventory import reserve
from lockstep.inventory import store as inventory
from lockstep.messaging import store as messages
from lockstep.orders import store as orders
from lockstep.payments import ask_refund
from tests.concurrency.taking_away import Clause, TakenAway, replaced
from tests.support.database import Database

_OPEN: Final = "AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
_NOT_CLOSED: Final = "AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
_RESERVED: Final = "AND state = 'RESERVED'"


@dataclass(frozen=True)
class Plant:
    """``seen_by`` names the encounter that must see it."""

    name: str
    taken_away: tuple[TakenAway, ...]
    seen_by: str

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def __call__(self, database: Database) -> Iterator[None]:
        with ExitStack() as gone:
            for away in self.taken_away:
                gone.enter_context(away(database))
            yield


def _without_lock(statement: str, lock: str = "FOR UPDATE") -> Clause:
    return Clause(orders, statement, lock)


PLANTS: Final = (
    Plant(
        "a payment reads the order without a lock, and pays it whatever its status is by then",
        (_without_lock("LOCK_ORDER_OF_TRADE"), Clause(orders, "MARK_PAID", _OPEN)),
        "pay-cancel",
    ),
    Plant(
        "a cancel looks at the order, and closes it whatever its status is by then",
        (_without_lock("LOCK_OWN_ORDER"), Clause(orders, "CLOSE_ORDER", _NOT_CLOSED)),
        "pay-cancel",
    ),
    Plant(
        "an expiry closes whatever is overdue",
        (Clause(orders, "EXPIRE_ORDER", _OPEN),),
        "pay-expire",
    ),
    Plant(
        "a release looks at the hold, and frees it whatever its state is by then",
        (
            Clause(inventory, "LOCK_RESERVATION", "FOR UPDATE OF r"),
            Clause(inventory, "MARK_RELEASED", _RESERVED),
        ),
        "confirm-release",
    ),
    Plant(
        "a hold takes what was there when somebody looked",
        (Clause(inventory, "HOLD_STOCK", "AND stock - lock_stock >= %(quantity)s"),),
        "last-piece",
    ),
    Plant(
        "two operators count what is left at once",
        (_without_lock("LOCK_ORDER_BY_NO"),),
        "parts-exceed-together",
    ),
    Plant(
        "what was asked for already does not count",
        (replaced(ask_refund, "refundable", lambda payment, refunds: payment.amount),),
        "parts-exceed-together",
    ),
    Plant(
        "relays take the same messages",
        (Clause(messages, "LOCK_DUE", "FOR UPDATE SKIP LOCKED"),),
        "relay-relay",
    ),
    Plant(
        "SKUs are locked in the order in which the client names them",
        (replaced(reserve, "sorted", list),),
        "two-skus",
    ),
)
