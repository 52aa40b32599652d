"""Ours, through the handlers and operations that are deployed, with every row that they write.

The queues are left out: a worker is handed one event after the other, each worded before the clock
starts. Parsing it, logs and metrics are in.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

from functions import confirm_stock, release_stock
from infra.bench import our_rows
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.way import Verdict, WentWrong
from infra.local.lambda_events import Context, batch, record_of
from infra.measuring.ground import Ground
from lockstep.db import connection
from lockstep.inventory.model import reservation_id_of
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock, StockCommand
from lockstep.orders.model import OutOfStock, Placed, PlaceOrder
from lockstep.orders.place import place


@dataclass(frozen=True)
class OurFinish:
    """Paid or closed orders whose messages come in events of ``records``."""

    verb: str
    orders: int
    records: int
    skus: int = 1

    may_lose: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"ours: {self.verb}_stock"

    def prepare(self, ground: Ground) -> None:
        our_rows.clear(ground)
        our_rows.add_skus(ground, self.skus)
        status = "PAID" if self.verb == "confirm" else "CLOSED"
        our_rows.add_orders(ground, status, self.orders, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        model, handler = HANDLERS[self.verb]
        events = events_of(model, self.orders, self.records, seat)
        context = Context(milliseconds=900_000)
        with own_session():

            def act() -> int | None:
                for order_ids, event in events:
                    _nothing_failed(handler(event, context))
                    return len(order_ids)
                return None

            yield Client(act)

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        state = "CONFIRMED" if self.verb == "confirm" else "RELEASED"
        [done] = ground.row(f"SELECT COUNT(*) FROM ims_reservation WHERE state = '{state}'")
        lost = abs(done - outcome.done)
        return Verdict(done, lost, our_rows.broken(ground, at_rest=done == self.orders))


HANDLERS: Final[dict[str, tuple[type[StockCommand], Callable[..., Any]]]] = {
    "confirm": (ConfirmStock, confirm_stock.handler),
    "release": (ReleaseStock, release_stock.handler),
}


@dataclass(frozen=True)
class OurPlace:
    """An order and its hold in one transaction; of a hot SKU, an order that lines up for it."""

    skus: int
    hot: bool = False

    may_lose: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"ours: place {'in line' if self.hot else 'with its hold'}"

    def prepare(self, ground: Ground) -> None:
        our_rows.clear(ground)
        our_rows.add_skus(ground, self.skus, hot=self.hot)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        with own_session():
            yield Client(_placing(seat, self.skus, Placed))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [placed] = ground.row("SELECT COUNT(*) FROM oms_order")
        return Verdict(placed, abs(placed - outcome.done), our_rows.broken(ground, at_rest=True))


@dataclass(frozen=True)
class OurGate:
    """Orders for a hot SKU of which nothing is left: refused at once, without a row."""

    skus: int = 1

    name: ClassVar[str] = "ours: place, sold out"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        our_rows.clear(ground)
        our_rows.add_skus(ground, self.skus, 0, hot=True)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        with own_session():
            yield Client(_placing(seat, self.skus, OutOfStock))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [rows] = ground.row(
            "SELECT (SELECT COUNT(*) FROM oms_order) + (SELECT COUNT(*) FROM oms_order_request)"
        )
        return Verdict(outcome.done, 0, [f"{rows} rows were left"] if rows else [])


# --- how they are called -------------------------------------------------------------------------


def events_of(
    model: type[StockCommand], orders: int, size: int, seat: Seat
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """This seat's share of the events, with the ids of their orders; worded at once."""
    ids = range(1, orders + 1)
    shares = [tuple(ids[at : at + size]) for at in range(0, orders, size)]
    return iter([(share, _event(model, share)) for share in shares[seat.number :: seat.clients]])


def _event(model: type[StockCommand], order_ids: Sequence[int]) -> dict[str, Any]:
    return batch(
        *(record_of(f"m{i}", model(reservation_id=_first_hold(i), order_id=i)) for i in order_ids)
    )


def _first_hold(order_id: int) -> str:
    return reservation_id_of(f"20261130{order_id:016d}", 1)


def _nothing_failed(answer: Any) -> None:
    if answer["batchItemFailures"]:
        raise WentWrong(f"messages failed: {json.dumps(answer)[:200]}")


@contextmanager
def own_session() -> Iterator[None]:
    """The product's own session of this thread, opened before the clock starts."""
    connection.current()
    try:
        yield
    finally:
        connection.discard()


def _placing(seat: Seat, skus: int, wanted: type[Placed | OutOfStock]) -> Callable[[], int]:
    """Orders of one piece, members and keys of their own, each of which comes to ``wanted``."""
    numbers = count(seat.number + 1, seat.clients)

    def act() -> int:
        n = next(numbers)
        outcome = place(PlaceOrder(n, f"key-{n}", {1 + n % skus: 1}, None, None))
        if not isinstance(outcome, wanted):
            raise WentWrong(f"an order that is not {wanted.__name__}: {outcome}")
        return 1

    return act
