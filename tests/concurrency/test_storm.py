"""Goal: after a storm of 2,000 orders, once all is at rest, every invariant holds.

Method: a seed makes a plan of what members and Alipay do, and when: orders of hot and ordinary
SKUs, repeated requests, cancels, notices that are repeated, late, second or of a wrong amount. 16
connections work it off, and meanwhile deliver messages, relay and sweep. The queues refuse, lose,
repeat and reorder from the same seed; holds and orders expire as the storm goes on. Then the day
turns good: time passes, what is due is done, until nothing changes any more.

The seed is printed; the threads' order is their own. Again with the plan of a seed:

    STORM_SEED=7 .local/venv/bin/python -m pytest tests/concurrency/test_storm.py
"""

import os
import random
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import pytest

from infra.local import invariants
from lockstep.alipay import gateway
from lockstep.alipay.model import TradeNotice
from lockstep.errors import TryAgain
from lockstep.messaging.relay import relay
from lockstep.orders.model import Order, Placed, PlaceOrder, Replayed
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from tests.support import passing_time
from tests.support.builders import a_sku, a_trade_notice
from tests.support.channel import cancel, sweep
from tests.support.database import Database, forget_settings
from tests.support.refund_channel import BadDay
from tests.support.threads import crowd
from tests.support.wire import Wire

ORDERS: Final = 2000
CONNECTIONS: Final = 16
STOCK: Final = {1001: 80, 1002: 150, 1003: 1000, 1004: 1000, 2001: 100, 2002: 600}
HOT: Final = {2001, 2002}
TTL_SECONDS: Final = 5

# What is done to one order, and how often in twenty.
FATES: Final = {
    ("place", "pay"): 5,
    ("place", "place", "pay", "repeat"): 3,
    ("place", "pay", "second"): 1,
    ("place", "wrong", "pay"): 1,
    ("place", "cancel"): 3,
    ("place", "cancel", "pay"): 1,
    ("place", "pay", "cancel"): 2,
    ("place",): 4,
}
# What the system does by itself, between all that.
UPKEEP: Final = {"deliver": 1500, "relay": 20, "sweep": 20}


@dataclass
class Member:
    """What one member wants, and what is known of it so far."""

    command: PlaceOrder
    order: Order | None = None
    notice: TradeNotice | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Act:
    what: str
    member: Member | None = None


def plan(seed: int) -> list[Act]:
    """What happens, in the order in which it begins: each order's acts in theirs, all mixed."""
    chance = random.Random(seed)
    acts: list[tuple[float, Act]] = []
    for n in range(1, ORDERS + 1):
        skus = chance.sample(sorted(STOCK), chance.choice([1, 1, 2, 3]))
        lines = {sku_id: chance.choice([1, 1, 2]) for sku_id in skus}
        member = Member(PlaceOrder(member_id=n % 300 + 1, idempotency_key=f"k{n}", lines=lines))
        [fate] = chance.choices(list(FATES), weights=list(FATES.values()))
        moments = sorted(chance.random() for _ in fate)
        acts += [(at, Act(what, member)) for at, what in zip(moments, fate, strict=True)]
    for what, times in UPKEEP.items():
        acts += [(chance.random(), Act(what)) for _ in range(times)]
    return [act for _, act in sorted(acts, key=lambda timed: timed[0])]


class Storm:
    """Works off a plan; ``seen`` counts what the acts came to."""

    def __init__(self, seed: int) -> None:
        self.wire = Wire(seed)
        self.channel = BadDay(seed)
        self.seen: Counter[str] = Counter()
        self._counting = threading.Lock()

    def act(self, act: Act) -> None:
        try:
            came_to = self._act(act)
        except TryAgain:
            came_to = "TryAgain"
        with self._counting:
            self.seen[f"{act.what}: {came_to}"] += 1

    def _act(self, act: Act) -> str:
        if act.member is not None:
            return self._of_member(act.what, act.member)
        if act.what == "deliver":
            return "some" if self.wire.deliver() else "none"
        if act.what == "relay":
            return "some" if relay(lambda: True).sent else "none"
        swept = sweep(lambda: True)
        assert swept.failed == []
        return "some" if swept.orders_closed else "none"

    def _of_member(self, what: str, member: Member) -> str:
        if what == "place":
            outcome = place(member.command)
            if isinstance(outcome, Placed | Replayed):
                member.order = outcome.order
            return type(outcome).__name__
        order = member.order
        if order is None:
            return "no order"
        if what == "cancel":
            return type(cancel(order.member_id, order.order_no)).__name__
        return accept(self._notice(what, member, order)).name

    def _notice(self, what: str, member: Member, order: Order) -> TradeNotice:
        if what == "repeat" and member.notice is not None:
            return member.notice
        amount = {"total_amount": order.pay_amount + Decimal("0.01")} if what == "wrong" else {}
        notice = a_trade_notice(order, **amount)
        if what == "pay":
            member.notice = notice
        return notice


def come_to_rest(database: Database, wire: Wire) -> int:
    """Hours pass, each with a relay, a sweep and every delivery, until one changes nothing; how
    many it took."""
    wire.is_kind = True
    for hours in range(1, 25):
        passing_time.an_hour(database)
        swept, relayed = sweep(lambda: True), relay(lambda: True)
        assert swept.failed == []
        delivered = 0
        while some := wire.deliver(100):
            delivered += some
        if not (swept.orders_closed + swept.holds_settled + swept.restaged + relayed.sent):
            assert delivered == 0
            return hours
    raise AssertionError("it never came to rest")


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("STORM_SEED") or random.SystemRandom().randrange(10**6))


@pytest.fixture
def storm(database: Database, monkeypatch: pytest.MonkeyPatch, seed: int) -> Storm:
    storm = Storm(seed)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: storm.wire)
    monkeypatch.setattr(gateway, "connect", storm.channel.connect)
    for name, value in storm.wire.addresses().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ORDER_TTL_SECONDS", str(TTL_SECONDS))
    forget_settings()
    for sku_id, stock in STOCK.items():
        a_sku(database, sku_id, stock=stock, hot=sku_id in HOT)
    return storm


def test_after_a_storm_of_2000_orders_every_invariant_holds(database, storm, seed, capsys):
    with capsys.disabled():
        sys.stdout.write(f" STORM_SEED={seed} ")
    crowd(CONNECTIONS, plan(seed), storm.act)
    storm.channel.is_kind = True
    come_to_rest(database, storm.wire)
    assert invariants.broken(database.rows) == {}
    assert database.count("oms_order", status="RESERVING") == 0
    assert database.count("oms_order", status="PENDING_PAYMENT") == 0
    assert database.count("ims_reservation", state="RESERVED") == 0
    assert database.count("outbox", sent_at=None) == 0
    assert storm.wire.seen["dead"] == 0
    assert database.count("oms_refund", state="DONE") == database.count("oms_refund")
    assert set(storm.channel.executed.values()) == {1}
    assert database.value("SELECT SUM(amount) FROM oms_refund") == sum(
        storm.channel.refunds.values()
    )
    it_was_a_storm(database, storm)


def it_was_a_storm(database: Database, storm: Storm) -> None:
    """Each kind of trouble was there, or the calm afterwards proves nothing."""
    for fate in ("refused", "lost", "repeated"):
        assert storm.wire.seen[fate] > 20, storm.wire.seen
    for came_to in ("place: Placed", "place: Replayed", "place: OutOfStock", "cancel: Closed"):
        assert storm.seen[came_to] > 20, storm.seen
    for reason in ("CANCELLED", "EXPIRED", "OUT_OF_STOCK"):
        assert database.count("oms_order", close_reason=reason) > 10, storm.seen
    # NOT_PAYABLE may be among them: hot orders wait too briefly for that to be sure.
    for reason in ("LATE_PAYMENT", "SECOND_PAYMENT", "AMOUNT_MISMATCH"):
        assert database.count("oms_order_payment", reason=reason) > 0, reason
    assert database.count("oms_order", status="PAID") > 200, storm.seen


def test_one_seed_is_one_plan():
    told = [
        [(act.what, act.member and act.member.command) for act in plan(seed)] for seed in (7, 7, 8)
    ]
    assert told[0] == told[1] != told[2]
