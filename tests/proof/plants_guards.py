"""A plant of each kind that the section on guards reports: its proofs are tests of the product,
and those that watch the spot fail with the fault in it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import pytest

from lockstep.db.connection import Connection
from lockstep.db.errors import ConnectionLost, Contended
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory import release, store
from lockstep.inventory.model import Released
from lockstep.messaging import outbox, relay
from tests.proof import guards_in_code, guards_in_sql
from tests.proof.guards_witnesses import Guard
from tests.proof.plants import Kind, Plant


@contextmanager
def without(*keys: str) -> Iterator[None]:
    """The product without these guards."""
    all_guards: tuple[Guard, ...] = (*guards_in_sql.all_guards(), *guards_in_code.all_guards())
    by_key = {guard.key: guard for guard in all_guards}
    with ExitStack() as gone:
        for key in keys:
            gone.enter_context(by_key[key].without())
        yield


@contextmanager
def instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """``make`` takes what was there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, make(getattr(owner, name)))
        yield


def _at_once(_: Any) -> Any:
    return lambda tx, action: action()


@contextmanager
def marked_before_sent() -> Iterator[None]:
    def own(send: Any) -> Any:
        def marked(message_id: str, *rest: str) -> None:
            in_transaction(partial(outbox._mark_sent, message_id=message_id))
            send(message_id, *rest)

        return marked

    def relayed(send: Any) -> Any:
        def marked(claimed: Any, broken: Any) -> Any:
            ids = [message.message_id for message in claimed]
            in_transaction(partial(relay._mark, message_ids=ids))
            return send(claimed, broken)

        return marked

    with instead(outbox, "_send", own), instead(relay, "_send", relayed):
        yield


def _callers_quantities(give_back: Any) -> Any:
    """Whoever releases says how much, and is believed each time."""

    def believed(tx: Tx, reservation_id: str, order_id: int) -> Any:
        outcome = give_back(tx, reservation_id, order_id)
        if outcome == Released(repeated=True):
            lines = tx.all(
                "SELECT sku_id, quantity FROM oms_order_item WHERE order_id = %s", (order_id,)
            )
            for line in lines:
                store.free_stock(tx, line["sku_id"], line["quantity"])
        return outcome

    return believed


def _as_if_nothing_matched(execute: Any) -> Any:
    def goes_on(tx: Tx, sql: Any, arguments: Any = ()) -> int:
        try:
            return int(execute(tx, sql, arguments))
        except Contended:
            return 0

    return goes_on


def _as_if_it_had_failed(execute: Any) -> Any:
    def fails(session: Connection, sql: Any, arguments: Any = ()) -> int:
        try:
            return int(execute(session, sql, arguments))
        except ConnectionLost as lost:
            if sql != "COMMIT":
                raise
            raise InvariantBroken("it was not done") from lost

    return fails


PLANTS: Final = (
    Plant(
        Kind.GUARD_DROPPED,
        "a hold is released in whatever state it is",
        partial(without, "lockstep.inventory.store MARK_RELEASED: state = 'RESERVED'"),
        (("guards", "rows-inventory"),),
    ),
    Plant(
        Kind.AMOUNT_UNCHECKED,
        "any sum pays an order",
        partial(
            without,
            "lockstep.orders.store MARK_PAID: pay_amount = %s",
            "lockstep.payments.settle _pay_or_keep: report.total_amount != order.pay_amount",
        ),
        (("guards", "rows-orders"), ("guards", "tests-payments")),
    ),
    Plant(
        Kind.SENT_BEFORE_COMMIT,
        "what follows a commit is done at once",
        partial(instead, Tx, "after_commit", _at_once),
        (("guards", "tests-messaging"),),
    ),
    Plant(
        Kind.MARKED_BEFORE_SEND,
        "a message is marked, then sent",
        marked_before_sent,
        (("guards", "tests-messaging"),),
    ),
    Plant(
        Kind.CALLERS_QUANTITIES,
        "each release frees the order's lines",
        partial(instead, release, "give_back", _callers_quantities),
        (("guards", "tests-inventory"),),
    ),
    Plant(
        Kind.WENT_ON_AFTER_1205,
        "a lock wait counts as no row",
        partial(instead, Tx, "execute", _as_if_nothing_matched),
        (("guards", "tests-db"),),
    ),
    Plant(
        Kind.LOST_ANSWER_IS_FAILURE,
        "a commit without an answer was none",
        partial(instead, Connection, "execute", _as_if_it_had_failed),
        (("guards", "tests-db"),),
    ),
)
