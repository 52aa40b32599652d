"""What all machines have in common: a life, a step of it in words, and what a draw picks out."""

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.proof.model.auditor.books import Order
from tests.proof.model.auditor.minutes import Auditor
from tests.proof.model.life import Life
from tests.proof.model.still_world import a_still_world
from tests.support.database import Database


class Departed(Exception):
    """The product and the auditor do not agree after these steps."""

    def __init__(self, steps: Iterable[str]) -> None:
        self.steps = "; ".join(steps)
        super().__init__(self.steps)


class Machine(RuleBasedStateMachine):
    """``lives`` are those that were lived, ``departed`` what was found in them."""

    database: ClassVar[Database]
    policy: ClassVar[str]
    lives: ClassVar[list[Life]]
    departed: ClassVar[list[Departed]]

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()
        still = self._open.enter_context(a_still_world(self.database, self.policy))
        self.life = Life(still, self.policy)
        self.lives.append(self.life)

    @property
    def auditor(self) -> Auditor:
        return self.life.auditor

    def step(self, *words: object) -> None:
        try:
            self.life.do(" ".join(str(word) for word in words if word is not None))
        except Exception as fault:
            self.departed.append(Departed(self.life.steps))
            raise self.departed[-1] from fault

    def teardown(self) -> None:
        with self._open:
            if sys.exc_info()[0] is None:
                self.step("rest")

    # --- what there is to choose from ------------------------------------------------------------

    def an_order(self, pick: int) -> str:
        return nth(list(self.auditor.orders), pick)

    def a_trade(self, pick: int) -> str:
        return nth(list(self.auditor.payments) or list(self.auditor.trades), pick)

    def orders_that(self, are: Callable[[Order], bool]) -> list[str]:
        return [order.name for order in self.auditor.orders.values() if are(order)]


def nth[T](some: list[T], pick: int) -> T:
    """The newest is 0."""
    return some[-1 - pick % len(some)]


def has_orders(machine: Machine) -> bool:
    return bool(machine.auditor.orders)


def yuan(fen: int) -> str:
    return f"{fen // 100}.{fen % 100:02d}"
