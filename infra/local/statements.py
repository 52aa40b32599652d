"""Count the statements of a deployed function's transaction, as MySQL itself saw them.

BEGIN and COMMIT are counted too. Some go together in one round trip, which the engine does not
tell: those are counted where they are made, by the tests. The engine's own history of statements is
read, so nothing in the product has to count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.local import mysql

WATCH = """
    UPDATE performance_schema.setup_consumers
    SET enabled = %s
    WHERE name = 'events_statements_history_long'
"""
FORGET = "TRUNCATE TABLE performance_schema.events_statements_history_long"
HISTORY = """
    SELECT thread_id, sql_text
    FROM performance_schema.events_statements_history_long
    WHERE current_schema = %s
      AND sql_text IS NOT NULL
    ORDER BY thread_id, event_id
"""

# What only this transaction does.
MARKS = {
    "a one-line order, placed": "INSERT INTO oms_order_request",
    "a first payment notice": "INSERT INTO oms_order_payment",
    "a confirmed hold": "SET state = 'CONFIRMED'",
    "a released hold": "SET state = 'RELEASED'",
    "a cancelled order": "close_reason = 'CANCELLED'",
}


@dataclass
class Watch:
    """Once the watch has ended, ``costs`` has the statements of what was done, by its name."""

    costs: dict[str, int] = field(default_factory=dict)


@contextmanager
def watched(home: Path, schema: str) -> Iterator[Watch]:
    """Watch the statements in ``schema`` while the block runs."""
    watch = Watch()
    with mysql.connect(mysql.ensure(home)) as session, session.cursor() as cursor:
        cursor.execute(WATCH, ("YES",))
        cursor.execute(FORGET)
        try:
            yield watch
            cursor.execute(HISTORY, (schema,))
            for transaction in _transactions(cursor.fetchall()):
                for name, mark in MARKS.items():
                    if any(mark in statement for statement in transaction):
                        watch.costs[name] = len(transaction)
        finally:
            cursor.execute(WATCH, ("NO",))
            session.commit()


def _transactions(history: Any) -> Iterator[list[str]]:
    """The statements from each BEGIN to its COMMIT, of one session at a time."""
    open_now: dict[int, list[str]] = {}
    for thread_id, statement in history:
        if statement == "BEGIN":
            open_now[thread_id] = []
        if thread_id in open_now:
            open_now[thread_id].append(statement)
        if statement == "COMMIT" and thread_id in open_now:
            yield open_now.pop(thread_id)
