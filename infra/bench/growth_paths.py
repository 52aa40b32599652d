"""The paths that a long past may slow down, through the handlers that are deployed.

What a path finds is told by its Path; its act does one piece of work, as often as there is any.
The queues are left out, as everywhere in the benchmarks: events are worded before the clock starts.
"""

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import batched
from typing import Any, Final

from functions import (
    confirm_stock,
    query_orders,
    relay_outbox,
    release_stock,
    reserve_stock,
    sweep_expired,
)
from infra.bench import growth_events, growth_rows
from infra.bench.crowd import Client, Seat
from infra.bench.our_notice import settling
from infra.bench.our_reserve import EVENT_MAX
from infra.bench.ours import own_session
from infra.bench.way import WentWrong
from infra.local.lambda_events import Context, batch, record_of
from lockstep.db import connection
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock, ReserveStock, StockCommand
from lockstep.orders.model import Placed, PlaceOrder
from lockstep.orders.place import place

type Act = Callable[[], int | None]
type Hold = tuple[int, str]

CLIENTS: Final = 4
PRICE: Final = Decimal("9.90")
# Open orders that are not overdue: what a look has to pass over each minute.
OPEN: Final = 200
LONG: Final = Context(milliseconds=900_000)


@dataclass(frozen=True)
class Task:
    """A path on a schema that ``past`` orders lie in, for so many new orders of ``members``."""

    path: str
    schema: str
    past: int
    orders: int
    members: int

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        with own_session():
            connection.current().execute(f"USE {self.schema}")
            yield Client(PATHS[self.path].begin(self, seat))

    def holds(self, seat: Seat) -> list[Hold]:
        """This client's share of the orders that are there, each with its hold's id."""
        rows = connection.current().all(
            "SELECT id, reservation_id FROM oms_order WHERE id > %s AND id %% %s = %s ORDER BY id",
            (self.past, seat.clients, seat.number),
        )
        return [(row["id"], row["reservation_id"]) for row in rows]


@dataclass(frozen=True)
class Path:
    """``begin`` prepares a client and returns its act, which finds orders in ``status``: so many
    ``a_second`` that a run does not end for want of them, or as many as are ``open`` all day.
    ``done`` says which new rows an act has made or changed."""

    begin: Callable[[Task, Seat], Act]
    status: str = "PENDING_PAYMENT"
    a_second: int = 0
    open: int = 0
    clients: int = CLIENTS
    done: str | None = None

    def orders(self, seconds: float) -> int:
        return int(self.a_second * seconds) + self.open


def _place(task: Task, seat: Seat) -> Act:
    draw = random.Random(seat.number)  # noqa: S311 - which member comes next is no secret

    def act() -> int:
        member_id, sku_id = draw.randint(1, task.members), draw.randint(1, growth_rows.SKUS)
        outcome = place(PlaceOrder(member_id, secrets.token_hex(8), {sku_id: 1}, None, None))
        if not isinstance(outcome, Placed):
            raise WentWrong(f"an order that is not placed: {outcome}")
        return 1

    return act


def _reserve(task: Task, seat: Seat) -> Act:
    """One message: its worker decides all that wait at the turn."""
    holds = task.holds(seat)
    events = iter([_event(ReserveStock, holds[:EVENT_MAX])])

    def act() -> int | None:
        return _handle(reserve_stock.handler, events, len(holds))

    return act


def _confirm(task: Task, seat: Seat) -> Act:
    return _finish(ConfirmStock, confirm_stock.handler, task.holds(seat))


def _release(task: Task, seat: Seat) -> Act:
    return _finish(ReleaseStock, release_stock.handler, task.holds(seat))


def _finish(model: type[StockCommand], handler: Any, holds: Sequence[Hold]) -> Act:
    events = iter([_event(model, some) for some in batched(holds, EVENT_MAX, strict=False)])
    return lambda: _handle(handler, events)


def _notice(task: Task, seat: Seat) -> Act:
    order_nos = [reservation_id.partition("-")[0] for _, reservation_id in task.holds(seat)]
    return settling(growth_events.notices(order_nos, PRICE))


def _list(task: Task, seat: Seat) -> Act:
    draw = random.Random(seat.number)  # noqa: S311
    context = Context()

    def act() -> int:
        event = growth_events.list_of(draw.randint(1, task.members))
        answer = query_orders.handler(event, context)
        if answer["statusCode"] != 200 or answer["body"].count('"order_no"') < 1:
            raise WentWrong(f"no list of orders: {answer}")
        return 1

    return act


def _sweep(_: Task, __: Seat) -> Act:
    def act() -> int:
        swept = sweep_expired.handler({}, LONG)
        if swept["orders_closed"] or swept["failed"] or any(swept["left"].values()):
            raise WentWrong(f"something was overdue: {swept}")
        return 1

    return act


def _relay(_: Task, __: Seat) -> Act:
    def act() -> int:
        relayed = relay_outbox.handler({}, LONG)
        if any(relayed.values()):
            raise WentWrong(f"something was due: {relayed}")
        return 1

    return act


PATHS: Final = {
    "place": Path(_place, done="oms_order WHERE id > {past} AND status = 'PENDING_PAYMENT'"),
    "reserve": Path(
        _reserve,
        "RESERVING",
        4000,
        clients=1,
        done="oms_order WHERE id > {past} AND status = 'PENDING_PAYMENT'",
    ),
    "notice": Path(_notice, a_second=1000, done="oms_order WHERE id > {past} AND status = 'PAID'"),
    "confirm": Path(
        _confirm,
        "PAID",
        4000,
        done="ims_reservation WHERE order_id > {past} AND state = 'CONFIRMED'",
    ),
    "release": Path(
        _release,
        "CLOSED",
        4000,
        done="ims_reservation WHERE order_id > {past} AND state = 'RELEASED'",
    ),
    "list": Path(_list, open=OPEN),
    "sweep": Path(_sweep, open=OPEN),
    "relay": Path(_relay, open=OPEN),
}


def _event(model: type[StockCommand], holds: Sequence[Hold]) -> dict[str, Any]:
    return batch(*(record_of(f"m{i}", model(reservation_id=name, order_id=i)) for i, name in holds))


def _handle(handler: Any, events: Iterator[dict[str, Any]], orders: int = 0) -> int | None:
    """Hand over the next event; how many orders that was."""
    event = next(events, None)
    if event is None:
        return None
    if failed := handler(event, LONG)["batchItemFailures"]:
        raise WentWrong(f"messages failed: {failed}")
    return orders or len(event["Records"])
