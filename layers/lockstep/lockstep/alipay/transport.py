"""One HTTP exchange with a bound on everything: seconds, bytes and hops.

The standard library's client, since a socket's time-out begins anew with each byte that drips in,
and only who holds the socket can measure what is left of the whole. A connection for each exchange
is what lets several threads share a gateway.
"""

import http.client
import io
import ssl
import time
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from socket import SOCK_STREAM, create_connection, getaddrinfo, socket
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

type Seconds = float

# A gateway that is there accepts at once; the rest of the time is for its answer.
CONNECT_SECONDS_MAX: Final = 3

_FORM: Final = "application/x-www-form-urlencoded;charset=utf-8"


class NoAnswer(Exception):
    """Nothing came that can be read. What was asked may have been done all the same."""


@dataclass(frozen=True, slots=True)
class Received:
    body: bytes
    date: str | None
    """The server's clock, as its header says it."""


def exchange(url: str, form: bytes | None, *, timeout_seconds: Seconds, bytes_max: int) -> Received:
    """POST ``form``, or GET where there is none. Follows no redirect. Raises NoAnswer."""
    deadline = time.monotonic() + timeout_seconds
    try:
        parts = urlsplit(url)
        with closing(_connection(parts)) as connection:
            connection.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]
            _connect(connection, deadline)
            target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
            headers = {"Content-Type": _FORM} if form is not None else {}
            connection.request("GET" if form is None else "POST", target, form, headers)
            response = connection.getresponse()
            return Received(_body(response, bytes_max), response.getheader("Date"))
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise NoAnswer(f"{type(fault).__name__}: {fault}") from fault


def _body(response: http.client.HTTPResponse, bytes_max: int) -> bytes:
    if response.status != 200:
        raise NoAnswer(f"HTTP {response.status}")
    body = response.read(bytes_max + 1)
    if len(body) > bytes_max:
        raise NoAnswer(f"more than {bytes_max} bytes")
    if response.length:  # a bounded read takes an early end for the end
        raise NoAnswer(f"{response.length} bytes are missing")
    return body


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    if not url.hostname:
        raise ValueError("the address names no host")
    match url.scheme:
        case "https":
            return http.client.HTTPSConnection(url.hostname, url.port, context=_trusting())
        case "http":
            return http.client.HTTPConnection(url.hostname, url.port)
    raise ValueError("the address is neither https nor http")


def _connect(connection: http.client.HTTPConnection, deadline: float) -> None:
    """Each step gets what the one before has left; so does what is sent then, as a whole."""
    connection.sock = _reached(connection.host, connection.port, deadline)
    if isinstance(connection, http.client.HTTPSConnection):
        connection.sock.settimeout(_left(deadline))
        connection.sock = _trusting().wrap_socket(connection.sock, server_hostname=connection.host)
    connection.sock.settimeout(_left(deadline))


def _reached(host: str, port: int, deadline: float) -> socket:
    """The first of the host's addresses that answers, each tried with no more than is left."""
    fault = OSError("the name leads nowhere")
    for *_, address in getaddrinfo(host, port, type=SOCK_STREAM):
        try:
            return create_connection(
                (str(address[0]), address[1]), min(CONNECT_SECONDS_MAX, _left(deadline))
            )
        except OSError as refused:
            fault = refused
    raise fault


@cache
def _trusting() -> ssl.SSLContext:
    """The system's authorities, certificate and name verified. Its making takes 20 ms."""
    return ssl.create_default_context()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("out of time")
    return left


class _Response(http.client.HTTPResponse):
    """Reads its status, headers and body with no more time than is left."""

    def __init__(self, sock: socket, *arguments: Any, deadline: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Clocked(sock, deadline))


class _Clocked(io.RawIOBase):
    def __init__(self, sock: socket, deadline: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
