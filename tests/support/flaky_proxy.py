"""A proxy before MySQL that loses a COMMIT on its way there, or its answer on the way back.

It hides the server's offer of TLS, so that it can read what passes. One COMMIT is cut after each
``arm``; everything else goes through.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto

from tests.support.database import Database

_COM_QUERY = 3
_CLIENT_SSL = 0x0800


class Cut(Enum):
    BEFORE_COMMIT = auto()  # the server never sees it, and rolls back
    AFTER_COMMIT = auto()  # the server has committed, and nobody hears of it


class FlakyProxy:
    """Listens on a port of its own and forwards to ``upstream``."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed: Cut | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def arm(self, cut: Cut) -> None:
        self._armed = cut

    def close(self) -> None:
        _end(self._listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                withhold = threading.Event()
                for work, arguments in (
                    (self._forward_requests, (client, server, withhold)),
                    (_forward_answers, (server, client, withhold)),
                ):
                    threading.Thread(target=work, args=arguments, daemon=True).start()

    def _forward_requests(
        self, client: socket.socket, server: socket.socket, withhold: threading.Event
    ) -> None:
        with suppress(OSError):
            while packet := _read_packet(client):
                cut = self._armed if _is_commit(packet) else None
                if cut is not None:
                    self._armed = None
                    self.cuts += 1
                if cut is Cut.BEFORE_COMMIT:
                    break
                if cut is Cut.AFTER_COMMIT:
                    withhold.set()
                server.sendall(packet)
                if cut is Cut.AFTER_COMMIT:
                    return  # the other direction sees the answer, keeps it, and ends both
        _end(client)
        _end(server)


def _forward_answers(
    server: socket.socket, client: socket.socket, withhold: threading.Event
) -> None:
    with suppress(OSError):
        client.sendall(_without_tls(_read_packet(server)))
        while (answer := server.recv(65536)) and not withhold.is_set():
            client.sendall(answer)
    _end(server)
    _end(client)


def _read_packet(source: socket.socket) -> bytes:
    """One protocol packet with its four bytes of header; empty at the end of the stream."""
    header = _read(source, 4)
    return header + _read(source, int.from_bytes(header[:3], "little")) if header else b""


def _read(source: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = source.recv(size - len(received))
        if not piece:
            return b""
        received += piece
    return received


def _is_commit(packet: bytes) -> bool:
    return packet[4] == _COM_QUERY and packet[5:] == b"COMMIT"


def _without_tls(greeting: bytes) -> bytes:
    """The server's greeting without its TLS capability.

    Header (4), protocol (1), version up to its zero byte, thread (4), salt (8), filler (1), flags.
    """
    at = greeting.index(0, 5) + 1 + 4 + 8 + 1
    flags = int.from_bytes(greeting[at : at + 2], "little") & ~_CLIENT_SSL
    return greeting[:at] + flags.to_bytes(2, "little") + greeting[at + 2 :]


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def between(database: Database) -> Iterator[FlakyProxy]:
    """A proxy before the tests' server."""
    proxy = FlakyProxy((database.server.host, database.server.port))
    try:
        yield proxy
    finally:
        proxy.close()
