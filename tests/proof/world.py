"""The deployed system inside one process: the real functions, queues that deliver when they are
told to, the local Alipay's own books and signatures, and time that passes by SQL.

    with a_world(database) as world:
        order_no = world.place("k1").document["order"]["order_no"]
        number = world.start(order_no).document["out_trade_no"]
        world.pay(number)            as a person at the cashier
        world.tell()                 Alipay sends its notices, the notify function answers
        world.deliver()              the queues hand their messages to the functions
        world.come_to_rest()         hours pass, with sweep and relay, until nothing is open

Nothing happens by itself and nothing runs in a thread, so that a history is the same each time.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from functions import relay_outbox, sweep_expired
from infra.local import invariants
from infra.local.alipay_gateway.books import Books
from infra.local.alipay_gateway.shapes import Trade
from lockstep.alipay import gateway
from lockstep.alipay.transport import NoAnswer, Received
from tests.support import api, http_events, money_books, notices, passing_time
from tests.support.builders import a_sku
from tests.support.database import Database, forget_settings
from tests.support.dying import outlive
from tests.support.http_events import Answer
from tests.support.lambda_context import Context
from tests.support.local_alipay import LocalAlipay, PassingClock, a_service, key_of
from tests.support.money_storm import ROUND, open_ends
from tests.support.wire import Wire

MEMBER: Final = 42
ROUNDS_MAX: Final = 40
# What a sweep's report counts, apart from questions that came to nothing.
_DONE: Final = ("orders_closed", "holds_settled", "restaged", "notices_decided")


@dataclass
class World:
    database: Database
    alipay: LocalAlipay
    clock: PassingClock
    wire: Wire = field(default_factory=lambda: Wire(seed=0))
    _until: dict[str, str | None] = field(default_factory=dict)
    """When each order is over, as its member was told."""

    @property
    def books(self) -> Books:
        """Alipay's own."""
        return self.alipay.service.books

    # --- members -------------------------------------------------------------------------------

    def place(
        self, key: str, lines: Mapping[int, int] | None = None, member: int = MEMBER
    ) -> Answer:
        """POST /orders."""
        wanted = [{"sku_id": sku, "quantity": n} for sku, n in (lines or {1001: 1}).items()]
        answer = api.ask(http_events.post_order({"lines": wanted}, member=member, key=key))
        if answer.status == 201:
            order = answer.document["order"]
            self._until[order["order_no"]] = order["expires_at"]
        return answer

    def cancel(self, order_no: str, member: int = MEMBER) -> Answer:
        return api.ask(http_events.cancel_order(order_no, member=member))

    def start(self, order_no: str, product: str = "page", member: int = MEMBER) -> Answer:
        """POST /orders/{order_no}/payments, and the browser follows the link that is answered."""
        answer = api.ask(http_events.post_payment(order_no, {"product": product}, member=member))
        if answer.status in {200, 201}:
            if "pay_url" in answer.document:
                self.alipay.service.call(urlsplit(answer.document["pay_url"]).query, b"", "en")
            self._assert_ends_in_time(order_no, answer.document["out_trade_no"])
        return answer

    def _assert_ends_in_time(self, order_no: str, out_trade_no: str) -> None:
        until, asked = self._until.get(order_no), self.books.request(out_trade_no)
        if until is not None and asked is not None:
            in_time = asked.expires_at <= datetime.fromisoformat(until)
            assert in_time, "it can be paid after its order's time"

    def pay(self, out_trade_no: str, amount: Decimal | None = None) -> Trade:
        """At the cashier; without a page, late or of another sum where ``amount`` is given."""
        if amount is not None:
            return self.books.pay_anyway(out_trade_no, amount)
        return self.books.pay(self.books.open(out_trade_no).trade_no)

    # --- what happens by itself in life ----------------------------------------------------------

    def tell(self) -> int:
        """Alipay sends the notices that are due; how many."""
        return self.alipay.service.post.send_due()

    def deliver(self, queue: str | None = None) -> int:
        """The queues, or one of them, give what they have to the functions, once; how many
        messages."""
        return self.wire.deliver(100, queue)

    def relay(self) -> dict[str, Any]:
        return dict(relay_outbox.handler({}, Context(milliseconds=60_000)))

    def sweep(self) -> dict[str, Any]:
        return dict(sweep_expired.handler({}, Context(milliseconds=60_000)))

    # --- time ------------------------------------------------------------------------------------

    def pass_time(self, time: timedelta) -> None:
        """For all that is in the database; by Alipay's clock no more than it wants two refunds of a
        trade apart. Whatever waits then waits for something: hours would hide what does not."""
        looked_at = invariants.LOOKED_AT_AGAIN
        assert self.database.rows(looked_at.query) == [], looked_at.name
        passing_time.some_time(self.database, time)
        self.clock.ahead += ROUND

    def settle(self) -> None:
        """No time passes: what is under way arrives."""
        while self.tell() + self.deliver():
            pass

    def minutes_pass(self) -> None:
        """A few, with what each brings: less than an order has to be paid in, and more than a
        lease takes, or a command that was lost to be said again."""
        for minutes in (1, 4):
            self.pass_time(timedelta(minutes=minutes, seconds=1))
            self._go_on()

    def come_to_rest(self) -> None:
        """Hours pass until one changes nothing and nothing is open; then every invariant holds."""
        self.clock.ahead += passing_time.TTL
        for _ in range(ROUNDS_MAX):
            if not self._an_hour() and not open_ends(self.database):
                break
        self.assert_at_rest()

    def assert_at_rest(self) -> None:
        """Nothing is open, nothing was lost, every invariant holds, and Alipay's books say the
        same as ours."""
        assert open_ends(self.database) == {}
        assert self.wire.seen["dead"] == self.wire.seen["confused"] == 0
        assert invariants.broken(self.database.rows) == {}
        money_books.assert_agree(self.database, self.books)

    def is_open(self) -> bool:
        """Whether anything is to come by itself."""
        return open_ends(self.database) != {}

    def _an_hour(self) -> int:
        """How much was done in it."""
        self.pass_time(timedelta(hours=1))
        return self._go_on()

    def _go_on(self) -> int:
        done: int = self.tell()
        swept = self.sweep()
        assert swept["failed"] == []
        done += sum(swept[name] for name in _DONE) + self.relay()["sent"]
        while some := self.deliver() + self.tell():
            done += some
        return done


@contextmanager
def a_world(
    database: Database,
    stock: Mapping[int, int] | None = None,
    *,
    policy: str = "REFUND",
    clock: PassingClock | None = None,
) -> Iterator[World]:
    """Empty but for its SKUs: ``stock`` of each, ten of 1001 and 1002 by default. ``clock`` is the
    channel's."""
    database.empty()
    clock = clock or PassingClock()
    alipay = a_service(clock=clock)
    world = World(database, alipay, clock)
    world.wire.is_kind = True
    alipay.sink = _hear
    with pytest.MonkeyPatch.context() as patch:
        _connect(world, patch)
        patch.setenv("ORDER_TTL_SECONDS", str(int(passing_time.TTL / timedelta(seconds=1))))
        patch.setenv("LATE_PAYMENT_POLICY", policy)
        notices.NoticeSigner(key_of("alipay")).configure(patch)
        for sku_id, quantity in ({1001: 10, 1002: 10} if stock is None else stock).items():
            a_sku(database, sku_id, stock=quantity)
        yield world
    forget_settings()


def _connect(world: World, patch: pytest.MonkeyPatch) -> None:
    """Let the product find the queues and Alipay here."""
    client = world.alipay.gateway()

    def exchange(url: str, form: bytes | None, **_: Any) -> Received:
        reply = world.alipay.service.call(urlsplit(url).query, form or b"", "en")
        if reply is None:
            raise NoAnswer("the connection was dropped")
        return Received(reply.body, None)

    patch.setattr("lockstep.messaging.sqs.client", lambda: world.wire)
    patch.setattr(gateway, "connect", lambda: client)
    patch.setattr(gateway, "exchange", exchange)
    for name, value in world.wire.addresses().items():
        patch.setenv(name, value)


def _hear(body: bytes) -> str:
    """What the notify function answers; nothing that counts where it dies."""
    return outlive(lambda: str(notices.answer(notices.http_event(body))["body"]), otherwise="")
