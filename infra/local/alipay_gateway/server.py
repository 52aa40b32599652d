"""The local Alipay over HTTP, on loopback only."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, override
from urllib.parse import parse_qsl, unquote, urlsplit

from infra.local.alipay_gateway import cashier, control
from infra.local.alipay_gateway.replies import HTML, Reply

if TYPE_CHECKING:
    from infra.local.alipay_gateway.service import Service

HOST = "127.0.0.1"
# Bodies are forms of a few fields.
BODY_MAX = 1 << 20
TICK_SECONDS = 0.2
# How long a stop may take.
POLL_SECONDS = 0.02


class Server(ThreadingHTTPServer):
    """Serves in threads of its own between `start` and `stop`; port 0 takes a free one."""

    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True
    service: "Service"

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self._ticking = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    def start(self, service: "Service") -> None:
        self.service = service
        service.post.start()
        for work in (lambda: self.serve_forever(POLL_SECONDS), self._tick):
            threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        self._ticking.set()
        self.service.release()
        self.shutdown()
        self.server_close()
        self.service.post.stop()

    def _tick(self) -> None:
        """Close trades as their time ends, even if nobody looks."""
        while not self._ticking.wait(TICK_SECONDS):
            self.service.books.close_due()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An idle connection that a client keeps.
    timeout = 60
    server: Server

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_MAX:
            self._send(Reply(413))
            return
        reply = self._route(method, self.rfile.read(length))
        if reply is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._send(reply)

    def _route(self, method: str, body: bytes) -> Reply | None:
        service = self.server.service
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        language = cashier.language(query, self.headers.get("Accept-Language", ""))
        place, _, rest = url.path.removeprefix("/").partition("/")
        match method, place:
            case "GET" | "POST", "gateway.do":
                return service.call(url.query, body, language)
            case "GET", "cashier":
                return cashier.show(service, unquote(rest), language)
            case "POST", "cashier":
                form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
                return cashier.act(service, unquote(rest), form, language)
            case "GET", "bill":
                return self._bill(service.bills.fetch(rest))
            case _, "control" if self._is_local():
                return control.answer(service, method, f"/{rest}", query, body)
            case _:
                return Reply(404, b"There is nothing here.")

    def _bill(self, archive: bytes | None) -> Reply:
        if archive is None:
            return Reply(403, b"This link is no longer good.")
        return Reply(200, archive, "application/zip")

    def _is_local(self) -> bool:
        """A page of another site, opened on this machine, has no business here."""
        host = self.headers.get("Host", "").partition(":")[0]
        return host in {HOST, "localhost"} and "Origin" not in self.headers

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        if reply.location is not None:
            self.send_header("Location", reply.location)
        if reply.body or reply.content_type != HTML:
            self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(reply.body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a log of each request helps nobody here."""
