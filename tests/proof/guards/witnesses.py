"""Which test misses which guard, where no row of a table of guards says so.

The names are written down by `search`, so that only one test need run a guard.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Final, Protocol

import tests.concurrency
from tests.concurrency.guards import Guard as Row
from tests.concurrency.taking_away import Clause
from tests.proof.guards import in_code, in_models
from tests.proof.guards import in_sql as guards_in_sql
from tests.proof.guards.equivalents import EQUIVALENTS
from tests.proof.guards.in_sql import SqlGuard

FILE: Final = Path(__file__).with_suffix(".json")


class Guard(Protocol):
    """A place in the product that can be taken away."""

    @property
    def module(self) -> str: ...
    @property
    def lines(self) -> frozenset[int]: ...
    @property
    def area(self) -> str: ...
    @property
    def key(self) -> str: ...
    def without(self) -> AbstractContextManager[None]: ...


@cache
def read() -> dict[str, str]:
    """Guard to test."""
    if not FILE.exists():
        return {}
    found: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@cache
def without_rows() -> tuple[Guard, ...]:
    """All guards in code and models, and those in SQL which no row of a table takes away."""
    in_sql = [guard for guard in guards_in_sql.all_guards() if not rows_of(guard)]
    return (*in_code.all_guards(), *in_models.all_guards(), *in_sql)


def wanted() -> list[Guard]:
    """Those of them that need a witness."""
    return [guard for guard in without_rows() if guard.key not in EQUIVALENTS]


def rows_of(guard: SqlGuard) -> list[Row]:
    """The rows of the tables of guards that take it, or a part of it, away."""
    return [row for _, row in rows() if any(_takes(away, guard) for away, _ in row.without)]


@cache
def rows() -> tuple[tuple[str, Row], ...]:
    """(table, row) of every table of guards."""
    return tuple(_rows())


def _rows() -> Iterator[tuple[str, Row]]:
    for found in pkgutil.iter_modules(tests.concurrency.__path__):
        if found.name.startswith(("test_guards_of_", "test_locks_of_")):
            table = importlib.import_module(f"tests.concurrency.{found.name}")
            yield from ((found.name, row) for row in table.GUARDS)


def _takes(away: object, guard: SqlGuard) -> bool:
    if not isinstance(away, Clause):
        return False
    if (away.store.__name__, away.statement) != (guard.module, guard.statement):
        return False
    sql = getattr(away.store, away.statement)
    return guard.is_gone_from(sql.replace(away.text, away.instead))
