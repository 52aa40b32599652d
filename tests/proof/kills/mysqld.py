"""A mysqld of the proof's own that flushes what it commits, is killed, and comes back on the same
data and port. No other server is ever touched."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from infra.local import mysqld, mysqld_binaries, processes
from infra.local.mysql import Server
from infra.local.paths import PROOF_HOME_DURABLE
from infra.local.waiting import wait_until

FOLDER: Final = PROOF_HOME_DURABLE / "mysql"


@dataclass(frozen=True)
class Mysqld:
    binary: mysqld.Binary
    server: Server

    def kill(self) -> None:
        """SIGKILL, and wait for the end of all its threads."""
        running = processes.find(FOLDER, mysqld.NAME)
        assert running is not None, "it had ended before it was killed"
        os.kill(running.pid, signal.SIGKILL)
        wait_until(lambda: _is_gone(running.pid), "the end of mysqld")

    def restart(self) -> None:
        """It recovers, and then answers."""
        mysqld.start(FOLDER, self.binary, durable=True, port=self.server.port)


def _is_gone(pid: int) -> bool:
    """Not even a zombie, which the next mysqld would take for the owner of its socket."""
    processes.find(FOLDER, mysqld.NAME)  # waits for it, as its parent must
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def a_binary() -> mysqld.Binary | str:
    """What can be started and killed here, without fetching anything; or why there is none."""
    found = mysqld_binaries.from_path()
    if isinstance(found, str) and mysqld_binaries.DISTRIBUTION.exists():
        return mysqld_binaries.from_packages()
    return found


@contextmanager
def a_durable_mysqld() -> Iterator[Mysqld]:
    """One at a time on this machine's clone; ended with the block, and so is one that an earlier
    run left behind."""
    binary = a_binary()
    assert not isinstance(binary, str), binary
    with processes.locked(FOLDER, "kills"):
        mysqld.stop(FOLDER)
        try:
            port = mysqld.start(FOLDER, binary, durable=True)
            password = mysqld.root_password(FOLDER)
            yield Mysqld(binary, Server("127.0.0.1", port, "root", password, None))
        finally:
            mysqld.stop(FOLDER)
