"""Interleavings: two or three operations that meet, stepped statement by statement in every order,
or in as many as the extent asks for.

A case is named by whose step is next, a letter each, and is the same history each time (unless two
sides that one step lets go at once deadlock: the engine chooses which it ends). A step is
a statement that waits, keeps waiting, shows something to the others or sees what they did: plain
reads too, since under READ COMMITTED each sees the newest commit. What is no step is listed, with
the reason why nothing is lost, in sides.py.

After each case the sides' answers are one of the ends that the model of their encounter allows;
nothing raised, and no deadlock where the design's order of locks promises none; and then, with
everything delivered and paid back, every invariant holds, and stock, money and the orders' statuses
are what that end says.

The product sets READ COMMITTED and relies on it. Under REPEATABLE READ, in the long form, answers
may be stale and deadlocks are only counted, since gaps are locked there; but nothing may be raised,
and the rest has to be one that the model knows.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Never

import pytest

from tests.proof.interleavings.encounters import Encounter, End, Given, judge, judge_rest
from tests.proof.interleavings.late import LATE
from tests.proof.interleavings.money import MONEY
from tests.proof.interleavings.orders import ORDERS
from tests.proof.interleavings.sides import stepping
from tests.proof.interleavings.stage import Choose, Stage
from tests.proof.interleavings.stock import STOCK
from tests.proof.interleavings.tree import Tree, following
from tests.proof.interleavings.upkeep import UPKEEP
from tests.proof.section import Extent, Form, Section, Tally, of_name
from tests.support.database import Database, forget_settings
from tests.support.threads import Deadlocks

# Cases of one encounter; small ones have fewer.
CASES_MAX: Final = {Form.FIXED: 10, Form.BOUNDED: 300, Form.LONG: 1500}
ENCOUNTERS: Final = {
    encounter.name: encounter for encounter in (*ORDERS, *STOCK, *MONEY, *LATE, *UPKEEP)
}
_REPEATABLE_READ: Final = "@repeatable-read"


@dataclass
class Meeting:
    """An encounter on a database, case after case."""

    encounter: Encounter
    database: Database
    stage: Stage
    deadlocks: Deadlocks
    repeatable_read: bool

    def case(self, choose: Choose) -> End:
        """Play one and judge it; its end. Raises what did not hold, with the steps that led to
        it."""
        self.database.empty()
        forget_settings()
        with pytest.MonkeyPatch.context() as patch:
            given, before = Given(self.database, patch), self.deadlocks.seen
            works = self.encounter.prepare(given)
            try:
                self.stage.play(works, choose)
                outcomes = [side.outcome for side in self.stage.sides]
                if self.repeatable_read:
                    return judge_rest(self.encounter, given, outcomes)
                if not self.encounter.may_deadlock:
                    assert self.deadlocks.seen == before, "a deadlock"
                return judge(self.encounter, given, outcomes)
            except Exception as fault:
                fault.add_note("\n".join(self.stage.told))
                raise


@contextmanager
def meeting(
    database: Database, encounter: Encounter, *, repeatable_read: bool
) -> Iterator[Meeting]:
    with pytest.MonkeyPatch.context() as patch, stepping(repeatable_read=repeatable_read):
        stage = Stage(database, encounter.sides)
        try:
            yield Meeting(encounter, database, stage, Deadlocks(patch), repeatable_read)
        finally:
            stage.close()


def _parts(extent: Extent) -> Sequence[str]:
    names = list(ENCOUNTERS)
    if extent.form is Form.LONG:
        names += [name + _REPEATABLE_READ for name in ENCOUNTERS]
    return names


def _meeting(database: Database, part: str) -> AbstractContextManager[Meeting]:
    name = part.removesuffix(_REPEATABLE_READ)
    return meeting(database, ENCOUNTERS[name], repeatable_read=name != part)


def _prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    with _meeting(database, part) as met:
        tree = Tree(extent.seed, is_steady=not met.encounter.victim_varies)
        walk(met, tally, tree, CASES_MAX[extent.form])


def walk(met: Meeting, tally: Tally, tree: Tree, cases_max: int) -> None:
    """Try so many cases, each another one, or all there are."""
    seen: set[End] = set()
    with_deadlock = 0
    try:
        while tree.leaves < cases_max and not tree.is_walked:
            before = met.deadlocks.seen
            end = _end_of(met, tree.walk())
            tree.arrived()
            with_deadlock += met.deadlocks.seen > before
            tally.attempt(met.stage.schedule, functools.partial(_see, seen, end))
    finally:
        tally.possible, tally.is_bound = tree.leaves_in_all, not tree.is_walked
        if with_deadlock:
            tally.notes.append(f"{with_deadlock} of {tally.tried} saw a deadlock, and went on")
    if tree.is_walked and not tally.faults and not met.repeatable_read:
        unseen = met.encounter.ends.keys() - seen
        assert not unseen, f"the model allows what never happens: {unseen}"


def _see(seen: set[End], end: Callable[[], End]) -> None:
    seen.add(end())


def _end_of(met: Meeting, choose: Choose) -> Callable[[], End]:
    """A case has its name only when it is over: whoever wants its end then gets that, or the
    fault."""
    try:
        end = met.case(choose)
    except Exception as fault:
        return functools.partial(_raise, fault)
    return lambda: end


def _raise(fault: Exception) -> Never:
    raise fault


def _replay(database: Database, part: str, case: str) -> None:
    with _meeting(database, part) as met:
        sides = {side.name: side for side in met.stage.sides}
        for name in case:
            of_name(sides, name)
        met.case(following(case))


SECTION: Final = Section(
    "interleavings",
    "whose step is next decides who is first, and nothing else",
    lambda form: f"{CASES_MAX[form]:,} orders of steps an encounter",
    _parts,
    _prove,
    _replay,
)
