"""The tree of all orders in which the steps of some sides can follow each other.

It is not known beforehand: whose step can be next shows only when it is. So it is walked, each time
to another leaf, by chance among what was not yet walked. A small tree is walked to its end that
way, and of a large one, or one that the budget is too small for, a sample is seen.
"""

import math
import random
from collections import Counter
from dataclasses import dataclass, field

from tests.proof.interleavings.stage import Choose


class NotTheSame(Exception):
    """The same steps led to another place than before: the case depends on more than them."""


@dataclass
class _Fork:
    """``ways`` leads on from here, by whose step; None is a way that was walked to its end."""

    ready: str
    ways: dict[str, "_Fork | None"] = field(default_factory=dict)

    @property
    def untried(self) -> list[str]:
        return [name for name in self.ready if self.ways.get(name, self) is not None]


class Tree:
    """``leaves`` counts the walks, each of which came to another one. ``is_steady``: the same steps
    always lead to the same place; where they do not, it is never walked to its end."""

    def __init__(self, seed: int, *, is_steady: bool = True) -> None:
        self._is_steady = is_steady
        self.leaves = 0
        self.is_walked = False
        self._random = random.Random(seed)
        self._root: _Fork | None = None
        self._path: list[tuple[_Fork, str]] = []
        self._longest: Counter[str] = Counter()

    def walk(self) -> Choose:
        """Choose the steps of one more history; ``arrived`` tells that it is over."""
        self._path = []

        def choose(ready: str) -> str:
            fork = self._fork(ready)
            untried = fork.untried
            # By the steps that each has before it, so that every order of steps is as likely.
            weights = [self._steps_left(name) for name in untried]
            [name] = self._random.choices(untried, weights)
            self._path.append((fork, name))
            return name

        return choose

    def arrived(self) -> None:
        self.leaves += 1
        self._longest |= Counter(name for _, name in self._path)
        for fork, name in reversed(self._path):
            fork.ways[name] = None
            if fork.untried:
                return
        self.is_walked = self._is_steady
        self._root = None

    @property
    def leaves_in_all(self) -> int:
        """Counted, once all are walked. Before that as many as there would be if no side ever had
        to wait: an upper bound, unless a side takes more steps than it ever did so far."""
        if self.is_walked:
            return self.leaves
        steps = self._longest.values()
        return math.factorial(sum(steps)) // math.prod(math.factorial(each) for each in steps)

    def _steps_left(self, name: str) -> int:
        """As far as is known; at least the one that it is about to take."""
        return max(1, self._longest[name] - sum(name == taken for _, taken in self._path))

    def _fork(self, ready: str) -> _Fork:
        if not self._path:
            fork = self._root = self._root or _Fork(ready)
        else:
            before, name = self._path[-1]
            fork = before.ways.get(name) or _Fork(ready)
            before.ways[name] = fork
        if fork.ready != ready and not self._is_steady:
            return _Fork(ready)
        if fork.ready != ready:
            steps = "".join(name for _, name in self._path)
            raise NotTheSame(f"after {steps} {ready} could go on, and before that {fork.ready}")
        return fork


def following(schedule: str) -> Choose:
    """Whose step is next by ``schedule``; once that is over, the first that can go on. A letter
    whose side cannot is passed over: the product may have been mended since."""
    steps = iter(schedule)

    def choose(ready: str) -> str:
        return next((name for name in steps if name in ready), ready[0])

    return choose
