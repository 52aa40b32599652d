"""A schema on the tests' own MySQL, and plain SQL to look into it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from infra import migrate
from infra.local import mysql
from infra.local.paths import TEST_HOME
from lockstep import settings
from lockstep.db import connection

type Row = dict[str, Any]

# The legal pairs are part of the schema, not of a test.
_KEPT = {"oms_order_transition", "schema_migration"}
_CACHED_SETTINGS = (
    settings.database,
    settings.alipay,
    settings.alipay_app,
    settings.alipay_notify_url,
    settings.alipay_return_url,
    settings.order_ttl_seconds,
    settings.payment_margin_seconds,
    settings.hold_grace_seconds,
    settings.reserving_limit_seconds,
    settings.member_id_claim,
    settings.late_payment_policy,
)


@dataclass(frozen=True)
class Database:
    """``name`` on ``server``. Its own session commits each statement, as an operator's would."""

    server: mysql.Server
    name: str
    session: "pymysql.Connection[pymysql.cursors.DictCursor]"

    @classmethod
    def create(cls, name: str, home: Path = TEST_HOME, *, durable: bool = False) -> "Database":
        """An empty schema called ``name``, replacing an older one, on the server of ``home``."""
        return cls.on(mysql.ensure(home, durable=durable), name)

    @classmethod
    def on(cls, server: mysql.Server, name: str) -> "Database":
        """The same, on a server that is up."""
        session = connect(server)
        with session.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
            cursor.execute(f"CREATE DATABASE {name}")
        session.select_db(name)
        migrate.load(session, migrate.SCHEMA.read_text(encoding="utf-8"))
        return cls(server, name, session)

    def again(self) -> "Database":
        """The same schema, by a new session: the server was away."""
        self.session.close()
        session = connect(self.server)
        session.select_db(self.name)
        return replace(self, session=session)

    def drop(self) -> None:
        self.execute(f"DROP DATABASE {self.name}")
        self.session.close()

    @contextmanager
    def in_use(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Let the product's own connections come here."""
        monkeypatch.setenv("DATABASE_HOST", self.server.host)
        monkeypatch.setenv("DATABASE_PORT", str(self.server.port))
        monkeypatch.setenv("DATABASE_NAME", self.name)
        monkeypatch.setenv("DATABASE_USER", self.server.user)
        monkeypatch.setenv("DATABASE_PASSWORD", self.server.password)
        # tests/integration/test_tls.py turns it on; others read what passes, or need no secrecy.
        monkeypatch.setenv("DATABASE_TLS", "off")
        forget_settings()
        yield
        connection.discard()
        forget_settings()

    @contextmanager
    def another_session(self) -> Iterator["pymysql.Connection[pymysql.cursors.DictCursor]"]:
        """A session with an open transaction, rolled back at the end: somebody in our way."""
        session = connect(self.server)
        session.select_db(self.name)
        session.begin()
        try:
            yield session
        finally:
            session.rollback()
            session.close()

    def empty(self) -> None:
        """No rows in any table; AUTO_INCREMENT goes on, as in life."""
        for name in self.filled():
            if name not in _KEPT:
                self.execute(f"DELETE FROM {name}")  # noqa: S608 - our own tables

    def tables(self) -> list[str]:
        sql = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = %s"
        return sorted(row["name"] for row in self.rows(sql, (self.name,)))

    def filled(self) -> list[str]:
        """The tables that have rows."""
        looks = [
            f"SELECT '{name}' AS name FROM DUAL WHERE EXISTS (SELECT 1 FROM {name})"  # noqa: S608
            for name in self.tables()
        ]
        return [row["name"] for row in self.rows(" UNION ALL ".join(looks))] if looks else []

    def rows(self, sql: str, arguments: Sequence[object] = ()) -> list[Row]:
        with self.session.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    def one(self, sql: str, arguments: Sequence[object] = ()) -> Row:
        """The single row of a query; another number of rows fails the test."""
        [row] = self.rows(sql, arguments)
        return row

    def value(self, sql: str, arguments: Sequence[object] = ()) -> Any:
        """The single column of the single row of a query."""
        [value] = self.one(sql, arguments).values()
        return value

    def execute(self, sql: str, arguments: Sequence[object] = ()) -> int:
        """Change something behind the product's back; the affected rows."""
        with self.session.cursor() as cursor:
            return cursor.execute(sql, arguments or None)

    def count(self, table: str, **equal: object) -> int:
        """How many rows of ``table`` have these column values."""
        where = " AND ".join(f"{column} <=> %s" for column in equal) or "TRUE"
        sql = f"SELECT COUNT(*) FROM {table} WHERE {where}"  # noqa: S608 - a test's own words
        return int(self.value(sql, list(equal.values())))

    def stock(self, sku_id: int) -> tuple[int, int]:
        """(on hand, locked) of a SKU."""
        row = self.one("SELECT stock, lock_stock FROM ims_sku_stock WHERE sku_id = %s", (sku_id,))
        return row["stock"], row["lock_stock"]

    def dump(self, tables: Sequence[str]) -> Mapping[str, list[Row]]:
        """Every row of ``tables``, to compare two histories by."""
        return {table: sorted(self.rows(f"TABLE {table}"), key=repr) for table in tables}


def forget_settings() -> None:
    """Let the next use read the environment again."""
    for setting in _CACHED_SETTINGS:
        setting.cache_clear()


def connect(
    server: mysql.Server, flags: int = CLIENT.FOUND_ROWS
) -> "pymysql.Connection[pymysql.cursors.DictCursor]":
    """A session that commits each statement."""
    return pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        client_flag=flags,
        ssl_disabled=True,
        init_command="SET time_zone = '+00:00'",
        cursorclass=pymysql.cursors.DictCursor,
    )
