"""What the proof consists of.

A section shows one promise. Its parts are independent of each other and run on any process; a part
tries cases, counts them in a tally, and gives each a name by which it is tried again alone:
`make proof replay=<section>/<part>/<case>`.
"""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import pytest

from tests.support.database import Database

# Of one part. Whoever sees as many has seen enough to begin with.
FAULTS_MAX: Final = 5


class Form(StrEnum):
    """How much is tried: FIXED is part of `make test`, BOUNDED is `make proof`, LONG is
    `make proof minutes=…`."""

    FIXED = "fixed"
    BOUNDED = "bounded"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class Extent:
    form: Form
    seed: int = 0
    """For what is drawn and not enumerated."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A case that did not hold, and how that was seen."""

    case: str
    why: str


class Enough(Exception):
    """A part has shown its faults, and more of them would say nothing new; or its time is over."""


class UnknownCase(Exception):
    """There is nothing of that name to be tried."""


@contextmanager
def naming(case: str) -> Iterator[None]:
    """While its name is read."""
    try:
        yield
    except (ValueError, LookupError) as unreadable:
        raise UnknownCase(f"no case is called {case}: {unreadable}") from unreadable


def of_name[T](cases: Mapping[str, T], name: str) -> T:
    """The case that is to be replayed."""
    if name not in cases:
        raise UnknownCase(f"no case {name}: there are {'; '.join(list(cases)[:3])}; …")
    return cases[name]


@dataclass
class Tally:
    """``possible`` is None where there is no end to what could be tried, and ``is_bound`` where it
    was not counted, but cannot be more. ``notes`` are shown below the table: what held, and should
    be known all the same. ``until``, by time.monotonic(), another case may begin."""

    tried: int = 0
    possible: int | None = 0
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    until: float | None = None
    is_bound: bool = False

    @property
    def is_over(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    def attempt(self, case: str, trial: Callable[[], object]) -> None:
        """Run ``trial``: it raises where the promise did not hold. Raises Enough in the end."""
        if self.is_over:
            raise Enough
        self.tried += 1
        try:
            trial()
        except (Exception, pytest.fail.Exception):  # the latter is none, so that nobody catches it
            self.faults.append(Fault(case, traceback.format_exc(limit=-3)))
            if len(self.faults) >= FAULTS_MAX:
                raise Enough from None


@dataclass(frozen=True, slots=True)
class Section:
    """``holds`` is the promise in one line, ``budget`` says how much a form allows. ``prove`` tries
    the cases of a part; ``replay`` tries one and raises what it found."""

    name: str
    holds: str
    budget: Callable[[Form], str]
    parts: Callable[[Extent], Sequence[str]]
    prove: Callable[[Database, str, Extent, Tally], None]
    replay: Callable[[Database, str, str], object]


def proved(
    section: Section, part: str, database: Database, extent: Extent, until: float | None = None
) -> Tally:
    """Try what ``extent`` asks of a part. ``database`` is in use by the product, and empty."""
    tally = Tally(until=until)
    try:
        section.prove(database, part, extent, tally)
        assert tally.tried or tally.is_over, "it tried nothing"
    except Enough:
        pass
    except (Exception, pytest.fail.Exception):
        tally.faults.append(Fault("", traceback.format_exc()))
    return tally
