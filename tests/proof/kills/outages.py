"""The database is killed while members order, pay, cancel and are refunded, and comes back.

Nobody restarts the functions, and nobody tells them: whoever asks while it is down is told to come
again, and does. As soon as it is back everything that was acknowledged before is in the books.
"""

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import pytest

from tests.proof.kills.lives import answered
from tests.proof.kills.mysqld import Mysqld, a_durable_mysqld
from tests.proof.kills.processes import Failed, Plant
from tests.proof.kills.world import SKUS, Deployed, deployed
from tests.support.database import Database
from tests.support.http_events import Answer

MEMBERS: Final = 3
# Answers between two kills.
ANSWERS: Final = (30, 90)
# The way back: a connection that hangs, a transaction that is tried again, a crash recovery.
PATIENCE_SECONDS: Final = 60
_ASKS_MAX: Final = 200
_ENDS: Final = ("leave", "cancel", "page", "page and cancel", "pay", "pay", "pay")
# Of a queue at once, and turns of the carrier from one relay and sweep to the next.
_MESSAGES_MAX: Final = 5
_TURNS: Final = 10


class GaveUp(Exception):
    """The run has failed: no use in asking on."""


class Load:
    """Members, each a thread, and one more that carries notices and messages and is the clock of
    relay and sweep: it waits while the database is down, since in seconds it would use up the
    resends and redeliveries of hours."""

    def __init__(self, here: Deployed, seed: str) -> None:
        self.here, self._world, self._seed = here, here.world, seed
        self.is_up, self._ends, self._fails = (threading.Event() for _ in range(3))
        self.is_up.set()
        self.keys = [0] * MEMBERS
        self._threads = ThreadPoolExecutor(MEMBERS + 1)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Self:
        lives = [self._threads.submit(self._live, nth) for nth in range(MEMBERS)]
        self._running = [self._threads.submit(self._carry), *lives]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None
    ) -> None:
        """Everybody finishes what they are at, or leaves it where the run has failed."""
        if fault is not None:
            self._fails.set()
        self._ends.set()
        self.is_up.set()
        self._threads.shutdown()
        if fault is None:
            self.check()

    def check(self) -> None:
        """Raise what one of them met."""
        for one in self._running:
            if one.done() and not isinstance(fault := one.exception(), GaveUp | None):
                raise fault

    def _carry(self) -> None:
        turn = 0
        while not self._ends.wait(0.01):
            turn += 1
            self._world.tell()
            self._world.wire.deliver(_MESSAGES_MAX)
            if turn % _TURNS == 0:
                with suppress(Failed):  # it is down; the next minute's will do
                    self._world.relay()
                    self._world.sweep()
            self.is_up.wait()

    def _live(self, nth: int) -> None:
        drawn, paid = random.Random(f"{self._seed} {nth}"), list[str]()
        while not self._ends.is_set():
            order_no = self._place(nth, drawn)
            end = drawn.choice(_ENDS)
            if "page" in end or end == "pay":
                started = self._ask(partial(self._world.start, order_no, member=nth + 1))
                if end == "pay":
                    self._world.pay(started["out_trade_no"])
                    paid.append(order_no)
            if "cancel" in end:
                self._ask(partial(self._world.cancel, order_no, nth + 1), 202)
            if len(paid) > 3:
                returned = paid.pop(0)
                self._ask(partial(self.here.refund, returned, "r1"), 409)

    def _place(self, nth: int, drawn: random.Random) -> str:
        self.keys[nth] += 1
        lines = {sku: drawn.randint(1, 3) for sku in drawn.sample(SKUS[:2], drawn.randint(1, 2))}
        key = f"k{self.keys[nth]}"
        placed = self._ask(partial(self._world.place, key, lines, nth + 1))
        return str(placed["order"]["order_no"])

    def _ask(self, ask: Callable[[], Answer], *also: int) -> dict[str, Any]:
        def unless_over() -> Answer:
            if self._fails.is_set():
                raise GaveUp
            return ask()

        document = answered(unless_over, frozenset(also), _ASKS_MAX).document
        return dict(document)


def survive(seed: str, kills: int, plant: Plant | None = None) -> int:
    """So many kills of the database, and what came of it; how many there were."""
    drawn = random.Random(seed)
    with a_durable_mysqld() as mysqld, pytest.MonkeyPatch.context() as patch:
        database = Database.on(mysqld.server, f"lockstep_kills_{os.getpid()}")
        with (
            database.in_use(patch),
            deployed(database, is_tapped=False, plant=plant) as here,
        ):
            try:
                with Load(here, seed) as load:
                    for _ in range(kills):
                        _kill(mysqld, load, drawn.randint(*ANSWERS))
                assert here.processes.killed == 0, "a function did not live through it"
                here.ends_well(sum(load.keys))
            except Exception as fault:
                fault.add_note("\n".join(here.log))
                raise
            here.database.drop()
    return kills


def _kill(mysqld: Mysqld, load: Load, answers: int) -> None:
    """After so many answers; then look whether all of those are kept."""
    here, promises = load.here, load.here.promises
    _answers(load, answers)
    load.is_up.clear()
    mysqld.kill()
    here.log.append(f"mysqld killed after {promises.made} answers")
    told_to_come_again = promises.open + 1
    promises.wait_until(lambda: promises.open >= told_to_come_again, PATIENCE_SECONDS)
    mysqld.restart()
    load.is_up.set()
    here.world.database = here.database.again()
    here.keeps_its_word()
    # By themselves: nobody restarted them.
    _answers(load, ANSWERS[0])


def _answers(load: Load, many: int) -> None:
    """So many more that promise something."""
    promises = load.here.promises
    enough = promises.made + many
    try:
        promises.wait_until(lambda: promises.made >= enough, PATIENCE_SECONDS)
    except AssertionError:
        load.check()
        raise
