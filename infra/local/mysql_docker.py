"""MySQL in a container, where a Docker engine answers."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from infra.local import mysqld, processes
from infra.local.steps import SetupError, step

IMAGE = "mysql:8.4"

# Inside the container it must listen on all interfaces; only this machine is let through to it.
SETTINGS = [*mysqld.SETTINGS, "--bind-address=*"]


def why_not() -> str | None:
    if shutil.which("docker") is None:
        return "no docker on the PATH"
    try:
        asked = _docker("info", seconds=10)
    except subprocess.TimeoutExpired:
        return "its engine does not answer"
    return None if asked.returncode == 0 else "no engine answers"


def find(home: Path) -> int | None:
    """The port of this home's container, if it runs."""
    if not (home / "container").exists():
        return None
    published = _docker("port", _name(home), "3306/tcp")
    return int(published.stdout.split(":")[-1]) if published.returncode == 0 else None


def start(home: Path, *, durable: bool) -> int:
    """Data lies in `home` under this user's own id, so that removing the folder removes it."""
    data = home / "data-docker"
    data.mkdir(exist_ok=True)
    (home / "container").write_text(_name(home))
    port = processes.free_port()
    with step(f"Starting {IMAGE} in Docker"):
        started = _docker(
            *("run", "--detach", "--rm", "--name", _name(home)),
            *("--user", f"{os.getuid()}:{os.getgid()}"),
            *("--publish", f"127.0.0.1:{port}:3306", "--volume", f"{data}:/var/lib/mysql"),
            *("--env", "MYSQL_ROOT_PASSWORD", IMAGE),
            *SETTINGS,
            *(mysqld.DURABLE if durable else mysqld.LAZY),
            # By way of the environment: arguments are there for every user of the machine to read.
            environment={"MYSQL_ROOT_PASSWORD": mysqld.root_password(home)},
        )
    if started.returncode != 0:
        raise SetupError(started.stderr.strip())
    return port


def stop(home: Path) -> bool:
    marker = home / "container"
    if not marker.exists():
        return False
    stopped = _docker("stop", marker.read_text())
    marker.unlink()
    return stopped.returncode == 0


def _name(home: Path) -> str:
    return f"lockstep-mysql-{hashlib.sha256(bytes(home)).hexdigest()[:12]}"


def _docker(
    *arguments: str, seconds: float | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, **(environment or {})},
    )
