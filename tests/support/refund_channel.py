"""A channel that refunds by Alipay's rules, in memory, and fails where a test says so.

What counts is `executed`: how often money really moved under a number. The rules: one number, one
amount, once; a repeat is answered without a change of funds; no more than was paid.
"""

import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from lockstep.alipay.answers import (
    Done,
    Outcome,
    RefundFound,
    RefundReply,
    Refused,
    Trade,
    TradeStatus,
    Unknown,
)
from lockstep.payments.refund import Tried, try_refund
from tests.support.database import Database

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Does the work, and its answer is lost; or the request is lost, and nothing is done.
LOSE_THE_ANSWER = "lose the answer"
LOSE_THE_REQUEST = "lose the request"
# Does the work, and answers without fund_change.
SAY_NOTHING = "say nothing"

type Fault = str | Outcome[Any]


@dataclass
class RefundChannel:
    """``faults``, ``query_faults`` and ``trade_faults`` are used up one a call: an outcome is
    answered and nothing done."""

    trades: dict[str, Trade] = field(default_factory=dict)
    refunds: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    executed: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, str]] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    query_faults: deque[Fault] = field(default_factory=deque)
    trade_faults: deque[Fault] = field(default_factory=deque)
    during: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def paid(self, trade_no: str = "T1", amount: str = "9.90") -> None:
        """Somebody paid this trade."""
        self.trades[trade_no] = Trade(
            trade_no=trade_no,
            out_trade_no="O1",
            status=TradeStatus.TRADE_SUCCESS,
            total_amount=Decimal(amount),
            paid_at=datetime(2026, 10, 24, 2, 0, 5, tzinfo=UTC),
            is_settled=True,
        )

    def total(self, trade_no: str = "T1") -> Decimal:
        """What went back of a trade in all."""
        parts = [amount for (trade, _), amount in self.refunds.items() if trade == trade_no]
        return sum(parts, Decimal("0.00"))

    def console_refund(self, number: str, amount: str, trade_no: str = "T1") -> Decimal:
        """Somebody refunds in the merchant's console; the trade's total after it."""
        assert isinstance(self._move(trade_no, number, Decimal(amount)), Done)
        return self.total(trade_no)

    # --- what the product calls ---

    def refund(
        self,
        *,
        trade_no: str,
        out_request_no: str,
        amount: Decimal,
        reason: str,
        timeout_seconds: int,
    ) -> Outcome[RefundReply]:
        assert reason
        self.calls.append(("refund", out_request_no))
        self.during()
        fault = self.faults.popleft() if self.faults else None
        if fault == LOSE_THE_REQUEST:
            return Unknown("timeout")
        if fault is not None and not isinstance(fault, str):
            return fault
        reply = self._move(trade_no, out_request_no, amount)
        if fault == LOSE_THE_ANSWER:
            return Unknown("timeout")
        if fault == SAY_NOTHING and isinstance(reply, Done):
            return Done(replace(reply.value, fund_changed=False))
        return reply

    def query_refund(
        self, *, trade_no: str, out_request_no: str, timeout_seconds: int = 4
    ) -> Outcome[RefundFound]:
        self.calls.append(("query_refund", out_request_no))
        self.during()
        if self.query_faults:
            return cast(Outcome[RefundFound], self.query_faults.popleft())
        if trade_no not in self.trades:
            return Refused("ACQ.TRADE_NOT_EXIST")
        amount = self.refunds.get((trade_no, out_request_no))
        return Done(RefundFound(amount is not None, amount))

    def query(self, *, trade_no: str, timeout_seconds: int) -> Outcome[Trade]:
        self.calls.append(("query", trade_no))
        if self.trade_faults:
            return cast(Outcome[Trade], self.trade_faults.popleft())
        trade = self.trades.get(trade_no)
        return Refused("ACQ.TRADE_NOT_EXIST") if trade is None else Done(trade)

    def _move(self, trade_no: str, number: str, amount: Decimal) -> Outcome[RefundReply]:
        with self._lock:
            trade = self.trades.get(trade_no)
            if trade is None:
                return Refused("ACQ.TRADE_NOT_EXIST")
            known = self.refunds.get((trade_no, number))
            if known is not None:
                if known != amount:
                    return Refused("ACQ.DISCORDANT_REPEAT_REQUEST")
                return Done(RefundReply(False, self.total(trade_no)))
            if trade.status is TradeStatus.TRADE_FINISHED:
                return Refused("ACQ.TRADE_HAS_FINISHED")
            if self.total(trade_no) + amount > trade.total_amount:
                return Refused("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
            self.refunds[trade_no, number] = amount
            self.executed[number] += 1
            return Done(RefundReply(True, self.total(trade_no)))

    # --- what a test does with it ---

    def connect(self) -> "Gateway":
        return cast("Gateway", self)

    def try_refund(self, refund_id: int) -> Tried:
        return try_refund(refund_id, self.connect)

    def work_off(self, database: Database, rounds: int = 12) -> list[Tried]:
        """Let time pass and try what is due, again and again, until no refund is open."""
        tried = []
        for _ in range(rounds):
            time_passes(database)
            rows = database.rows(
                "SELECT id FROM oms_refund WHERE state IN ('DUE', 'CALLING', 'UNKNOWN') ORDER BY id"
            )
            if not rows:
                break
            for row in rows:
                tried.append(self.try_refund(row["id"]))
                time_passes(database)
        return tried


class BadDay(RefundChannel):
    """Every trade that it is asked about was paid; it loses answers and requests from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.is_kind = False
        self._random = random.Random(seed)
        self._one_by_one = threading.Lock()

    def refund(self, **asked: Any) -> Outcome[RefundReply]:
        with self._one_by_one:
            if asked["trade_no"] not in self.trades:
                self.paid(asked["trade_no"], str(asked["amount"]))
            fault = self._random.choices([None, *_BAD], weights=[70, 10, 10, 5, 5])[0]
            if fault is not None and not self.is_kind:
                self.faults.append(fault)
            return super().refund(**asked)


_BAD: Final = (
    LOSE_THE_ANSWER,
    LOSE_THE_REQUEST,
    SAY_NOTHING,
    Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH"),
)


def time_passes(database: Database) -> None:
    """An hour for every refund: its lease, its wait and its last call are long ago."""
    database.execute(
        "UPDATE oms_refund SET next_try_at = next_try_at - INTERVAL 5 HOUR, "
        "called_at = called_at - INTERVAL 5 HOUR, created_at = created_at - INTERVAL 5 HOUR"
    )


def refund_rows(database: Database) -> list[tuple[str, Decimal, str, str | None]]:
    """(out_request_no, amount, state, code), in the order in which they were asked for."""
    rows = database.rows("SELECT out_request_no, amount, state, code FROM oms_refund ORDER BY id")
    return [tuple(row.values()) for row in rows]


def the_refund(database: Database) -> int:
    """The id of the only refund."""
    return int(database.value("SELECT id FROM oms_refund"))
