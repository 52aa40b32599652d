"""Guards that are gone from the product itself: their proofs, which are tests of the product and
come to something with them, come to something else."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from tests.proof.guards import in_code, in_sql
from tests.proof.guards.witnesses import Guard
from tests.proof.plants import Kind, Plant


@contextmanager
def _without(*keys: str) -> Iterator[None]:
    all_guards: tuple[Guard, ...] = (*in_sql.all_guards(), *in_code.all_guards())
    by_key = {guard.key: guard for guard in all_guards}
    with ExitStack() as gone:
        for key in keys:
            gone.enter_context(by_key[key].without())
        yield


PLANTS: Final = (
    Plant(
        "a hold is released in whatever state it is",
        partial(_without, "lockstep.inventory.batch_store MARK_RELEASED: state = 'RESERVED'"),
        "rows-inventory",
        "lockstep.inventory.batch_store MARK_RELEASED: state = RESERVED",
        kind=Kind.GUARD_DROPPED,
    ),
    Plant(
        "any sum pays an order",
        partial(
            _without,
            "lockstep.orders.store MARK_PAID: pay_amount = %s",
            "lockstep.payments.settle _pay_or_keep: report.total_amount != order.pay_amount",
        ),
        "rows-orders",
        "lockstep.orders.store MARK_PAID: pay_amount = %s",
        kind=Kind.AMOUNT_UNCHECKED,
    ),
    Plant(
        "a price is read from whatever looks like a number",
        partial(_without, "lockstep.money parse_yuan: not _YUAN.fullmatch(text)"),
        "tests-lockstep",
        seen="fails without a change",
        kind=Kind.GUARD_DROPPED,
    ),
)
