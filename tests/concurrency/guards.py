"""A guard, the proof that needs it, and what comes of the proof without it.

A guard that no proof misses is a guard that nobody proved. So each is taken away, and the small
scenario that it guards must come to something else: first to the next line of defence, named, where
there is one; when that is gone as well, to the damage.
"""

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import pymysql

from lockstep.db.errors import DuplicateKey, translate
from lockstep.errors import InvariantBroken
from tests.concurrency.taking_away import TakenAway
from tests.support.database import Database


@dataclass(frozen=True)
class Guard:
    """``proof`` comes to ``holds``; to each outcome of ``without`` once that is gone, and so on."""

    name: str
    proof: Callable[[Database], object]
    holds: object
    without: tuple[tuple[TakenAway, object], ...]

    def __str__(self) -> str:
        return self.name


def assert_missed(guard: Guard, database: Database) -> None:
    """Take the guard away, then what still catches the damage, and watch the proof change."""
    assert guard.without[-1][1] != guard.holds, "nobody would miss it"
    assert what_comes_of(guard.proof, database) == guard.holds
    with ExitStack() as gone:
        for away, outcome in guard.without:
            gone.enter_context(away(database))
            database.empty()
            assert what_comes_of(guard.proof, database) == outcome
        database.empty()


def what_comes_of(proof: Callable[[Database], object], database: Database) -> object:
    """The proof's value, or which line of defence refused it."""
    try:
        return proof(database)
    except DuplicateKey as refused:
        return f"refused by {refused.key}"
    except InvariantBroken as refused:
        return _named(refused)
    except pymysql.MySQLError as refused:  # from the test's own session
        return _named(translate(refused))


def _named(refused: Exception) -> str:
    constraint = re.search(r"\b(?:ck|fk|uk)_\w+|\bPRIMARY\b", str(refused))
    return f"refused by {constraint[0]}" if constraint else f"refused: {refused}"
