"""Ask the optimizer how it would run a statement, and read its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.database import Database, Row

type Arguments = Sequence[object] | Mapping[str, object]


@dataclass(frozen=True)
class Plan:
    """How each table of a statement is reached: its alias, the key used, and what that costs."""

    keys: Mapping[str, str | None]
    scanned: tuple[str, ...]
    sorts: bool
    is_plain_insert: bool


def plan_of(database: Database, sql: str, arguments: Arguments = ()) -> Plan:
    """The plan of one statement, which is not run."""
    with database.session.cursor() as cursor:
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {sql}", arguments or None)
        rows = list(cursor.fetchall())
    reached = [row for row in rows if row["table"] and not _is_made_by_the_statement(row)]
    return Plan(
        keys={row["table"]: row["key"] for row in reached},
        scanned=tuple(row["table"] for row in reached if row["type"] in {"ALL", "index"}),
        sorts=any("Using filesort" in (row["Extra"] or "") for row in rows),
        is_plain_insert=[row["select_type"] for row in rows] == ["INSERT"],
    )


def _is_made_by_the_statement(row: Row) -> bool:
    """A derived table, a list of values that is read as one, or what an INSERT writes to."""
    is_derived = row["table"].startswith("<") or "Table function" in (row["Extra"] or "")
    return is_derived or row["select_type"] == "INSERT"
