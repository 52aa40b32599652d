"""What every way of doing a piece of work has in common, and what a peer's session is."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol

import pymysql

from infra.bench.crowd import Acting, Client, Outcome
from infra.measuring.ground import Ground
from lockstep import settings
from lockstep.db import connection

PLENTY: Final = 10_000_000
NUMBERS: Final = 20_000

type Session = pymysql.Connection[pymysql.cursors.Cursor]


class WentWrong(Exception):
    """A way did not do what it is measured for."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``done`` orders, as the tables have it; ``lost`` pieces were sold too often or are in no
    counter; ``broken`` says what else does not hold."""

    done: int
    lost: int = 0
    broken: Sequence[str] = ()


class Way(Acting, Protocol):
    """One way to do a piece of work, on tables that are made anew for each run."""

    may_lose: ClassVar[bool]
    """Whether that is what it is here to show."""

    @property
    def name(self) -> str: ...

    def prepare(self, ground: Ground) -> None: ...

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict: ...


def one_by_one(numbers: Iterator[int], finish: Callable[[int], int]) -> Client:
    """Of orders that are there already, until there are no more."""

    def act() -> int | None:
        n = next(numbers, None)
        return None if n is None else finish(n)

    return Client(act)


# --- tables --------------------------------------------------------------------------------------


def make_peers(ground: Ground) -> None:
    """Their database: tables of theirs have names that ours have, too."""
    peers = peers_of(ground.schema)
    ground.execute(f"DROP DATABASE IF EXISTS {peers}", f"CREATE DATABASE {peers}")
    for schema in (ground.schema, peers):
        ground.execute(
            f"USE {schema}",
            "CREATE TABLE bench_number (i INT NOT NULL PRIMARY KEY)",
            f"SET SESSION cte_max_recursion_depth = {NUMBERS}",
            "INSERT INTO bench_number WITH RECURSIVE n AS "
            f"(SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {NUMBERS}) SELECT i FROM n",
        )


def peers_of(schema: str) -> str:
    return f"{schema}_peers"


def make_tables(ground: Ground, tables: dict[str, str], *statements: str) -> None:
    """A peer's tables, anew; then what fills them."""
    for name, columns in tables.items():
        ground.execute(
            f"USE {peers_of(ground.schema)}",
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} ({columns}) ENGINE = InnoDB",
        )
    if statements:
        ground.execute(f"USE {peers_of(ground.schema)}", *statements)


def ask(ground: Ground, query: str) -> tuple[Any, ...]:
    """One row of the peers' database."""
    with ground.session() as session, session.cursor() as cursor:
        session.select_db(peers_of(ground.schema))
        cursor.execute(query)
        return cursor.fetchone() or ()


# --- sessions ------------------------------------------------------------------------------------


@contextmanager
def peer_session(isolation: str | None = None) -> Iterator[Session]:
    """The product's own kind of session, with autocommit off: a transaction begins by itself, so
    that BEGIN costs a peer no round trip."""
    database = settings.database()
    database = replace(database, name=peers_of(database.name))
    session = connection.open_session(database, pymysql.cursors.Cursor)
    try:
        if isolation is not None:
            session.query(f"SET SESSION transaction_isolation = '{isolation}'")
        session.autocommit(False)
        yield session
    finally:
        session.close()
