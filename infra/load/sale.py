"""A buyer's way, simulated: arrival, API, a copy of create_order, the gate, the order, its turn.

Whoever is turned away (no token, no copy, or a database that would let them wait for too long) asks
again with the same key a few times. An order for a hot SKU is refused at the gate once the look at
the stock, which may be a while old, shows that nothing is left; otherwise it is placed, its
doorbell is sent, and it waits for a decider. An ordinary order is decided where it is placed.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from infra.load.clock import Clock
from infra.load.deciders import Deciders, Order
from infra.load.plan import Plan, Request
from infra.load.stations import Bucket, Copies, Database
from infra.load.waits import Waits

# Looks and payments follow an order within about so long; how exactly matters little to a load.
_LATER_SECONDS: Final = 2.0
# As lockstep.messaging.relay: it runs each minute, and takes what is older than this.
_RELAY_AGE_SECONDS: Final = 10
# Drawn once and dealt in turn: a million draws would take longer than they are worth.
_SPREADS: Final = 4093


class End(StrEnum):
    HELD = "got a unit"
    AT_GATE = "refused at the gate"
    AT_TURN = "refused after waiting"
    EXPIRED = "closed by the sweep, waited for too long"
    TURNED_AWAY = "turned away each time"


class Why(StrEnum):
    API = "API or Lambda request rate"
    COPIES = "no copy of create_order"
    DATABASE = "database too busy"


@dataclass(slots=True)
class Told:
    """What a simulation came to."""

    buyers: int
    ends: Counter[End] = field(default_factory=Counter)
    turned_away: Counter[Why] = field(default_factory=Counter)
    requests: int = 0
    seconds: float = 0
    """Until the last one's end."""
    waited: dict[End, list[float]] = field(default_factory=dict)
    """From the request that was taken to the decision."""
    at_turn: list[float] = field(default_factory=list)
    """From the order's commit to the decision."""
    orders: int = 0
    unsent: int = 0
    """Messages that SQS refused at first."""
    waiting_max: int = 0
    copies_max: int = 0
    copies_started: int = 0
    copy_seconds: float = 0
    database_busy: float = 0
    sold_out_at: float | None = None
    deciders_max: int = 0
    decider_invocations: int = 0
    decider_seconds: float = 0
    batches: int = 0
    dead_letters: int = 0

    @property
    def taken(self) -> int:
        """Requests that a copy of create_order took."""
        return self.requests - self.turned_away[Why.API] - self.turned_away[Why.COPIES]

    def waits(self, end: End) -> Waits:
        return Waits.of(self.waited.get(end, ()))


class Sale:
    """``units`` are what is left of each hot SKU; without any, orders are ordinary ones."""

    def __init__(self, plan: Plan, units: Sequence[int], seed: int) -> None:
        self._plan = plan
        self._lot = random.Random(seed)  # noqa: S311 - the seed is the point
        self._clock = Clock()
        self._api = Bucket(plan.api_rps, plan.api_burst)
        starts = Bucket(plan.copies_per_second, plan.copies_burst)
        self._copies = Copies(plan.copies_max, starts, plan.warm)
        self._sends = Bucket(plan.send_rps, plan.send_rps)
        self._database = Database(plan.database_speed)
        self._skus = len(units)
        self._nth_spread = 0
        self._spreads = [self._lot.lognormvariate(0, plan.spread) for _ in range(_SPREADS)]
        self._told = Told(0)
        self._deciders = Deciders(
            self._clock, self._database, plan.deciding, units, self._decided, self._expired
        )

    def run(self, arrivals: Sequence[float]) -> Told:
        told = self._told
        told.buyers = len(arrivals)
        self._clock.feed(arrivals, self._arrive)
        self._clock.run()
        told.copies_max, told.copies_started = self._copies.busy_max, self._copies.started
        told.copy_seconds = self._copies.busy_seconds
        told.database_busy = self._database.busy_seconds
        sold_out = self._deciders.sold_out_at
        if self._skus and len(sold_out) == self._skus:
            told.sold_out_at = max(sold_out.values())
        told.deciders_max, told.batches = self._deciders.busy_max, self._deciders.batches
        told.decider_invocations = self._deciders.invocations
        told.decider_seconds = self._deciders.worker_seconds
        told.dead_letters = self._deciders.dead_letters
        return told

    # --- a request -------------------------------------------------------------------------------

    def _arrive(self) -> None:
        self._ask(self._lot.randrange(self._skus) if self._skus > 1 else 0, 1)

    def _ask(self, sku: int, nth: int) -> None:
        now = self._clock.now
        self._told.requests += 1
        if not self._api.take(now):
            self._turn_away(sku, nth, Why.API)
            return
        cold = self._copies.enter(now)
        if cold is None:
            self._turn_away(sku, nth, Why.COPIES)
            return
        begins = now + (self._plan.cold_seconds if cold else 0)
        self._clock.at(begins + self._plan.gate.python_seconds, self._serve, sku, nth, now)

    def _serve(self, sku: int, nth: int, arrived: float) -> None:
        """Its copy reaches the database."""
        now = self._clock.now
        if self._database.backlog(now) > self._plan.database_patience_seconds:
            until = now + self._plan.database_patience_seconds
            self._clock.at(until, self._fail, sku, nth)
        elif not self._skus:
            self._clock.at(self._done(self._plan.place), self._hold_inline, arrived)
        elif self._seen_sold_out(sku):
            self._clock.at(self._done(self._plan.gate), self._refuse, arrived)
        else:
            self._clock.at(self._done(self._plan.place_hot), self._line_up, sku, arrived)

    def _done(self, request: Request) -> float:
        """When the database has answered; Python's work before its first look is over by now."""
        more = request.python_seconds - self._plan.gate.python_seconds + request.trips_seconds
        self._nth_spread = (self._nth_spread + 1) % _SPREADS
        spread = self._spreads[self._nth_spread]
        return self._database.finish(self._clock.now, request.work) + max(0.0, more) * spread

    def _seen_sold_out(self, sku: int) -> bool:
        """By a copy's look at the stock, which is anything up to its allowed age old."""
        since = self._deciders.sold_out_at.get(sku)
        if since is None:
            return False
        return self._clock.now - since >= self._lot.random() * self._plan.gate_age_seconds

    def _turn_away(self, sku: int, nth: int, why: Why) -> None:
        self._told.turned_away[why] += 1
        if nth >= self._plan.tries:
            self._told.ends[End.TURNED_AWAY] += 1
            self._told.seconds = self._clock.now
            return
        pause = self._plan.pause_seconds * 2 ** (nth - 1) * (0.5 + self._lot.random())
        self._clock.at(self._clock.now + pause, self._ask, sku, nth + 1)

    # --- what becomes of it ----------------------------------------------------------------------

    def _fail(self, sku: int, nth: int) -> None:
        self._copies.leave(self._clock.now)
        self._turn_away(sku, nth, Why.DATABASE)

    def _refuse(self, arrived: float) -> None:
        self._copies.leave(self._clock.now)
        self._end(End.AT_GATE, arrived)

    def _hold_inline(self, arrived: float) -> None:
        now = self._clock.now
        self._copies.leave(now)
        self._told.orders += 1
        self._end(End.HELD, arrived)
        later = now + self._lot.random() * _LATER_SECONDS
        self._clock.at(later, self._follow_up)

    def _follow_up(self) -> None:
        self._database.finish(self._clock.now, self._plan.later_work)

    def _line_up(self, sku: int, arrived: float) -> None:
        now = self._clock.now
        self._told.orders += 1
        order = Order(sku, arrived, now)
        self._deciders.line_up(order)
        self._told.waiting_max = max(self._told.waiting_max, self._deciders.waiting)
        self._clock.at(now + self._plan.place_hot.after_seconds, self._leave)
        self._clock.at(self._rings_at(now), self._deciders.ring, order)

    def _rings_at(self, now: float) -> float:
        """What SQS refuses stays in the outbox until the relay's first run that finds it old."""
        if self._sends.take(now):
            return now + self._plan.doorbell_seconds
        self._told.unsent += 1
        return (now + _RELAY_AGE_SECONDS) // 60 * 60 + 60 + self._plan.doorbell_seconds

    def _leave(self) -> None:
        self._copies.leave(self._clock.now)

    def _decided(self, order: Order, held: bool) -> None:
        self._told.at_turn.append(self._clock.now - order.placed)
        self._end(End.HELD if held else End.AT_TURN, order.arrived)

    def _expired(self, order: Order) -> None:
        self._end(End.EXPIRED, order.arrived)

    def _end(self, end: End, arrived: float) -> None:
        now = self._clock.now
        self._told.ends[end] += 1
        self._told.waited.setdefault(end, []).append(now - arrived)
        self._told.seconds = now
