"""Works off a `money_plan` on a bad day of Alipay's and of the queues', and then lets it be over.

One rule of that day is the local Alipay's own. Its books let a second trade begin under an
out_trade_no that was paid or closed, which the real one does not have, and which no query by
out_trade_no ever finds. So a notice is lost for good only of the first payment of a page that will
be asked about (`Acts.untold`). Any other may come late, twice or out of order, but it comes.
"""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from infra.local.alipay_gateway.faults import NOTICE, OF_CALLS, REFUND, Action
from infra.local.alipay_gateway.shapes import Refused
from lockstep.db import connection
from lockstep.errors import TryAgain
from lockstep.messaging.relay import relay
from lockstep.upkeep.sweep import sweep
from tests.support import notices, passing_time
from tests.support.database import Database
from tests.support.local_alipay import LocalAlipay, PassingClock
from tests.support.money_acts import Acts, NothingThere
from tests.support.money_plan import Act
from tests.support.waiting import wait_until
from tests.support.wire import Wire

CALLS: Final = (
    "alipay.trade.query",
    "alipay.trade.close",
    "alipay.trade.precreate",
    REFUND,
    "alipay.trade.fastpay.refund.query",
)
# What goes wrong with each. Nobody would release a held answer.
FAULTS: Final = {
    method: sorted(OF_CALLS - {Action.HOLD} - ({Action.NO_BALANCE} if method != REFUND else set()))
    for method in CALLS
}
RATES: Final = {
    **{method: dict.fromkeys(actions, 0.05) for method, actions in FAULTS.items()},
    REFUND: dict.fromkeys(FAULTS[REFUND], 0.08),
    NOTICE: {"twice": 0.15, "late": 0.1, "delay": 0.15},
}
ROUNDS_MAX: Final = 40
# By the channel's clock, between two rounds: longer than it wants refunds of a trade apart, and in
# all not so long that it takes our clock for a wrong one.
ROUND: Final = timedelta(seconds=5)
# What must end by itself, whoever does it.
OPEN_ENDS: Final = {
    "orders": "SELECT order_no AS it, status FROM oms_order WHERE status IN "
    "('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING', 'REFUNDING')",
    "attempts": "SELECT out_trade_no AS it, state FROM oms_payment_attempt "
    "WHERE state IN ('OPEN', 'CLOSING') OR next_ask_at IS NOT NULL",
    "payments": "SELECT trade_no AS it, state FROM oms_order_payment WHERE state IN "
    "('RECEIVED', 'REFUND_PENDING', 'REFUNDING', 'REINSTATE_PENDING')",
    "refunds": "SELECT id AS it, state, code FROM oms_refund "
    "WHERE state IN ('DUE', 'CALLING', 'UNKNOWN')",
    "notices": "SELECT id AS it, state, reason FROM oms_notice "
    "WHERE state IN ('STORED', 'QUERY_DUE', 'CONFLICT')",
    "holds": "SELECT reservation_id AS it, state FROM ims_reservation "
    "WHERE state IN ('INIT', 'RESERVED')",
    "messages": "SELECT id AS it, queue FROM outbox WHERE sent_at IS NULL",
}


class Storm:
    """``seen`` counts what the acts came to, ``faults`` what functions and sweeps caught."""

    def __init__(self, seed: int, alipay: LocalAlipay, clock: PassingClock) -> None:
        self.alipay, self.clock = alipay, clock
        self.wire = Wire(seed)
        self.acts = Acts(alipay, clock, self.wire)
        self.seen: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._counting = threading.Lock()
        alipay.sink = _hear
        alipay.service.post.find_merchant_at(alipay.service.merchant_url)
        for method, actions in FAULTS.items():
            for action in actions:  # once each for sure, and then as the seed has it
                alipay.faults.add(method, action, seconds=0.05)
        alipay.faults.draw(seed, RATES)

    def act(self, act: Act) -> None:
        try:
            came_to = getattr(self.acts, act.what)(act)
        except (NothingThere, TryAgain) as reason:
            came_to = type(reason).__name__
        except Refused as refused:  # by the cashier, or in the merchant's console
            came_to = refused.sub_code
        with self._counting:
            self.seen[f"{act.what}: {came_to}"] += 1

    def count_fault(self, *words: str) -> None:
        with self._counting:
            self.faults["".join(words)] += 1

    def ends(self) -> None:
        """No more faults, and what was held back goes on its way."""
        self.wire.is_kind = True
        self.alipay.faults.clear()
        self.alipay.service.release()
        self.alipay.service.books.set_balance(None)

    def come_to_rest(self, database: Database) -> int:
        """Hours pass, each with a sweep, a relay and every delivery, until one changes nothing and
        nothing is open; how many it took."""
        # Nobody can pay a page of that day any more.
        self.clock.ahead += passing_time.TTL
        for hours in range(1, ROUNDS_MAX):
            self._until_told()
            if not self._an_hour(database) and not open_ends(database):
                return hours
        raise AssertionError(open_ends(database))

    def _an_hour(self, database: Database) -> int:
        """How much was done in it."""
        passing_time.an_hour(database)
        self.clock.ahead += ROUND
        swept = sweep(lambda: True, self.acts.connect)
        assert swept.failed == []
        done = swept.orders_closed + swept.holds_settled + swept.restaged + swept.notices_decided
        done += relay(lambda: True).sent
        while some := self.wire.deliver(100):
            done += some
        return done

    def _until_told(self) -> None:
        """Until no notice is on its way: however many there are, they become fewer."""
        waiting = self.alipay.service.post.waiting
        while before := waiting():
            wait_until(partial(_is_less, waiting, before))


def open_ends(database: Database) -> dict[str, list[dict[str, Any]]]:
    found = {name: database.rows(query) for name, query in OPEN_ENDS.items()}
    return {name: rows for name, rows in found.items() if rows}


def _is_less(now: Callable[[], int], before: int) -> bool:
    return now() < before


def _hear(body: bytes) -> str:
    """The notify function, in a thread of Alipay's, which may not come back."""
    try:
        return str(notices.answer(notices.http_event(body))["body"])
    finally:
        connection.discard()
