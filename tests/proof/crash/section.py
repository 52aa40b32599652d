"""Break any trip out of the process, in any way, and let life go on: nothing is different.

Goal: a crash, a lost answer, a refusal or a deadlock at any point of any function changes nothing
of what is left in the end. Method: live a life (lives*.py) once undisturbed and count its trips
(trips.py); then once for each trip and each way in which it can break. Whoever called calls again,
some minutes pass, then hours until all is at rest; after each of the two the rows are those of the
undisturbed life. The long form breaks two trips in one life, the second wherever that life then is.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from lockstep.db import transaction
from lockstep.upkeep import ask_due
from tests.proof.crash import migrations, rest
from tests.proof.crash.all_lives import LIVES
from tests.proof.crash.lives import Act, Life
from tests.proof.crash.trips import DATABASE, DEATHS, Mode, Strike, Trip, Trips, Way
from tests.proof.section import Extent, Form, Section, Tally, naming
from tests.proof.world import World, a_world
from tests.support.database import Database
from tests.support.dying import outlive
from tests.support.histories import differences
from tests.support.inline import InlinePool

type Case = tuple[Strike, ...]

# More than two strikes can make necessary.
CALLS_MAX: Final = 6
ROUNDS_MAX: Final = 3
# Of each life: beside the commits in the fixed form, and of two strikes in the long one.
FIXED_CASES: Final = 2
PAIRS: Final = 40
MIGRATIONS: Final = "migrations"
# What can become of any trip, wherever it goes.
ANYWHERE: Final = (Mode.DIES_BEFORE, Mode.DIES_AFTER, Mode.NOT_DONE, Mode.ANSWER_LOST)


@dataclass(frozen=True, slots=True)
class Lived:
    """``calls`` is how often the act was called, ``trips`` what went out in that."""

    calls: int
    trips: Sequence[Trip]
    soon: rest.Rows
    late: rest.Rows


def live(database: Database, life: Life, strikes: Case = ()) -> Lived:
    """A life, struck so often. Raises where something does not hold whatever was struck."""
    with pytest.MonkeyPatch.context() as patch, a_world(database, policy=life.policy) as world:
        # One conversation at a time, and no pause between two tries: the same each time, and quick.
        patch.setattr(ask_due, "ThreadPoolExecutor", InlinePool)
        patch.setattr(transaction, "_PAUSE_SECONDS_MIN", 0.0)
        act = life.prepare(world)
        with Trips(strikes, world.wire).watched() as trips:
            calls = _insist(act)
            taken = tuple(trips.taken)
            for _ in range(ROUNDS_MAX):
                if len(trips.struck) < len(strikes):
                    _a_struck_minute(world)
            world.settle()
            world.minutes_pass()
            soon = late = rest.rows(world)
            if world.is_open():
                late = _hours_later(world)
        assert len(trips.struck) == len(strikes), "it was over before that trip"
        world.assert_at_rest()
        rest.check_sends(world)
        assert life.ends in {"", found := rest.ends(world)}, f"it ends {found}"
        return Lived(calls, taken, soon, late)


def _a_struck_minute(world: World) -> None:
    """A schedule that fails comes again in the next."""
    world.pass_time(timedelta(seconds=61))
    process: Callable[[], object]
    for process in (world.sweep, world.relay):
        with suppress(Exception):
            outlive(process, otherwise=None)
    world.settle()


def _hours_later(world: World) -> rest.Rows:
    world.books.set_balance(None)  # the seller pays in what is missing
    world.come_to_rest()
    return rest.rows(world)


def _insist(act: Act) -> int:
    """Call until the caller is content; how often that was."""
    for calls in range(1, CALLS_MAX + 1):
        try:
            if outlive(act, otherwise=False):
                return calls
        except AssertionError:
            raise
        except Exception:  # noqa: S112 - the caller sees a failed function, and calls again
            continue
    raise AssertionError(f"not content after {CALLS_MAX} calls")


def compare(expected: Lived, strikes: Case, lived: Lived) -> None:
    [first, *others] = strikes
    # Two mishaps may take longer than some minutes.
    for when in ("late",) if others else ("soon", "late"):
        differs = differences(getattr(expected, when), getattr(lived, when))
        assert not differs, "\n".join((f"{when}, against the undisturbed life:", *differs))
    struck = expected.trips[first.trip]
    if not others and struck.way in DATABASE and first.mode not in DEATHS:
        assert lived.calls == expected.calls, "the function itself should have tried again"


def _try(database: Database, life: Life, expected: Lived, case: Case) -> None:
    try:
        compare(expected, case, live(database, life, case))
    except Exception as fault:
        fault.add_note(f"struck first: {expected.trips[case[0].trip]}")
        raise


def _singles(expected: Lived) -> Sequence[Case]:
    """Every strike that makes a difference, and a death before anything."""
    return [(Strike(0, Mode.DIES_BEFORE),)] + [
        (Strike(nth, mode),)
        for nth, trip in enumerate(expected.trips)
        for mode in trip.distinct_modes
    ]


def _fixed(expected: Lived, singles: Sequence[Case], drawn: random.Random) -> list[Case]:
    """Each commit that is lost, or whose answer is; and some others."""
    commits = [nth for nth, trip in enumerate(expected.trips) if trip.way is Way.COMMIT]
    lost = [(Strike(nth, mode),) for nth in commits for mode in (Mode.NOT_DONE, Mode.ANSWER_LOST)]
    others = [case for case in singles if case not in lost]
    return lost + drawn.sample(others, min(FIXED_CASES, len(others)))


def _pairs(expected: Lived, drawn: random.Random) -> tuple[list[Case], int]:
    """Two strikes in one life, the second on one of the trips that follow; some, and how many
    there are."""
    firsts = [Strike(nth, mode) for nth, trip in enumerate(expected.trips) for mode in trip.modes]
    seconds = [Strike(nth, mode) for nth in range(len(expected.trips)) for mode in ANYWHERE]
    pairs = [(drawn.choice(firsts), drawn.choice(seconds)) for _ in range(PAIRS)]
    return list(dict.fromkeys(pairs)), len(firsts) * len(seconds)


def _cases(expected: Lived, part: str, extent: Extent) -> tuple[Sequence[Case], int]:
    """What is to be tried, and how much there is."""
    drawn = random.Random(f"{extent.seed}/{part}")
    if extent.form is Form.LONG:
        return _pairs(expected, drawn)
    singles = _singles(expected)
    if extent.form is Form.FIXED:
        return _fixed(expected, singles, drawn), len(singles)
    return singles, len(singles)


def _prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    if part == MIGRATIONS:
        migrations.prove(database, extent, tally)
        return
    life = LIVES[part]
    expected = live(database, life)
    cases, tally.possible = _cases(expected, part, extent)
    for case in cases:
        name = "+".join(map(str, case))
        tally.attempt(name, partial(_try, database, life, expected, case))


def _replay(database: Database, part: str, case: str) -> None:
    if part == MIGRATIONS:
        migrations.replay(database, case)
        return
    with naming(case):
        strikes = tuple(Strike.read(text) for text in case.split("+"))
    _try(database, LIVES[part], live(database, LIVES[part]), strikes)


def _budget(form: Form) -> str:
    return {
        Form.FIXED: f"every commit lost, and {FIXED_CASES} others a life",
        Form.BOUNDED: "every strike",
        Form.LONG: f"{PAIRS} pairs of strikes a life",
    }[form]


SECTION: Final = Section(
    name="crash",
    holds="a crash, a lost answer or a deadlock at any point changes nothing in the end",
    budget=_budget,
    parts=lambda _: [MIGRATIONS, *LIVES],
    prove=_prove,
    replay=_replay,
)
