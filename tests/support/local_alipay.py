"""The local Alipay inside a test's own process: real HTTP, books of its own, and a clock to set.

with local_alipay() as alipay:                     notices go to `alipay.sink`, not over HTTP
    alipay.sink = lambda body: "failure"           what the seller answers
    alipay.gateway().query(out_trade_no="O1")      the product's client, over real HTTP
    alipay.pay("O1", "9.90")                       as a person at the cashier
    alipay.faults.add("alipay.trade.refund", "lose_response")
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from infra.local import alipay_sign
from infra.local.alipay_gateway.envelope import App
from infra.local.alipay_gateway.faults import Faults
from infra.local.alipay_gateway.journal import Journal
from infra.local.alipay_gateway.server import Server
from infra.local.alipay_gateway.service import Service
from infra.local.alipay_gateway.shapes import Clock, Trade, utc_now
from lockstep.alipay.gateway import Gateway
from lockstep.alipay.keys import Keys, load_keys
from lockstep.settings import AlipayAppSettings
from tests.support.notices import APP_ID, SELLER_ID

# As fast as can be: a whole schedule of resends within two seconds.
FAST = Fraction(1, 50_000)


@cache
def key_of(whose: str) -> RSAPrivateKey:
    """One pair for each side, made once a test run: `whose` is "app" or "alipay"."""
    return alipay_sign.new_key()


@cache
def _loaded(private_key: str, public_keys: tuple[str, ...]) -> Keys:
    """To check a private key takes longer than all that most tests do with it."""
    return load_keys(private_key, public_keys)


@dataclass
class FakeClock:
    """Stands still until it is told to go on."""

    now: datetime = datetime(2026, 10, 24, 2, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go(self, **time: float) -> None:
        self.now += timedelta(**time)


@dataclass
class PassingClock:
    """The real time, and as much more as it was told to go ahead; each thread may date back what it
    does."""

    ahead: timedelta = timedelta(0)
    _thread: threading.local = field(default_factory=threading.local)

    def __call__(self) -> datetime:
        return utc_now() + self.ahead - getattr(self._thread, "back", timedelta(0))

    @contextmanager
    def back(self, time: timedelta) -> Iterator[None]:
        self._thread.back = time
        try:
            yield
        finally:
            self._thread.back = timedelta(0)


@dataclass
class LocalAlipay:
    """`notices` are the bodies that were sent, oldest first; `sink` says what they are answered."""

    service: Service
    sink: Callable[[bytes], str]
    notices: list[bytes] = field(default_factory=list)

    @property
    def faults(self) -> Faults:
        return self.service.faults

    def gateway(self) -> Gateway:
        """The product's own client, set up for this Alipay. It knows the real time only."""
        app = AlipayAppSettings(
            app_id=self.service.app.app_id,
            gateway_url=self.service.gateway_url,
            public_keys=(alipay_sign.public_key_base64(key_of("alipay")),),
            private_key=alipay_sign.private_key_pem(key_of("app")).decode(),
            app_cert_sn=None,
            alipay_root_cert_sn=None,
        )
        return Gateway(app, _loaded(app.private_key, app.public_keys))

    def pay(self, out_trade_no: str, amount: str) -> Trade:
        """As a person at the cashier; also twice, late, or for what nobody asked."""
        return self.service.books.pay_anyway(out_trade_no, Decimal(amount))

    def follow(self, link: str) -> int:
        """As a browser does; the status of the answer. Alipay hears of the order only now."""
        url = urlsplit(link)
        with closing(HTTPConnection(url.netloc, timeout=10)) as connection:
            connection.request("GET", f"{url.path}?{url.query}")
            return connection.getresponse().status

    def words(self) -> list[dict[str, str]]:
        """What the notices say."""
        return [dict(parse_qsl(body.decode(), keep_blank_values=True)) for body in self.notices]

    def take(self, _: str, body: bytes) -> str:
        self.notices.append(body)
        return self.sink(body)


def a_service(
    base_url: str = "http://127.0.0.1:1",
    *,
    clock: Clock = utc_now,
    factor: Fraction = FAST,
    journal: Path | None = None,
    sink: Callable[[bytes], str] = lambda _: "success",
    app_id: str = APP_ID,
    merchant: str | None = "http://127.0.0.1:1/alipay/notify",
) -> LocalAlipay:
    """Without HTTP: its notices are sent by `service.post.send_due()`, when a test says so."""
    service = Service(
        app=App(app_id, key_of("app").public_key()),
        seller_id=SELLER_ID,
        key=key_of("alipay"),
        base_url=base_url,
        clock=clock,
        factor=factor,
        journal=Journal(journal),
    )
    alipay = LocalAlipay(service, sink)
    service.post.send = alipay.take
    if merchant is not None:
        service.post.find_merchant_at(merchant)
    return alipay


@contextmanager
def local_alipay(
    *,
    clock: Clock = utc_now,
    factor: Fraction = FAST,
    journal: Path | None = None,
    sink: Callable[[bytes], str] = lambda _: "success",
) -> Iterator[LocalAlipay]:
    """Served on a free port until the test is over; its notices go out as time goes by."""
    server = Server()
    alipay = a_service(server.base_url, clock=clock, factor=factor, journal=journal, sink=sink)
    server.start(alipay.service)
    try:
        yield alipay
    finally:
        server.stop()
