"""One MySQL session, opened on first use and kept for the life of the execution environment.

What every statement may rely on:
- READ COMMITTED: a guarded UPDATE and a locking read see the newest commit. A guarded UPDATE of
  0 rows keeps no lock, so nothing may be concluded from it later.
- autocommit is on and transactions are opened by BEGIN: none outlives a frozen Lambda.
- several statements may go in one text, so that they take one round trip (packet.py); a text that
  was not made for that is refused.
- PyMySQL leaves FOUND_ROWS off, so affected rows are rows *changed*: 1 means "I won".
- the server has shown a certificate for the very name that was asked for, or TLS was switched off
  by name; there is no falling back from the one to the other.
- time_zone is +00:00 and DATETIME comes back as aware UTC; strict mode truncates nothing.
"""

import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, LiteralString

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.converters import conversions, convert_datetime

from lockstep import secret, settings
from lockstep.db.errors import translate

type Row = dict[str, Any]
type Arguments = Sequence[object] | Mapping[str, object]

# A server that is there accepts at once; the rest of the time is for its answers.
CONNECT_SECONDS_MAX: Final = 3

_SQL_MODE: Final = (
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY"
)


class UnsupportedServer(Exception):
    """The server is not MySQL 8.0 or later; MariaDB lacks FOR SHARE and more."""


def _utc(text: str | bytes) -> datetime:
    moment = convert_datetime(text)
    assert isinstance(moment, datetime)  # noqa: S101 - strict mode stores no zero dates
    return moment.replace(tzinfo=UTC)


_CONVERSIONS: Final[dict[Any, Any]] = {
    **conversions,
    FIELD_TYPE.DATETIME: _utc,
    FIELD_TYPE.JSON: json.loads,
}


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except pymysql.MySQLError as error:
        raise translate(error) from error


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said to one statement: how many rows it changed (or read), the
    AUTO_INCREMENT id that it drew, the rows that it read."""

    changed: int
    new_id: int
    rows: list[Row]


class Connection:
    """A session that counts its round trips and raises engine errors by their own names."""

    def __init__(self, session: "pymysql.Connection[pymysql.cursors.DictCursor]") -> None:
        self._session = session
        self.round_trips = 0

    def execute(self, sql: LiteralString, arguments: Arguments = ()) -> int:
        """Run one statement; the number of rows changed (or read)."""
        return self._run(self.compose(sql, arguments)).rowcount

    def one(self, sql: LiteralString, arguments: Arguments = ()) -> Row | None:
        """The only row of a query, or None. Several rows are a programming error."""
        return only(self.all(sql, arguments))

    def all(self, sql: LiteralString, arguments: Arguments = ()) -> list[Row]:
        """Every row of a query."""
        return list(self._run(self.compose(sql, arguments)).fetchall())

    def compose(self, sql: LiteralString, arguments: Arguments = ()) -> str:
        """The text of one statement. Only the arguments may have a semicolon: the session takes
        several statements, and nobody is to smuggle one in where a text was put together."""
        if ";" in sql:
            raise ValueError("several statements where one was expected")
        return self._session.cursor().mogrify(sql, arguments or None)

    def send_together(self, texts: Sequence[str]) -> list[Answer]:
        """Run statements in one round trip, one after the other; what was said to each.

        The first error ends them: those before it are done, those behind it are not. It is raised.
        """
        self.round_trips += 1
        answers = []
        with self._session.cursor() as cursor, _translated():
            cursor.execute(";".join(texts))
            there_is_more: bool | None = True
            while there_is_more:
                answers.append(_answer(cursor))
                there_is_more = cursor.nextset()
        return answers

    def close(self) -> None:
        self._session.close()

    @property
    def thread_id(self) -> int:
        """The engine's id of this session, as its lock tables show it."""
        return int(self._session.thread_id())  # type: ignore[no-untyped-call]

    def _run(self, text: str) -> "pymysql.cursors.DictCursor":
        self.round_trips += 1
        cursor = self._session.cursor()
        with _translated():
            cursor.execute(text)
        return cursor


def only(rows: list[Row]) -> Row | None:
    """The only one of ``rows``, or None. Several are a programming error."""
    if len(rows) > 1:
        raise ValueError(f"{len(rows)} rows where at most one was expected")
    return rows[0] if rows else None


def _answer(cursor: "pymysql.cursors.DictCursor") -> Answer:
    return Answer(cursor.rowcount, int(cursor.lastrowid or 0), list(cursor.fetchall()))


def connect(database: settings.DatabaseSettings) -> Connection:
    """Open a session. Raises ConnectionLost, UnsupportedServer."""
    with _translated():
        return Connection(open_session(database, pymysql.cursors.DictCursor))


def open_session[C: pymysql.cursors.Cursor](
    database: settings.DatabaseSettings, cursors: type[C]
) -> "pymysql.Connection[C]":
    """The driver's own session, for migrations as well; its errors are the driver's."""
    user, password = credentials(database)
    session = pymysql.connect(
        host=database.host,
        port=database.port,
        database=database.name,
        user=user,
        password=password,
        charset="utf8mb4",
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
        connect_timeout=min(CONNECT_SECONDS_MAX, database.timeout_seconds),
        read_timeout=database.timeout_seconds,
        write_timeout=database.timeout_seconds,
        cursorclass=cursors,
        conv=_CONVERSIONS,
        ssl=_trusting(database.tls_ca) if database.tls else None,
        ssl_disabled=not database.tls,
    )
    _refuse_other_servers(session)  # first: others do not know all of the variables
    session.query(_session_variables(database.lock_wait_seconds))
    return session


@cache
def _trusting(ca: str | None) -> ssl.SSLContext:
    """Verify certificate and name, by the certificates in ``ca`` or by the system's.

    Made here, because PyMySQL without a CA file does not check the name, and with no arguments at
    all checks nothing and goes on without TLS where the server offers none.
    """
    context = ssl.create_default_context(cafile=ca)
    # Authorities of databases are often older than the rules that Python 3.13 holds them to.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _session_variables(lock_wait_seconds: int | None) -> str:
    """One SET, one round trip. A proxy tracks the first three, so they do not pin its
    connection."""
    variables = [
        "SESSION time_zone = '+00:00'",
        f"SESSION sql_mode = '{_SQL_MODE}'",
        "SESSION transaction_isolation = 'READ-COMMITTED'",
    ]
    if lock_wait_seconds is not None:
        variables.append(f"SESSION innodb_lock_wait_timeout = {lock_wait_seconds:d}")
    return "SET " + ", ".join(variables)


def _refuse_other_servers(session: "pymysql.Connection[Any]") -> None:
    version = str(session.get_server_info())  # type: ignore[no-untyped-call]
    major = version.split(".", 1)[0]
    if "mariadb" in version.lower() or not major.isdigit() or int(major) < 8:
        session.close()
        raise UnsupportedServer(f"MySQL 8.0 or later is needed, the server says {version}")


def credentials(database: settings.DatabaseSettings) -> tuple[str, str]:
    """User and password, from the secret where one is named."""
    if database.secret_arn is None:
        return database.user or "", database.password or ""
    login = secret.read(database.secret_arn)
    return login["username"], login["password"]


class _Kept(threading.local):
    """One connection a thread; a Lambda execution environment has one thread."""

    connection: Connection | None = None


_kept = _Kept()


def current() -> Connection:
    """This thread's connection, opened on first use."""
    if _kept.connection is None:
        _kept.connection = connect(settings.database())
    return _kept.connection


def discard() -> None:
    """Forget this thread's connection; the next use opens another."""
    connection, _kept.connection = _kept.connection, None
    if connection is not None:
        with suppress(pymysql.MySQLError):  # it may be closed already
            connection.close()
