"""Alipay's gateway as a test wants it: a real HTTP server that signs as Alipay does.

It is told what to answer; the rules of trades are the local Alipay's, not this one's.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from infra.local import alipay_sign
from infra.local.certificates import Certificates
from lockstep.alipay.gateway import Gateway
from lockstep.alipay.keys import Keys
from lockstep.settings import AlipayAppSettings

APP_ID = "2021000100000001"


@cache
def alipay_key() -> RSAPrivateKey:
    return alipay_sign.new_key()


@cache
def app_key() -> RSAPrivateKey:
    return alipay_sign.new_key()


@cache
def strangers_key() -> RSAPrivateKey:
    return alipay_sign.new_key()


@dataclass(frozen=True)
class Asked:
    """A request as it arrived. Parameters of the address and of the form, none in both."""

    verb: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: Mapping[str, str]

    @property
    def params(self) -> dict[str, str]:
        assert not self.query.keys() & self.form.keys()
        return self.query | self.form

    @property
    def content(self) -> dict[str, Any]:
        content = json.loads(self.params["biz_content"])
        assert isinstance(content, dict)
        return content


type Handler = BaseHTTPRequestHandler
type Behaviour = Callable[[Handler, Asked], None]


@dataclass
class Server:
    url: str
    behaviour: Behaviour
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    """Set at the end, for a behaviour that waits for it."""

    def gateway(self, **changes: Any) -> Gateway:
        """A client of ours that is set up for it."""
        return a_gateway(self.url, **changes)

    def answers(self, **fields: object) -> None:
        """From now on, these fields, signed."""
        self.behaviour = answering(fields)


def a_gateway(
    url: str,
    *,
    public_keys: tuple[RSAPrivateKey, ...] | None = None,
    certificates: tuple[str, str] | None = None,
) -> Gateway:
    keys = public_keys or (alipay_key(),)
    app_cert_sn, root_cert_sn = certificates or (None, None)
    app = AlipayAppSettings(
        app_id=APP_ID,
        gateway_url=url,
        public_keys=tuple(map(alipay_sign.public_key_base64, keys)),
        private_key=alipay_sign.private_key_pem(app_key()).decode(),
        app_cert_sn=app_cert_sn,
        alipay_root_cert_sn=root_cert_sn,
    )
    return Gateway(app, Keys(app_key(), tuple(key.public_key() for key in keys)))


def sent(handler: Handler, body: bytes, status: int = 200, **headers: str) -> None:
    """A whole answer, and the end of the connection."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def sending(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    return lambda handler, _: sent(handler, body, status, **headers)


def answering(fields: Mapping[str, object], key: RSAPrivateKey | None = None) -> Behaviour:
    """``fields`` with code 10000, signed by Alipay or by ``key``."""

    def behave(handler: Handler, asked: Asked) -> None:
        answer = {"code": "10000", "msg": "Success", **fields}
        sent(
            handler,
            alipay_sign.sign_response(asked.params["method"], answer, key or alipay_key()),
        )

    return behave


@contextmanager
def running(
    behaviour: Behaviour | None = None, tls: Certificates | None = None
) -> Iterator[Server]:
    """A server on a port of its own, gone at the end with all that it was still answering."""

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            address = urlsplit(self.path)
            asked = Asked(
                self.command,
                address.path,
                _unique(address.query),
                _unique(body.decode("ascii")),
                dict(self.headers),
            )
            server.asked.append(asked)
            server.behaviour(self, asked)

        def log_message(self, *_: object) -> None:
            pass

    class _Listener(ThreadingHTTPServer):
        daemon_threads = False  # joined at the end

        def handle_error(self, *_: object) -> None:
            """A client that had enough is what these tests are about."""

    listener = _Listener(("127.0.0.1", 0), _Handler)
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.certificate, tls.key)
        listener.socket = context.wrap_socket(
            listener.socket, server_side=True, do_handshake_on_connect=False
        )
    scheme = "https" if tls else "http"
    server = Server(
        f"{scheme}://127.0.0.1:{listener.server_port}/gateway.do", behaviour or answering({})
    )
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        listener.shutdown()
        listener.server_close()
        thread.join()


def _unique(text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)
