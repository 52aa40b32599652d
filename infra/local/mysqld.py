"""A private mysqld: its own data, port, socket and root password, started from a given binary."""

import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from infra.local import certificates, processes
from infra.local.steps import SetupError, step

NAME = "mysqld"

# The kernel takes about 107 bytes for a socket's path; a clone may lie deeper than that.
SOCKET_PATH_MAX = 100

# What the code relies on, as on the server it is deployed against. The session settings that it can
# set itself it sets itself; these are the same ones for everybody else who connects.
SETTINGS = [
    "--bind-address=127.0.0.1",
    "--mysqlx=OFF",
    "--character-set-server=utf8mb4",
    "--default-time-zone=+00:00",
    "--transaction-isolation=READ-COMMITTED",
    "--innodb-lock-wait-timeout=3",
    "--max-connections=400",
    "--performance-schema=ON",
    # LOAD DATA and SELECT … INTO OUTFILE are not for us; the default folder need not exist.
    "--secure-file-priv=NULL",
]
DURABLE = ["--log-bin=binlog", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"]
# For tests: a crash of the machine may lose data, nothing else changes.
LAZY = ["--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF"]

# Runs inside the initialization, so that the server never listens without a password. Over TCP root
# comes from 127.0.0.1, which is another account to MySQL than localhost, the socket's.
FIRST_ACCOUNTS = """\
ALTER USER root@localhost IDENTIFIED BY '{password}';
CREATE USER root@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
"""


@dataclass(frozen=True)
class Binary:
    """How to call one mysqld, and the folders it cannot find by itself where it was unpacked."""

    command: tuple[str, ...]
    options: tuple[str, ...] = ()


def version_of(binary: Binary) -> str:
    done = subprocess.run(
        [*binary.command, "--version"], check=False, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr.strip()


def unsuitable(version: str) -> str | None:
    """Why a server that reports this version will not do, or None if it will."""
    if "mariadb" in version.lower():
        return f"it is MariaDB ({version})"
    found = re.search(r"(\d+)\.\d+", version)
    if found is None:
        return f"it does not tell its version: {version}"
    return None if int(found[1]) >= 8 else f"it is older than 8.0 ({version})"


def find(home: Path) -> int | None:
    """The port of the one that was started here, if it still runs."""
    running = processes.find(home, NAME)
    return running.port if running else None


def start(home: Path, binary: Binary, *, durable: bool, port: int | None = None) -> int:
    """Start it, on a free port or on the one that it had, and return that; `home` keeps the data
    from one time to the next."""
    # A folder for each release: data of a newer server would not open with an older one.
    release = _release(binary)
    data = home / f"data-{release}"
    if not data.exists():
        _initialize(home, binary, data)
    with step(f"Starting MySQL {release}"):
        port = port or processes.free_port()
        _launch(home, binary, data, port, DURABLE if durable else LAZY)
        return port


def stop(home: Path) -> bool:
    return processes.stop(home, NAME, seconds=60)


def root_password(home: Path) -> str:
    """Root's password, made at the first call and readable by its owner only."""
    file = home / "root-password"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24))
    return file.read_text()


def socket_path(home: Path) -> Path:
    socket = home / "mysqld.sock"
    if len(os.fsencode(socket)) <= SOCKET_PATH_MAX:
        return socket
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = base / f"lockstep-{hashlib.sha256(bytes(home)).hexdigest()[:12]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / "mysqld.sock"


def _release(binary: Binary) -> str:
    found = re.search(r"\d+\.\d+", version_of(binary))
    return found[0] if found else "unknown"


def _initialize(home: Path, binary: Binary, data: Path) -> None:
    """Into a folder that takes its name only when it is complete."""
    new = data.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with step("Making an empty database"), tempfile.NamedTemporaryFile("w", dir=home) as accounts:
        accounts.write(FIRST_ACCOUNTS.format(password=root_password(home)))
        accounts.flush()
        _run([*_call(binary, new), "--initialize-insecure", f"--init-file={accounts.name}"])
    new.rename(data)


def _launch(home: Path, binary: Binary, data: Path, port: int, flushing: list[str]) -> None:
    socket = socket_path(home)
    socket.unlink(missing_ok=True)
    tls = certificates.ensure(home / "tls")
    command = [
        *_call(binary, data),
        *SETTINGS,
        *flushing,
        f"--ssl-ca={tls.ca}",
        f"--ssl-cert={tls.certificate}",
        f"--ssl-key={tls.key}",
        f"--port={port}",
        f"--socket={socket}",
        f"--pid-file={data / 'mysqld.pid'}",
    ]
    processes.start(home, NAME, command, port, os.environ)
    processes.wait_until(home, NAME, lambda: processes.answers(port), seconds=60)


def _call(binary: Binary, data: Path) -> list[str]:
    # mysqld refuses to run as root unless it is told so by name.
    user = ["--user=root"] if os.geteuid() == 0 else []
    # --no-defaults must come first: the machine's own my.cnf is not about this server.
    return [*binary.command, "--no-defaults", *binary.options, *user, f"--datadir={data}"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-15:]
        raise SetupError("\n".join(["mysqld could not make its data folder:", *said]))
