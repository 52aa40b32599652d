"""All the orders in which a life's arrivals can come, some of them more than once.

Two histories that left the same rows, with the same still to come, go on alike; so they are gone on
with once, and every order is tried although most of their deliveries are shared. (Of a time it
counts whether it is set: none passes between arrivals that would make anything due.) An order is
written `paid-1,confirm-1,paid-1`, and lived alone by `Orders.live`.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial, prod
from typing import Final

from tests.proof.arrivals.history import (
    Begun,
    Left,
    Moment,
    begin,
    differences,
    ends,
    go_on,
    refunds_of,
)
from tests.proof.arrivals.lives import Life
from tests.proof.arrivals.snapshots import Snapshots
from tests.proof.section import Tally
from tests.proof.world import World
from tests.support.histories import retold

# What decides how a history goes on is all but these.
_NAMES: Final = {"id", "message_id", "updated_at"}

type Order = tuple[str, ...]


@dataclass
class Node:
    """Where ``ways`` orders have come to, ``path`` being the first of them."""

    path: Order
    moment: Moment
    ways: int = 1


def count_orders(kinds: int, times: int) -> int:
    """Of ``kinds`` arrivals that come ``times`` each, anywhere."""
    return factorial(kinds * times) // prod([factorial(times)] * kinds)


class Orders:
    """Of one life, which begins in ``world``."""

    def __init__(self, world: World, snapshots: Snapshots, life: Life) -> None:
        self.life = life
        self.begun: Begun = begin(world, snapshots, life)
        self._natural: dict[str, tuple[Left, Left]] = {}

    def try_all(self, times: int, tally: Tally) -> None:
        """Every order in which each arrival comes ``times``."""
        tried, covered = tally.tried, 0
        level = [Node((), self.begun.start)]
        try:
            while level:
                following: dict[object, Node] = {}
                for node in level:
                    names = self._next(node, times)
                    for name in names:
                        case = ",".join((*node.path, name))
                        tally.attempt(case, partial(self._step, node, name, following))
                    if not names:
                        tally.attempt(",".join(node.path), partial(self._end, node))
                        covered += node.ways
                level = list(following.values())
        finally:
            tally.tried = tried + covered
            is_free = not self.life.only_sent
            possible = count_orders(len(self.begun.arrivals), times) if is_free else covered
            tally.possible = (tally.possible or 0) + possible

    def try_some(self, times: int, count: int, seed: int, tally: Tally) -> None:
        """So many orders of the seed's, each lived by itself."""
        drawn = random.Random(f"{self.life}:{seed}")
        tally.possible = (tally.possible or 0) + count_orders(len(self.begun.arrivals), times)
        for order in self._drawn(times, count, drawn):
            tally.attempt(",".join(order), partial(self.live, order))

    def live(self, order: Sequence[str]) -> None:
        """One order from its beginning; what is missing of it comes in the natural order. Raises
        what does not hold."""
        node = Node((), self.begun.start)
        for name in order:
            node = self._after(node, name)
        self._end(self._naturally_on(node))

    def _drawn(self, times: int, count: int, drawn: random.Random) -> Iterator[Order]:
        for _ in range(count):
            order = list(self.begun.arrivals) * times
            drawn.shuffle(order)
            yield tuple(order)

    def _next(self, node: Node, times: int) -> list[str]:
        came = Counter(node.path)
        return [
            name
            for name, arrival in self.begun.arrivals.items()
            if came[name] < times
            and (not self.life.only_sent or arrival.was_sent(node.moment.snapshot))
        ]

    # --- one step --------------------------------------------------------------------------------

    def _step(self, node: Node, name: str, following: dict[object, Node]) -> None:
        after = self._after(node, name)
        same = following.setdefault(self._key(after), after)
        if same is not after:
            same.ways += after.ways

    def _after(self, node: Node, name: str) -> Node:
        arrival = self.begun.arrivals[name]
        if self.life.only_sent and not arrival.was_sent(node.moment.snapshot):
            return node
        moment = go_on(self.begun, node.moment, arrival)
        return Node((*node.path, name), moment, node.ways)

    def _key(self, node: Node) -> object:
        snapshot = node.moment.snapshot
        return (
            frozenset(Counter(node.path).items()),
            self._turn(node.path),
            node.moment.kept,
            frozenset(node.moment.pending),
            str(retold(snapshot.rows, _NAMES)),
            tuple((trade.status, refunds_of(trade)) for trade in snapshot.trades.values()),
        )

    # --- an end ----------------------------------------------------------------------------------

    def _end(self, node: Node) -> None:
        natural = self._natural_end(self._turn(node.path))
        found = ends(self.begun, node.moment)
        for when, ours, theirs in zip(("at once", "at rest"), natural, found, strict=True):
            lines = differences(ours, theirs)
            if lines and not (self.life.takes_time and when == "at once"):
                raise AssertionError("\n".join((f"It ends in other rows, {when}:", *lines)))

    def _turn(self, path: Order) -> str:
        """Which of the decisive arrivals came first."""
        return next((name for name in path if name in self.life.ends), "")

    def _natural_end(self, turn: str) -> tuple[Left, Left]:
        """Of the order in which each comes once, as soon as it was sent; ``turn`` before the
        others."""
        if turn not in self._natural:
            node = Node((), self.begun.start)
            node = self._naturally_on(self._after(node, turn) if turn else node)
            self._natural[turn] = ends(self.begun, node.moment)
            self._check_end(turn)
        return self._natural[turn]

    def _naturally_on(self, node: Node) -> Node:
        while missing := self._next(node, times=1):
            snapshot = node.moment.snapshot
            sent = (name for name in missing if self.begun.arrivals[name].was_sent(snapshot))
            node = self._after(node, next(sent, missing[0]))
        return node

    def _check_end(self, turn: str) -> None:
        rows = self.begun.world.database.rows
        [order] = rows("SELECT status, close_reason FROM oms_order WHERE member_id = 42")
        states = {r["trade_no"]: r["state"] for r in rows("SELECT * FROM oms_order_payment")}
        trades = [trade.trade_no for trade in self.begun.world.books.trades()]
        of_trades = tuple(states[trade_no] for trade_no in trades if trade_no in states)
        end = (order["status"], order["close_reason"], of_trades)
        assert end == self.life.ends[turn], f"{turn} first"
