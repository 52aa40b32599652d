"""Some orders' lives, in which the function's process is killed now and then.

From its seed a life draws what happens (members order, pay, cancel, an operator refunds; Alipay,
queues, relay and sweep come in between) and at which of its requests to MySQL, SQS or Alipay the
process dies: before the request is seen, or when it is carried out and the answer on its way. Then
everybody does what they do in life: members ask again with their key, Alipay and the queues send
again, relay and sweep come at the next minute. One event at a time, so that a seed is nearly the
same life each time; only the sweep asks Alipay in threads of its own.
"""

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from infra.local.alipay_gateway.shapes import Refused
from tests.proof.kill_processes import Killed, Plant
from tests.proof.kill_tap import Fate
from tests.proof.kill_world import SKUS, Deployed, deployed
from tests.support import passing_time
from tests.support.database import Database
from tests.support.http_events import Answer

ACTS: Final = 24
# Less than the deliveries after which a message is dead: only kills fail them here.
KILLS_MAX: Final = 4
# Requests from one kill to the next, at most.
APART_MAX: Final = 60
ASKS_MAX: Final = 20
_WEIGHTS: Final = {
    "place": 5,
    "start": 4,
    "pay": 4,
    "tell": 4,
    "deliver": 4,
    "cancel": 2,
    "refund": 2,
    "relay": 1,
    "sweep": 1,
    "hour": 1,
}
_OPEN: Final = frozenset({202, 503})
_ENDED: Final = frozenset({409})


class Doom:
    """Whoever makes the next request but so many dies of it."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn, self._kills_left = drawn, KILLS_MAX
        self._requests_left = drawn.randint(1, APART_MAX)

    def __call__(self, _: str) -> Fate:
        if self._kills_left == 0:
            return Fate.LIVES
        self._requests_left -= 1
        if self._requests_left > 0:
            return Fate.LIVES
        self._kills_left -= 1
        self._requests_left = self._drawn.randint(1, APART_MAX)
        return self._drawn.choice([Fate.DIES_BEFORE, Fate.DIES_AFTER])


class Life:
    """``keys`` are those under which orders were placed."""

    def __init__(self, here: Deployed, drawn: random.Random) -> None:
        self.here, self.keys = here, 0
        self._world, self._drawn = here.world, drawn
        self._orders: list[str] = []
        self._numbers: list[str] = []

    def go_on(self, acts: Iterable[str]) -> None:
        for act in acts:
            getattr(self, act)()

    def place(self) -> None:
        key, self.keys = f"k{self.keys}", self.keys + 1
        some = self._drawn.sample(SKUS, self._drawn.randint(1, 2))
        lines = {sku: self._drawn.randint(1, 3) for sku in some}
        answer = answered(lambda: self._world.place(key, lines))
        self._orders.append(answer.document["order"]["order_no"])

    def start(self) -> None:
        if self._orders:
            order_no = self._drawn.choice(self._orders)
            answer = answered(lambda: self._world.start(order_no), _ENDED)
            if answer.status not in _ENDED:
                self._numbers.append(answer.document["out_trade_no"])

    def pay(self) -> None:
        if self._numbers:
            number = self._numbers.pop(self._drawn.randrange(len(self._numbers)))
            with suppress(Refused):  # the page's time is over, or it was paid
                self._world.pay(number)

    def cancel(self) -> None:
        if self._orders:
            order_no = self._drawn.choice(self._orders)
            answered(lambda: self._world.cancel(order_no), _ENDED | {202})

    def refund(self) -> None:
        if self._orders:
            order_no = self._drawn.choice(self._orders)
            answered(lambda: self.here.refund(order_no, "r1"), _ENDED)

    def tell(self) -> None:
        self._world.tell()

    def deliver(self) -> None:
        self._world.deliver()

    def relay(self) -> None:
        with suppress(Killed):
            self._world.relay()

    def sweep(self) -> None:
        with suppress(Killed):
            self._world.sweep()

    def hour(self) -> None:
        passing_time.an_hour(self.here.database)
        self.sweep()
        self.relay()


def live(database: Database, seed: str, plant: Plant | None = None) -> int:
    """Live a life and hold it to what was promised; how often somebody was killed in it."""
    drawn = random.Random(seed)
    acts = drawn.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=ACTS)
    with deployed(database, plant=plant) as here:
        here.decide = Doom(random.Random(f"{seed} kills"))
        life = Life(here, drawn)
        try:
            life.go_on(["place", *acts])
            here.decide = lambda _: Fate.LIVES
            here.ends_well(life.keys)
        except Exception as fault:
            fault.add_note("\n".join(["Killed, in this order:", *here.log]))
            raise
        return here.processes.killed


def answered(
    ask: Callable[[], Answer], also: frozenset[int] = frozenset(), asks_max: int = ASKS_MAX
) -> Answer:
    """Ask as a member does, until it is said what became of it: done, or a status of ``also``."""
    for _ in range(asks_max):
        with suppress(Killed):
            answer = ask()
            if answer.status in {200, 201} | also:
                return answer
            assert answer.status in _OPEN, answer
    raise AssertionError("asked again and again in vain")
