"""A MySQL for this home, from the first source that serves: `ensure` and `stop`.

In order: a server named in the environment, mysqld on the PATH, Docker, packages fetched without
root. A source that will not do is passed over, and the reason is printed.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pymysql
from pymysql.connections import Connection

from infra.local import certificates, mysql_docker, mysqld, mysqld_binaries
from infra.local.processes import locked
from infra.local.steps import SetupError, note

NAMED = "LOCKSTEP_MYSQL_URL"

NOTHING_SERVES = f"""\
No MySQL 8.0 or newer could be had on this machine. Any one of these will do:
  a server of yours   export {NAMED}=mysql://root:password@127.0.0.1:3306
  mysqld              macOS: brew install mysql · Ubuntu: apt install mysql-server-core-8.0
  Docker              its engine running; the image {mysql_docker.IMAGE} is used
  Debian              apt-get and Debian's keyring are enough, no root is needed
"""


@dataclass(frozen=True)
class Server:
    """Where to connect as an account that may create databases and users."""

    host: str
    port: int
    user: str
    password: str
    socket: str | None
    ca: str | None = None
    """The authority to verify the server by, where it is one that we have."""


def ensure(home: Path, *, durable: bool = True) -> Server:
    """A server that answers, started if need be; the same one for everybody who asks for `home`."""
    folder = home / "mysql"
    with locked(folder, "mysql"):
        for source, server in _servers(folder, durable=durable):
            if isinstance(server, Server):
                return server
            note(f"MySQL: not {source}: {server}")
    raise SetupError(NOTHING_SERVES)


def stop(home: Path) -> bool:
    """End what `ensure` started for this home; a server that was there before stays as it is."""
    folder = home / "mysql"
    with locked(folder, "mysql"):
        # Both, always: the source may have changed between two calls.
        stopped = [mysqld.stop(folder), mysql_docker.stop(folder)]
    return any(stopped)


def connect(server: Server, database: str | None = None) -> Connection:
    return pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        database=database,
        connect_timeout=5,
    )


def _servers(folder: Path, *, durable: bool) -> Iterator[tuple[str, Server | str]]:
    """Each source with its server, or with the reason why not; lazily, so the first that serves
    is the last one tried."""
    named = os.environ.get(NAMED)
    if named:
        yield "the server named in the environment", _named(named)
    if (port := mysqld.find(folder)) is not None:
        yield "the one already running", _private(folder, port)
    if (port := mysql_docker.find(folder)) is not None:
        yield "the container already running", _in_docker(folder, port)
    yield "mysqld on the PATH", _started(folder, mysqld_binaries.from_path(), durable=durable)
    yield "Docker", _docker(folder, durable=durable)
    yield "Debian's packages", _started(folder, mysqld_binaries.from_packages(), durable=durable)


def _named(url: str) -> Server | str:
    parts = urlsplit(url)
    if parts.scheme != "mysql" or not parts.hostname:
        return f"{NAMED} does not read mysql://user:password@host:port"
    user, password = unquote(parts.username or "root"), unquote(parts.password or "")
    return _probed(Server(parts.hostname, parts.port or 3306, user, password, None))


def _started(folder: Path, binary: mysqld.Binary | str, *, durable: bool) -> Server | str:
    if isinstance(binary, str):
        return binary
    try:
        return _private(folder, mysqld.start(folder, binary, durable=durable))
    except SetupError as error:
        return str(error)


def _private(folder: Path, port: int) -> Server | str:
    password, socket = mysqld.root_password(folder), mysqld.socket_path(folder)
    ca = certificates.ensure(folder / "tls").ca
    return _probed(Server("127.0.0.1", port, "root", password, str(socket), str(ca)))


def _docker(folder: Path, *, durable: bool) -> Server | str:
    trouble = mysql_docker.why_not()
    if trouble is not None:
        return trouble
    try:
        return _in_docker(folder, mysql_docker.start(folder, durable=durable))
    except SetupError as error:
        return str(error)


def _in_docker(folder: Path, port: int) -> Server | str:
    server = Server("127.0.0.1", port, "root", mysqld.root_password(folder), None)
    return _probed(server, seconds=90)


def _probed(server: Server, seconds: float = 0) -> Server | str:
    """The server if it is one that will do; `seconds` is how long it may take to answer at all."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return mysqld.unsuitable(_version(server)) or server
        except pymysql.err.OperationalError as error:
            if time.monotonic() >= deadline:
                return f"{server.host}:{server.port} lets nobody in: {error.args[-1]}"
        time.sleep(0.5)


def _version(server: Server) -> str:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CONCAT(VERSION(), ' ', @@version_comment)")
        row = cursor.fetchone()
    return str(row[0]) if row else ""
