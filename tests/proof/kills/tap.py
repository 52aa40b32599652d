"""A tap on the way from the functions to MySQL, SQS and Alipay: it sees each request pass, and can
stop time there, before the other side has it or when the other side has done it and answers.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Final

_COM_QUERY: Final = 3
_PIECE: Final = 1 << 16
_OF_HTTP: Final = re.compile(rb"X-Amz-Target: \w+\.(\w+)|method=([a-z.]+)", re.IGNORECASE)


class Fate(StrEnum):
    """Of the process that asks."""

    LIVES = auto()
    DIES_BEFORE = auto()
    """The request is never seen by anyone."""
    DIES_AFTER = auto()
    """It was carried out; the answer reaches nobody."""


type Decide = Callable[[str], Fate]
type Read = Callable[[bytes], str | None]


def of_mysql(sent: bytes) -> str | None:
    """The statement, where ``sent`` is one."""
    is_query = len(sent) > 4 and sent[3] == 0 and sent[4] == _COM_QUERY
    return " ".join(sent[5:].decode(errors="replace").split())[:60] if is_query else None


def of_http(sent: bytes) -> str | None:
    """POST and the operation, where ``sent`` begins a request."""
    if not sent.startswith(b"POST "):
        return None
    found = _OF_HTTP.search(sent)
    return f"POST {(found[1] or found[2]).decode() if found else ''}"


@dataclass(frozen=True)
class _Line:
    """A client's connection and its continuation. Either direction's end is the end of both."""

    client: socket.socket
    server: socket.socket
    read: Read
    decide: Decide
    kill: Callable[[], None]
    withholds: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        for pump in (self._ask, self._answer):
            threading.Thread(target=self._run, args=(pump,), daemon=True).start()

    def _ask(self) -> None:
        while sent := self.client.recv(_PIECE):
            what = self.read(sent)
            fate = Fate.LIVES if what is None else self.decide(what)
            if fate is Fate.DIES_BEFORE:
                self.kill()
                return
            if fate is Fate.DIES_AFTER:
                self.withholds.set()
            self.server.sendall(sent)

    def _answer(self) -> None:
        while said := self.server.recv(_PIECE):
            if self.withholds.is_set():
                self.kill()
                return
            self.client.sendall(said)

    def _run(self, pump: Callable[[], None]) -> None:
        with suppress(OSError):
            pump()
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def tap(port: int, read: Read, decide: Decide, kill: Callable[[], None]) -> Iterator[int]:
    """Forward to ``port``; the port to use instead. ``decide`` is asked about each request."""
    stops = threading.Event()

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            if stops.is_set():
                client.close()
                return
            server = socket.create_connection(("127.0.0.1", port))
            _Line(client, server, read, decide, kill).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            stops.set()
            # Wakes the thread that accepts, which then sees that it is over.
            socket.create_connection(listener.getsockname()).close()
            accepting.join()
