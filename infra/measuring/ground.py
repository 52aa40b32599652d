"""Where figures are taken: a MySQL of their own that writes through to the disk, with the product's
schema; what it and the machine are."""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql

from infra import migrate
from infra.local import mysql
from lockstep.db import connection

type Session = pymysql.Connection[pymysql.cursors.Cursor]

WHAT_IT_IS: Final = """
SELECT @@version, @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@log_bin,
       @@innodb_buffer_pool_size DIV 1048576
"""


@dataclass(frozen=True)
class Ground:
    server: mysql.Server
    schema: str

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Each statement commits itself, until somebody begins a transaction."""
        with mysql.connect(self.server, self.schema) as session:
            session.autocommit(True)
            yield session

    def execute(self, *statements: str) -> None:
        with self.session() as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def row(self, query: str) -> Any:
        with self.session() as session, session.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()

    def fill(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        with self.session() as session, session.cursor() as cursor:
            cursor.executemany(statement, rows)

    def says(self) -> list[str]:
        """The machine and the engine, as they are and not as they were asked for."""
        version, flush, sync, log, pool = self.row(WHAT_IT_IS)
        return [
            f"Machine: {os.cpu_count()} cores, {_processor()}, {platform.system()}, "
            f"Python {platform.python_version()}",
            f"MySQL {version}: innodb_flush_log_at_trx_commit={flush}, sync_binlog={sync}, "
            f"log_bin={log}, buffer pool {pool} MB",
        ]


@contextmanager
def a_ground(home: Path, schema: str) -> Iterator[Ground]:
    """Started in ``home`` and ended afterwards; the product's connections come to ``schema``."""
    server = mysql.ensure(home, durable=True)
    try:
        with mysql.connect(server) as session, session.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
            cursor.execute(f"CREATE DATABASE {schema}")
            session.select_db(schema)
            migrate.load(session, migrate.SCHEMA.read_text(encoding="utf-8"))
        _let_the_product_come(server, schema)
        yield Ground(server, schema)
    finally:
        connection.discard()
        mysql.stop(home)


def _let_the_product_come(server: mysql.Server, schema: str) -> None:
    os.environ["DATABASE_HOST"] = server.host
    os.environ["DATABASE_PORT"] = str(server.port)
    os.environ["DATABASE_NAME"] = schema
    os.environ["DATABASE_USER"] = server.user
    os.environ["DATABASE_PASSWORD"] = server.password
    os.environ["DATABASE_TLS"] = "off"


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(": ")[2]
    return platform.machine()
