"""A channel that says what a test lets it say, and the operations that ask it.

Each method answers from its own line of outcomes, the last of which is said for ever; without one,
that it is not known. An outcome that is a fault is raised. ``while_asked`` runs in the middle of
every call.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from lockstep.alipay.answers import (
    Done,
    Outcome,
    RefundFound,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)
from lockstep.alipay.gateway import Gateway
from lockstep.orders.model import CancelOutcome
from lockstep.payments import cancel as cancelling
from lockstep.payments import start as starting
from lockstep.payments.model import Product, StartOutcome, StartPayment
from lockstep.upkeep import sweep as sweeping
from lockstep.upkeep.sweep import Swept
from tests.support import notices

LOST = Unknown("the answer was lost")
NOT_EXIST = Refused("ACQ.TRADE_NOT_EXIST")
NOT_WAITING = Refused("ACQ.TRADE_STATUS_ERROR")
PAID_AT = datetime(2026, 11, 30, 2, 0, 5, tzinfo=UTC)
NOTIFY_URL = "https://api.example.com/alipay/notify"


class ScriptedChannel(Gateway):
    """Stands in for the gateway. Several threads may ask at once."""

    def __init__(
        self,
        *,
        query: Any = LOST,
        close: Any = LOST,
        precreate: Any = LOST,
        query_refund: Any = LOST,
        while_asked: Callable[[], object] = lambda: None,
    ) -> None:
        """Each line is an outcome, a list of them, or a function of the number asked about."""
        self.calls: list[tuple[str, str]] = []
        self.timeouts: list[float] = []
        self.said: list[dict[str, Any]] = []
        self._lines = {
            "query": query,
            "close": close,
            "precreate": precreate,
            "query_refund": query_refund,
        }
        self._turns: dict[str, int] = defaultdict(int)
        self._while_asked = while_asked
        self._lock = threading.Lock()

    def __call__(self) -> Gateway:
        """To be given where a ``connect`` is wanted."""
        return self

    def page_url(self, product: Any, **said: Any) -> str:
        self.said.append({"product": product, **said})
        return f"https://pay.example.com/{product}/{said['out_trade_no']}"

    def precreate(self, **said: Any) -> Outcome[str]:
        self.said.append(said)
        outcome: Outcome[str] = self._answer("precreate", said["out_trade_no"])
        return outcome

    def query(
        self,
        *,
        out_trade_no: str | None = None,
        trade_no: str | None = None,
        timeout_seconds: float = 5,
    ) -> Outcome[Trade]:
        self.timeouts.append(timeout_seconds)
        outcome: Outcome[Trade] = self._answer("query", out_trade_no or trade_no or "")
        return outcome

    def query_refund(
        self, *, trade_no: str, out_request_no: str, timeout_seconds: float = 5
    ) -> Outcome[RefundFound]:
        outcome: Outcome[RefundFound] = self._answer("query_refund", f"{trade_no} {out_request_no}")
        return outcome

    def close(self, out_trade_no: str, *, timeout_seconds: float = 5) -> Outcome[None]:
        self.timeouts.append(timeout_seconds)
        outcome: Outcome[None] = self._answer("close", out_trade_no)
        return outcome

    def _answer(self, method: str, number: str) -> Any:
        with self._lock:
            self.calls.append((method, number))
            line = self._lines[method]
            turn, self._turns[method] = self._turns[method], self._turns[method] + 1
        self._while_asked()
        if callable(line):
            return line(number)
        answer = line[min(turn, len(line) - 1)] if isinstance(line, list) else line
        if isinstance(answer, Exception):
            raise answer
        return answer


def nobody() -> Gateway:
    """A channel that must not be needed."""
    raise AssertionError("the channel was connected to")


def a_trade(
    out_trade_no: str,
    status: TradeStatus = TradeStatus.WAIT_BUYER_PAY,
    *,
    amount: str = "9.90",
    was_paid: bool | None = None,
    is_settled: bool = True,
) -> Trade:
    """What a query finds. Paid as its status says, where ``was_paid`` says nothing."""
    is_paid = status in {TradeStatus.TRADE_SUCCESS, TradeStatus.TRADE_FINISHED}
    return Trade(
        trade_no=f"trade-{out_trade_no}",
        out_trade_no=out_trade_no,
        status=status,
        total_amount=Decimal(amount),
        paid_at=PAID_AT if (is_paid if was_paid is None else was_paid) else None,
        is_settled=is_settled,
    )


def the_trade(status: str = "TRADE_SUCCESS", **changes: Any) -> Trade:
    """What a query finds of the base notice's trade; changed."""
    said: dict[str, Any] = {"trade_no": "T1", "paid_at": notices.PAID_AT} | changes
    return replace(a_trade("O1", TradeStatus(status)), **said)


def waiting(out_trade_no: str) -> Done[Trade]:
    return Done(a_trade(out_trade_no))


def unpaid() -> ScriptedChannel:
    """Every trade waits for its buyer, and can be closed."""
    return ScriptedChannel(query=waiting, close=Done(None))


def paid(out_trade_no: str, amount: str = "9.90") -> Done[Trade]:
    return Done(a_trade(out_trade_no, TradeStatus.TRADE_SUCCESS, amount=amount))


def closed(out_trade_no: str) -> Done[Trade]:
    return Done(a_trade(out_trade_no, TradeStatus.TRADE_CLOSED))


def cancel(
    member_id: int, order_no: str, connect: Callable[[], Gateway] | None = None
) -> CancelOutcome:
    """cancel() with a channel that never answers, where no other is given."""
    return cancelling.cancel(member_id, order_no, connect or ScriptedChannel())


def sweep(has_time: Callable[[], bool], connect: Callable[[], Gateway] | None = None) -> Swept:
    """sweep(), likewise."""
    return sweeping.sweep(has_time, connect or ScriptedChannel())


def start(
    order_no: str,
    product: Product = "page",
    connect: Callable[[], Gateway] | None = None,
    *,
    member_id: int = 42,
) -> StartOutcome:
    """start(), likewise."""
    command = StartPayment(member_id, order_no, product, NOTIFY_URL)
    return starting.start(command, connect or ScriptedChannel())
