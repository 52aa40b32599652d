"""Arrival orders: whatever order the messages and notices of an order's life come in, and however
often, its rows end as in the natural order.

A part is a life. Its arrivals are enumerated by living it once; then every order of them is tried:
each arrival once in the fixed form and, where they are few, twice; twice in the bounded one; in the
long one the seed's samples of each three times are lived from their beginning, one by one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tests.proof.arrivals.lives import BY_NAME, LIVES
from tests.proof.arrivals.orders import Orders
from tests.proof.arrivals.snapshots import snapshots_of
from tests.proof.section import Extent, Form, Section, Tally, of_name
from tests.proof.world import a_world
from tests.support.database import Database

_FEW: Final = 3
_SAMPLES: Final = 20
_BUDGET: Final = {
    Form.FIXED: f"each arrival once, or twice if they are {_FEW}",
    Form.BOUNDED: "each arrival twice",
    Form.LONG: f"each arrival three times, in {_SAMPLES} orders a life",
}


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    with _orders(database, part) as orders:
        match extent.form:
            case Form.FIXED:
                is_few = len(orders.begun.arrivals) <= _FEW
                orders.try_all(2 if is_few else 1, tally)
            case Form.BOUNDED:
                orders.try_all(2, tally)
            case Form.LONG:
                orders.try_some(3, _SAMPLES, extent.seed, tally)


def replay(database: Database, part: str, case: str) -> None:
    with _orders(database, part) as orders:
        names = case.split(",")
        for name in names:
            of_name(orders.begun.arrivals, name)
        orders.live(names)


def _parts(_: Extent) -> Sequence[str]:
    return [life.name for life in LIVES]


@contextmanager
def _orders(database: Database, part: str) -> Iterator[Orders]:
    life = BY_NAME[part]
    with a_world(database, policy=life.policy) as world, snapshots_of(world) as snapshots:
        yield Orders(world, snapshots, life)


SECTION: Final = Section(
    "arrivals",
    "in whatever order messages and notices come, and however often, the rows end the same",
    _BUDGET.__getitem__,
    _parts,
    prove,
    replay,
)
