"""Snapshots of a world, taken and restored: from one of them many ways on can be tried.

All of it: the rows, the messages in the queues, Alipay's trades and the notices that wait, and by
how much time went on. Rows travel in one round trip each way, so that a step costs little more than
what it delivers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import pymysql
from pymysql.constants import CLIENT

from infra.local.alipay_gateway.post import Letter
from infra.local.alipay_gateway.shapes import Trade
from tests.proof.world import World
from tests.support.database import Database, Row, connect
from tests.support.histories import Rows
from tests.support.wire import Message

type Session = pymysql.Connection[pymysql.cursors.DictCursor]

# A virtual column is made from the others.
_MADE = """
SELECT column_name AS name
FROM information_schema.columns
WHERE table_schema = %s
  AND generation_expression <> ''
"""


@dataclass(frozen=True)
class Snapshot:
    rows: Rows
    messages: Sequence[Message]
    trades: Mapping[str, Trade]
    numbers: Mapping[str, Sequence[str]]
    letters: Sequence[Letter]
    ahead: timedelta


class Snapshots:
    """Of one world."""

    def __init__(self, world: World, session: Session) -> None:
        database = world.database
        self._world, self._session = world, session
        # Both say nothing of what happened.
        silent = {"oms_order_transition", "ims_hot_turn"}
        self._tables = [name for name in database.tables() if name not in silent]
        self._made = {row["name"] for row in database.rows(_MADE, (database.name,))}
        self._now: Rows | None = None
        """The rows that are there, as long as nothing was done since."""

    def take(self) -> Snapshot:
        books = self._world.books
        return Snapshot(
            self._rows(),
            tuple(self._world.wire._messages),
            dict(books._trades),
            {number: tuple(trades) for number, trades in books._numbers.items()},
            tuple(self._world.alipay.service.post._letters),
            self._world.clock.ahead,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """For something to be done with the world next. Only tables that differ are written."""
        books, world = self._world.books, self._world
        books._trades = dict(snapshot.trades)
        books._numbers = {number: list(trades) for number, trades in snapshot.numbers.items()}
        world.alipay.service.post._letters = list(snapshot.letters)
        world.wire._messages = list(snapshot.messages)
        world.clock.ahead = snapshot.ahead
        now, self._now = self._now or self._rows(), None
        statements = [
            statement
            for table, rows in snapshot.rows.items()
            if rows != now[table]
            for statement in (f"DELETE FROM {table}", self._insert(table, rows))  # noqa: S608
        ]
        if any(statements):
            self._send("; ".join(filter(None, statements)))

    def _rows(self) -> Rows:
        reads = (f"SELECT * FROM {table} ORDER BY 1, 2" for table in self._tables)  # noqa: S608
        found = self._send("; ".join(reads))
        self._now = dict(zip(self._tables, found, strict=True))
        return self._now

    def _insert(self, table: str, rows: Sequence[Row]) -> str:
        whole = [{name: row[name] for name in row if name not in self._made} for row in rows]
        return insertion(self._session, table, whole)

    def _send(self, statements: str) -> list[list[Row]]:
        found = []
        with self._session.cursor() as cursor:
            cursor.execute(statements)
            found.append(list(cursor.fetchall()))
            while cursor.nextset():
                found.append(list(cursor.fetchall()))
        return found


@contextmanager
def snapshots_of(world: World) -> Iterator[Snapshots]:
    session = connect(world.database.server, CLIENT.MULTI_STATEMENTS)
    session.select_db(world.database.name)
    try:
        yield Snapshots(world, session)
    finally:
        session.close()


def insert(database: Database, table: str, rows: Sequence[Row]) -> None:
    """Write rows as they were read, ids among them."""
    if rows:
        database.execute(insertion(database.session, table, rows))


def insertion(session: Session, table: str, rows: Sequence[Row]) -> str:
    """The statement that does so; nothing where there are none."""
    if not rows:
        return ""
    columns = ", ".join(f"`{column}`" for column in rows[0])
    one = f"({', '.join(['%s'] * len(rows[0]))})"
    statement = f"INSERT INTO {table} ({columns}) VALUES {', '.join([one] * len(rows))}"  # noqa: S608
    with session.cursor() as cursor:
        return cursor.mogrify(statement, [value for row in rows for value in row.values()])
