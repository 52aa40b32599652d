"""Plants that the section on guards reports: its proofs are tests of the product, and those that
watch the spot fail with the fault in it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import pytest

from lockstep.db.transaction import in_transaction
from lockstep.messaging import outbox, relay
from tests.proof.guards import in_code, in_sql
from tests.proof.guards.witnesses import Guard
from tests.proof.plants import Kind, Plant


@contextmanager
def without(*keys: str) -> Iterator[None]:
    """The product without these guards."""
    all_guards: tuple[Guard, ...] = (*in_sql.all_guards(), *in_code.all_guards())
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


PLANTS: Final = (
    Plant(
        Kind.GUARD_DROPPED,
        "a hold is released in whatever state it is",
        partial(without, "lockstep.inventory.store MARK_RELEASED: state = 'RESERVED'"),
        (("guards", "rows-inventory"),),
        "MARK_RELEASED: state",
    ),
    Plant(
        Kind.AMOUNT_UNCHECKED,
        "any sum pays an order",
        partial(
            without,
            "lockstep.orders.store MARK_PAID: pay_amount = %s",
            "lockstep.payments.settle _pay_or_keep: report.total_amount != order.pay_amount",
        ),
        (("guards", "rows-orders"),),
        "MARK_PAID: pay_amount",
    ),
    Plant(
        Kind.MARKED_BEFORE_SEND,
        "a message is marked, then sent",
        marked_before_sent,
        (("guards", "tests-messaging"),),
        "_send: queue_url is None",
    ),
)
