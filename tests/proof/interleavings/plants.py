"""Faults that only an order of steps shows."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Final

from lockstep.inventory import batch_store, reserve
from lockstep.inventory import store as inventory
from lockstep.messaging import store as messages
from lockstep.orders import store as orders
from lockstep.payments import ask_refund
from tests.proof.plants import Plant, Planted, instead
from tests.proof.section import Form

_OPEN: Final = "AND status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING')"
_NOT_CLOSED: Final = "AND status IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')"


@contextmanager
def _struck_out(*clauses: tuple[ModuleType, str, str]) -> Iterator[None]:
    """Of each statement of a store what stands in it once."""
    with ExitStack() as planted:
        for store, statement, clause in clauses:
            planted.enter_context(instead(store, statement, _without(clause)))
        yield


def _without(clause: str) -> Callable[[str], str]:
    def without(sql: str) -> str:
        assert sql.count(clause) == 1, f"{clause} is not once in {sql}"
        return sql.replace(clause, "")

    return without


def _plant(name: str, planted: Planted, part: str) -> Plant:
    """Which order shows it changes with the product's statements: the part finds one."""
    return Plant(name, planted, part, form=Form.BOUNDED)


PLANTS: Final = (
    _plant(
        "a payment reads the order without a lock, and pays it whatever its status is by then",
        partial(
            _struck_out,
            (orders, "LOCK_ORDER_OF_TRADE", "FOR UPDATE"),
            (orders, "MARK_PAID", _OPEN),
        ),
        "pay-cancel",
    ),
    _plant(
        "a cancel looks at the order, and closes it whatever its status is by then",
        partial(
            _struck_out,
            (orders, "LOCK_OWN_ORDER", "FOR UPDATE"),
            (orders, "CLOSE_ORDER", _NOT_CLOSED),
        ),
        "pay-cancel",
    ),
    _plant(
        "an expiry closes whatever is overdue",
        partial(_struck_out, (orders, "EXPIRE_ORDER", _OPEN)),
        "pay-expire",
    ),
    _plant(
        "a release looks at the hold, and frees it whatever its state is by then",
        partial(
            _struck_out,
            (batch_store, "LOCK_RESERVATIONS", "FOR UPDATE OF r"),
            (batch_store, "MARK_RELEASED", "AND state = 'RESERVED'"),
        ),
        "confirm-release",
    ),
    _plant(
        "a hold takes what was there when somebody looked",
        partial(_struck_out, (inventory, "HOLD_STOCK", "AND stock - lock_stock >= %(quantity)s")),
        "last-piece",
    ),
    _plant(
        "two operators count what is left at once",
        partial(_struck_out, (orders, "LOCK_ORDER_BY_NO", "FOR UPDATE")),
        "parts-exceed-together",
    ),
    _plant(
        "what was asked for already does not count",
        partial(
            instead, ask_refund, "refundable", lambda _: lambda payment, refunds: payment.amount
        ),
        "parts-exceed-together",
    ),
    _plant(
        "relays take the same messages",
        partial(_struck_out, (messages, "LOCK_DUE", "FOR UPDATE SKIP LOCKED")),
        "relay-relay",
    ),
    _plant(
        "SKUs are locked in the order in which the client names them",
        partial(instead, reserve, "sorted", lambda _: list),
        "two-skus",
    ),
)
