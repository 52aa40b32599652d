"""Our payment notice: signed as Alipay signs it, verified, stored and applied by the function."""

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

from functions import alipay_notify
from infra.bench import our_rows
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.ours import own_session
from infra.bench.way import Verdict, WentWrong
from infra.local import alipay, alipay_sign
from infra.local.lambda_events import Context
from infra.local.paths import BENCH_HOME
from infra.measuring.ground import Ground

PRICE: Final = Decimal("9.90")


def let_notices_come() -> None:
    """The function's settings, for this process and those that it starts."""
    ours = alipay.ensure(BENCH_HOME)
    os.environ["ALIPAY_APP_ID"] = ours.app_id
    os.environ["ALIPAY_SELLER_IDS"] = ours.seller_id
    os.environ["ALIPAY_PUBLIC_KEY"] = ours.public_key


def settling(events: Iterable[dict[str, Any]]) -> Callable[[], int | None]:
    """One of these notices after the other, each of which the function must settle."""
    left = iter(events)
    context = Context()

    def act() -> int | None:
        event = next(left, None)
        if event is None:
            return None
        if alipay_notify.handler(event, context)["body"] != "success":
            raise WentWrong("a notice was not settled")
        return 1

    return act


@dataclass(frozen=True)
class OurNotice:
    orders: int
    skus: int = 1000

    name: ClassVar[str] = "ours: alipay_notify"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        our_rows.clear(ground)
        our_rows.add_skus(ground, self.skus)
        our_rows.add_orders(ground, "PENDING_PAYMENT", self.orders, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        with own_session():
            yield Client(settling(self._notices(seat)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [paid] = ground.row("SELECT COUNT(*) FROM oms_order WHERE status = 'PAID'")
        return Verdict(paid, abs(paid - outcome.done), our_rows.broken(ground, at_rest=False))

    def _notices(self, seat: Seat) -> list[dict[str, Any]]:
        shop = alipay.ensure(BENCH_HOME)
        key = alipay_sign.load_key(shop.signing_key_file)
        return [
            _event(
                alipay_sign.form_body(
                    alipay_sign.payment_notice(
                        shop.app_id, shop.seller_id, f"20261130{n:016d}", f"T{n}", PRICE
                    ),
                    key,
                )
            )
            for n in range(seat.number + 1, self.orders + 1, seat.clients)
        ]


def _event(body: bytes) -> dict[str, Any]:
    """The form as an HTTP API hands it over."""
    return {
        "version": "2.0",
        "requestContext": {"requestId": "bench"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
