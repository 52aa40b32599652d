"""Background processes of a home: started once, found again later, and only they are ever ended.

Each has a record `<home>/run/<name>.json` with its pid, the port it serves and the moment of its
birth. A pid alone is not enough: it may belong to somebody else by the time it is read.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from infra.local.steps import SetupError

# Children of this very process: they must be waited for, or they stay behind as zombies.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Running:
    pid: int
    port: int
    birth: str


def find(home: Path, name: str) -> Running | None:
    """The process of that name, if the one that was started here still lives."""
    try:
        record = Running(**json.loads(_record(home, name).read_text()))
    except FileNotFoundError:
        return None
    return record if _birth(record.pid) == record.birth else None


def start(
    home: Path, name: str, command: Sequence[str | Path], port: int, environment: Mapping[str, str]
) -> Running:
    """Start it in a session of its own, so that Ctrl-C in the terminal does not reach it."""
    log = log_file(home, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[child.pid] = child
    running = Running(pid=child.pid, port=port, birth=_birth(child.pid) or "gone")
    record = _record(home, name)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(running)))
    return running


def wait_until(home: Path, name: str, ready: Callable[[], bool], seconds: float) -> None:
    """Wait for a process to serve; one that died or stays dumb is an error that quotes its log."""
    deadline = time.monotonic() + seconds
    while not ready():
        if find(home, name) is None:
            raise SetupError(f"{name} ended at once.\n{_log_tail(home, name)}")
        if time.monotonic() > deadline:
            raise SetupError(f"{name} did not answer in {seconds:.0f} s.\n{_log_tail(home, name)}")
        time.sleep(0.05)


def stop(home: Path, name: str, seconds: float = 20) -> bool:
    """End it and its children, politely first. False where nothing of ours was running."""
    running = find(home, name)
    if running is not None:
        os.killpg(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while find(home, name) is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        if find(home, name) is not None:
            os.killpg(running.pid, signal.SIGKILL)
    _record(home, name).unlink(missing_ok=True)
    return running is not None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """One at a time among all processes of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def log_file(home: Path, name: str) -> Path:
    return home / "log" / f"{name}.log"


def _log_tail(home: Path, name: str) -> str:
    log = log_file(home, name)
    return "\n".join([f"The end of {log}:", *log.read_text(errors="replace").splitlines()[-15:]])


def _record(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def _birth(pid: int) -> str | None:
    """When the process was born, or None if there is none (a zombie is none)."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
        return None
    if Path("/proc/self/stat").exists():
        return _birth_in_proc(pid)
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C"}
    found = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    state, _, born = found.stdout.strip().partition(" ")
    return born.strip() if state and not state.startswith("Z") else None


def _birth_in_proc(pid: int) -> str | None:
    """Linux, exact to a clock tick, and there without the procps package."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may itself hold spaces; state is field 3, birth field 22.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
