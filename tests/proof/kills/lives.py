"""Some orders' lives, in which the function's process is killed now and then.

From its seed a life draws what happens (members order, pay, cancel, an operator refunds; Alipay,
queues, relay and sweep come in between) and at which of its requests to MySQL, SQS or Alipay the
process dies: before the request is seen, or when it is carried out and the answer on its way. Then
everybody does what they do in life: members ask again with their key, Alipay and the queues send
again, relay and sweep come at the next minute. One event at a time, so that a seed is nearly the
same life each time; only the sweep asks Alipay in threads of its own.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from infra.local.alipay_gateway.shapes import Refused
from tests.proof.kills.processes import Killed, Plant
from tests.proof.kills.tap import Fate
from tests.proof.kills.world import SKUS, Deployed, deployed
from tests.support.database import Database
from tests.support.http_events import Answer

ACTS: Final = 30
# Of each kind so many kills, at any of so many requests: about what a life has of them.
KILLS: Final = {"statement": (2, 200), "commit": (2, 25), "queue": (1, 10), "alipay": (1, 2)}
# Of a queue at once. So few that no message is in every batch that dies, and dead in the end.
MESSAGES_MAX: Final = 4
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
# So that what was begun in the end is under way, and whoever is at it is not safe either.
_LAST: Final = ("tell", "deliver", "refund", "deliver", "deliver", "tell", "hour", "deliver")
_OPEN: Final = frozenset({202, 503})
_ENDED: Final = frozenset({409})


class DrawnKills:
    """Whoever makes one of the requests that were drawn is killed at it."""

    def __init__(self, drawn: random.Random) -> None:
        self._fates = {
            (kind, nth): drawn.choice([Fate.DIES_BEFORE, Fate.DIES_AFTER])
            for kind, (kills, requests) in KILLS.items()
            for nth in drawn.sample(range(requests), kills)
        }
        self._seen: Counter[str] = Counter()

    def __call__(self, what: str) -> Fate:
        kind = _kind(what)
        nth, self._seen[kind] = self._seen[kind], self._seen[kind] + 1
        return self._fates.get((kind, nth), Fate.LIVES)


class Life:
    """``keys`` are those under which orders were placed."""

    def __init__(self, here: Deployed, drawn: random.Random) -> None:
        self.here, self.keys = here, 0
        self._world, self._drawn = here.world, drawn
        self._orders: list[str] = []
        self._unpaid: list[tuple[str, str]] = []
        self._paid: list[str] = []

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
        order_no = self._drawn.choice(self._orders)
        answer = answered(lambda: self._world.start(order_no), _ENDED)
        if answer.status not in _ENDED:
            self._unpaid.append((order_no, answer.document["out_trade_no"]))

    def pay(self) -> None:
        if self._unpaid:
            order_no, number = self._drawn.choice(self._unpaid)
            with suppress(Refused):  # the page's time is over, or it was paid
                self._world.pay(number)
                self._paid.append(order_no)

    def cancel(self) -> None:
        order_no = self._drawn.choice(self._orders)
        answered(lambda: self._world.cancel(order_no), _ENDED | {202})

    def refund(self) -> None:
        if self._paid:
            order_no = self._drawn.choice(self._paid)
            answered(lambda: self.here.refund(order_no, "r1"), _ENDED)

    def tell(self) -> None:
        self._world.tell()

    def deliver(self) -> None:
        self._world.wire.deliver(MESSAGES_MAX)

    def relay(self) -> None:
        with suppress(Killed):
            self._world.relay()

    def sweep(self) -> None:
        with suppress(Killed):
            self._world.sweep()

    def hour(self) -> None:
        self._world.pass_time(timedelta(hours=1))
        self.sweep()
        self.relay()


def live(database: Database, seed: str, plant: Plant | None = None) -> int:
    """Live a life and hold it to what was promised; how often somebody was killed in it."""
    drawn = random.Random(seed)
    acts = drawn.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=ACTS)
    with deployed(database, plant=plant) as here:
        here.decide = DrawnKills(random.Random(f"{seed} kills"))
        life = Life(here, drawn)
        try:
            life.go_on(["place", *acts, *_LAST])
            here.decide = lambda _: Fate.LIVES
            here.ends_well(life.keys)
        except Exception as fault:
            fault.add_note("\n".join(["Killed, in this order:", *here.log]))
            raise
        return here.processes.killed


def _kind(what: str) -> str:
    if what == "COMMIT":
        return "commit"
    if what.startswith("POST "):
        return "queue" if "SendMessage" in what else "alipay"
    return "statement"


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
