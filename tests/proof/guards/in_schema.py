"""The guards that stand in the schema, as the engine itself lists them, and each one's trial.

    checks     each conjunct of each CHECK
    keys       each unique key, and each primary key that the product chooses the value of
    pairs      each pair of states: legal in the model, or not in the table; and the two foreign
               keys that judge by it

The rows that are tried are those of tests/integration/test_schema_constraints.py: what it shows to
be refused must be taken once the guard is gone.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

import pymysql

from lockstep.orders.model import ORDER_TRANSITIONS, OrderStatus
from tests.concurrency.taking_away import constraint
from tests.integration.test_schema_constraints import BROKEN_CHECKS, UNIQUE_COLUMNS, UNIQUE_KEYS
from tests.proof.guards.conjuncts import conjuncts, unwrapped
from tests.support.database import Database
from tests.support.raw_rows import insert_row

_CHECKS: Final = """
SELECT t.table_name AS of_table, c.constraint_name AS name, c.check_clause AS clause
FROM information_schema.check_constraints AS c
JOIN information_schema.table_constraints AS t
    USING (constraint_schema, constraint_name)
WHERE c.constraint_schema = %s
ORDER BY 1, 2
"""
_FOREIGN_KEYS: Final = """
SELECT table_name AS of_table, constraint_name AS name
FROM information_schema.referential_constraints
WHERE constraint_schema = %s
ORDER BY 1, 2
"""
# The engine names the character set of every text that it has read.
_CHARSET: Final = re.compile(r"_(?:ascii|utf8mb4)'")
_PAIRS: Final = "oms_order_transition"
# An order's CHECKs have a word on its status as well; these are what a row of it needs.
_NEEDED: Final[Mapping[str, Mapping[str, object]]] = {"CLOSED": {"close_reason": "EXPIRED"}}


@dataclass(frozen=True, slots=True)
class SchemaGuard:
    """``trial`` takes it away and raises where nothing is missed."""

    name: str
    trial: Callable[[], object]


def guards_of(database: Database) -> Iterator[SchemaGuard]:
    yield from _checks(database)
    yield from _keys(database)
    yield from _foreign_keys(database)
    yield from _pairs(database)


# --- checks ---------------------------------------------------------------------------------------


def _checks(database: Database) -> Iterator[SchemaGuard]:
    for row in database.rows(_CHECKS, (database.name,)):
        table, check = row["of_table"], row["name"]
        operands = _operands(_CHARSET.sub("'", row["clause"].replace("\\'", "'")))
        for nth, operand in enumerate(operands):
            rest = [*operands[:nth], *operands[nth + 1 :]]
            trial = partial(_check_is_missed, database, table, check, rest)
            yield SchemaGuard(f"{check}: {operand}", trial)


def _check_is_missed(database: Database, table: str, check: str, rest: list[str]) -> None:
    of_table, broken = BROKEN_CHECKS[check]
    assert of_table == table
    rows = [partial(insert_row, database, table, **changes) for changes in broken]
    assert not any(_is_taken(database, row) for row in rows)
    with constraint(table, f"CHECK {check}")(database):
        if rest:
            clause = " AND ".join(f"({one})" for one in rest)
            database.execute(f"ALTER TABLE {table} ADD CONSTRAINT {check} CHECK ({clause})")
        assert any(_is_taken(database, row) for row in rows), "no row is taken without it"


def _operands(clause: str) -> list[str]:
    """Of its `and`, which the engine writes with all its brackets, and without those."""
    inner = unwrapped(clause)
    parts = [text for _, text in conjuncts(inner)]
    return [inner] if len(parts) == 1 else [one for part in parts for one in _operands(part)]


# --- keys -----------------------------------------------------------------------------------------


def _keys(database: Database) -> Iterator[SchemaGuard]:
    for row in database.rows(UNIQUE_COLUMNS, (database.name,)):
        name: str = row["name"]
        table, key = name.split(".")
        trial = _pairs_need_their_key if table == _PAIRS else _key_is_missed
        yield SchemaGuard(name, partial(trial, database, table, key))


def _key_is_missed(database: Database, table: str, key: str) -> None:
    of_table, changes = UNIQUE_KEYS[f"{table}.{key}"]
    assert of_table == table
    second = partial(insert_row, database, table, **changes)
    insert_row(database, table)
    assert not _is_taken(database, second)
    database.empty()
    with constraint(table, "PRIMARY KEY" if key == "PRIMARY" else f"KEY {key}")(database):
        insert_row(database, table)
        assert _is_taken(database, second), "a second row is refused without it"
    database.empty()


def _pairs_need_their_key(database: Database, table: str, key: str) -> None:
    """It cannot be taken away: the foreign keys lean on it, and the engine says so."""
    assert key == "PRIMARY"
    try:
        database.execute(f"ALTER TABLE {table} DROP PRIMARY KEY")
    except pymysql.MySQLError:
        return
    raise AssertionError("the foreign keys do without it")


# --- pairs ----------------------------------------------------------------------------------------


def _foreign_keys(database: Database) -> Iterator[SchemaGuard]:
    for row in database.rows(_FOREIGN_KEYS, (database.name,)):
        yield SchemaGuard(row["name"], partial(_foreign_key_is_missed, database, **row))


def _foreign_key_is_missed(database: Database, of_table: str, name: str) -> None:
    illegal = ("PAID", "PENDING_PAYMENT")
    assert of_table not in _takers(database, *illegal)
    with constraint(of_table, f"FOREIGN KEY {name}")(database):
        assert of_table in _takers(database, *illegal), "an illegal pair is refused without it"


def _pairs(database: Database) -> Iterator[SchemaGuard]:
    for source, target in product(OrderStatus, repeat=2):
        trial = partial(_pair_is_missed, database, source, target)
        yield SchemaGuard(f"pair {source} -> {target}", trial)


def _pair_is_missed(database: Database, source: OrderStatus, target: OrderStatus) -> None:
    """What the engine takes is what the model says, in orders and in their trail; not so once the
    table says otherwise."""
    is_legal = target in ORDER_TRANSITIONS[source]
    both = {"oms_order", "oms_order_event"}
    assert _takers(database, source, target) == (both if is_legal else set())
    with _toggled(database, source, target, is_legal=is_legal):
        assert _takers(database, source, target) == (set() if is_legal else both)


@contextmanager
def _toggled(database: Database, source: str, target: str, *, is_legal: bool) -> Iterator[None]:
    here = f"FROM {_PAIRS} WHERE from_status = '{source}' AND to_status = '{target}'"
    there = f"INTO {_PAIRS} (from_status, to_status) VALUES ('{source}', '{target}')"
    database.execute(f"DELETE {here}" if is_legal else f"INSERT {there}")
    try:
        yield
    finally:
        database.execute(f"INSERT {there}" if is_legal else f"DELETE {here}")


def _takers(database: Database, source: str, target: str) -> set[str]:
    """The tables that take this step."""
    needed = dict(_NEEDED.get(target, {}))
    order = partial(insert_row, database, "oms_order", prev_status=source, status=target, **needed)
    event = partial(insert_row, database, "oms_order_event", from_status=source, to_status=target)
    steps = {"oms_order": order, "oms_order_event": event}
    return {table for table, step in steps.items() if _is_taken(database, step)}


def _is_taken(database: Database, insert: Callable[[], object]) -> bool:
    """Whether the engine takes the row, which is gone again afterwards."""
    database.execute("BEGIN")
    try:
        insert()
    except pymysql.MySQLError:
        return False
    finally:
        database.execute("ROLLBACK")
    return True
