"""Where the experiments run: a MySQL of their own that writes through to the disk, with the
product's schema, and threads that each have a session."""

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import pymysql

from infra import migrate
from infra.local import mysql
from infra.local.paths import EXPERIMENTS_HOME
from lockstep.db import connection

SCHEMA: Final = "lockstep_experiments"
PATIENCE_SECONDS: Final = 60

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
def a_ground() -> Iterator[Ground]:
    """Started for the experiments and ended after them; the product's connections come here."""
    server = mysql.ensure(EXPERIMENTS_HOME, durable=True)
    try:
        with mysql.connect(server) as session, session.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
            cursor.execute(f"CREATE DATABASE {SCHEMA}")
            session.select_db(SCHEMA)
            migrate.load(session, migrate.SCHEMA.read_text(encoding="utf-8"))
        _let_the_product_come(server)
        yield Ground(server, SCHEMA)
    finally:
        connection.discard()
        mysql.stop(EXPERIMENTS_HOME)


def _let_the_product_come(server: mysql.Server) -> None:
    os.environ["DATABASE_HOST"] = server.host
    os.environ["DATABASE_PORT"] = str(server.port)
    os.environ["DATABASE_NAME"] = SCHEMA
    os.environ["DATABASE_USER"] = server.user
    os.environ["DATABASE_PASSWORD"] = server.password
    os.environ["DATABASE_TLS"] = "off"


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(": ")[2]
    return platform.machine()


# --- threads -------------------------------------------------------------------------------------


def in_rounds[T](
    ground: Ground, rounds: Sequence[T], *sides: Callable[[Session, T], bool]
) -> list[list[bool]]:
    """Give each of ``rounds`` to all ``sides`` at the same moment; what each side came to."""
    barrier = threading.Barrier(len(sides), timeout=PATIENCE_SECONDS)

    def run(side: Callable[[Session, T], bool]) -> list[bool]:
        with _own_session(ground) as session:
            return [(barrier.wait(), side(session, one))[1] for one in rounds]

    with ThreadPoolExecutor(len(sides)) as pool, _hushed():
        return [list(outcomes) for outcomes in pool.map(run, sides)]


def crowd(
    ground: Ground,
    threads: int,
    act: Callable[[Session, int], bool],
    begun: Callable[[], None] = lambda: None,
) -> int:
    """Let so many threads act, each again and again, until one of its acts says that it is over;
    how often it was not. ``begun`` is told when all are connected."""
    serial = count(1)
    barrier = threading.Barrier(threads, begun, timeout=PATIENCE_SECONDS)

    def run(_: int) -> int:
        done = 0
        with _own_session(ground) as session:
            barrier.wait()
            while act(session, next(serial)):
                done += 1
        return done

    with ThreadPoolExecutor(threads) as pool, _hushed():
        return sum(pool.map(run, range(threads)))


def a_second(
    ground: Ground, threads: int, seconds: float, act: Callable[[Session, int], None]
) -> int:
    """How often a second so many threads can act."""
    until = float("inf")

    def begin() -> None:
        nonlocal until
        until = time.monotonic() + seconds

    def acted(session: Session, n: int) -> bool:
        act(session, n)
        return time.monotonic() < until

    return int(crowd(ground, threads, acted, begin) / seconds)


@contextmanager
def _own_session(ground: Ground) -> Iterator[Session]:
    """A thread's, and the product's own."""
    try:
        with ground.session() as session:
            connection.current()
            yield session
    finally:
        connection.discard()


@contextmanager
def _hushed() -> Iterator[None]:
    """The product writes its metrics to where the tables go."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield
