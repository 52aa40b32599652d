"""The rules of the local Alipay: who may pay, close and refund what, and how often.

No HTTP and no threads of its own. One lock guards everything; each change is one line of the
journal, together with the notice that it causes.
"""

import heapq
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from infra.local.alipay_gateway.journal import Journal
from infra.local.alipay_gateway.shapes import (
    Clock,
    Refund,
    Refused,
    Request,
    Status,
    Trade,
    utc_now,
)
from infra.local.alipay_gateway.wording import Notice, notice_of
from infra.local.alipay_sign import BEIJING

REFUND_GAP = timedelta(seconds=3)


class Books:
    """`tell` takes each notice as it arises, and must not block. Of money that nobody asked for,
    `merchant_url` is told; a pay link that names no notify_url has no notices, and no fallback."""

    def __init__(
        self,
        app_id: str,
        seller_id: str,
        merchant_url: str,
        *,
        tell: Callable[[Notice], None],
        clock: Clock = utc_now,
        journal: Journal | None = None,
    ) -> None:
        self._payee, self._merchant_url = (app_id, seller_id), merchant_url
        self._tell, self._clock, self._journal = tell, clock, journal or Journal()
        self._lock = threading.RLock()
        self._requests: dict[str, Request] = {}
        self._trades: dict[str, Trade] = {}
        self._numbers: dict[str, list[str]] = {}
        self._deadlines: list[tuple[datetime, str]] = []
        # What the seller can refund from; None is always enough.
        self._balance: Decimal | None = None

    def replay(self, entry: Mapping[str, Any]) -> None:
        """Take over a line of the journal."""
        if "request" in entry:
            request = Request.read(entry["request"])
            self._requests[request.out_trade_no] = request
        if "trade" in entry:
            self._put(Trade.read(entry["trade"]))
        if "balance" in entry:
            self._balance = None if entry["balance"] is None else Decimal(entry["balance"])

    # --- the buyer -------------------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Remember what a pay link asks for. Refuses a number that is used for something else."""
        with self._lock:
            self.close_due()
            self._check_unused(request)
            if self._requests.get(request.out_trade_no) != request:
                self._journal.write(request=request)
                self._requests[request.out_trade_no] = request

    def open(self, out_trade_no: str) -> Trade:
        """A buyer opens the cashier's page: only now is there a trade."""
        with self._lock:
            self.close_due()
            trade = self._of_number(out_trade_no)
            if trade is not None:
                return trade
            request = self._requests.get(out_trade_no)
            if request is None:
                raise Refused("ACQ.TRADE_NOT_EXIST")
            if request.expires_at <= self._clock():
                raise Refused("ACQ.TRADE_HAS_CLOSE", "the time to pay is over")
            return self._keep(self._new(out_trade_no, request.amount))

    def pay(self, trade_no: str) -> Trade:
        """A buyer pays a trade that waits for it: what Alipay's own cashier lets through."""
        with self._lock:
            self.close_due()
            trade = self._trades[trade_no]
            if trade.status is not Status.WAIT_BUYER_PAY:
                raise Refused(_used(trade))
            return self._paid(trade)

    def pay_anyway(self, out_trade_no: str, amount: Decimal) -> Trade:
        """Money arrives, whatever the books say: for an order unknown here, twice, late, or of a
        wrong sum. A trade that waits for its buyer is the one that is paid; otherwise a new one."""
        with self._lock:
            self.close_due()
            waiting = self._of_number(out_trade_no)
            if waiting is None or waiting.status is not Status.WAIT_BUYER_PAY:
                return self._paid(self._new(out_trade_no, amount))
            return self._paid(replace(waiting, amount=amount))

    # --- the seller ------------------------------------------------------------------------------

    def find(self, *, out_trade_no: str | None = None, trade_no: str | None = None) -> Trade:
        """By trade_no where both are given. Of several trades of one number: the first that was
        paid, else the newest."""
        with self._lock:
            self.close_due()
            trade = self._of_number(out_trade_no or "")
            if trade_no is not None:
                trade = self._trades.get(trade_no)
            if trade is None:
                raise Refused("ACQ.TRADE_NOT_EXIST")
            return trade

    def close(self, *, out_trade_no: str | None = None, trade_no: str | None = None) -> Trade:
        """Only what waits for its buyer. That there is no trade yet stops nobody who pays later."""
        with self._lock:
            trade = self.find(out_trade_no=out_trade_no, trade_no=trade_no)
            if trade.status is not Status.WAIT_BUYER_PAY:
                raise Refused("ACQ.TRADE_STATUS_ERROR")
            return self._end(trade, Status.TRADE_CLOSED, self._clock())

    def refund(
        self, trade: Trade, amount: Decimal, out_request_no: str | None = None
    ) -> tuple[Trade, bool]:
        """Give `amount` back; True if this very call did it. A number is refunded once."""
        with self._lock:
            self.close_due()
            trade, now = self._trades[trade.trade_no], self._clock()
            number = out_request_no or trade.out_trade_no
            done = trade.refund(number)
            if done is not None:
                if done.amount != amount:
                    raise Refused("ACQ.DISCORDANT_REPEAT_REQUEST")
                return trade, False
            self._check_refundable(trade, amount, is_numbered=out_request_no is not None)
            if trade.refunds and now - trade.refunds[-1].at < REFUND_GAP:
                raise Refused("isv.app-call-limited", "3 seconds apart", code="40005")
            if self._balance is not None and self._balance < amount:
                raise Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH")
            return self._refunded(trade, Refund(number, amount, now)), True

    def finish(self, trade_no: str) -> Trade:
        """The refund window is over."""
        with self._lock:
            trade = self.find(trade_no=trade_no)
            if trade.status is not Status.TRADE_SUCCESS:
                raise Refused("ACQ.TRADE_STATUS_ERROR")
            return self._end(trade, Status.TRADE_FINISHED, self._clock())

    def set_balance(self, amount: Decimal | None) -> None:
        with self._lock:
            self._balance = amount
            self._journal.write(balance=amount)

    # --- everybody -------------------------------------------------------------------------------

    def request(self, out_trade_no: str) -> Request | None:
        with self._lock:
            return self._requests.get(out_trade_no)

    def requests(self) -> list[Request]:
        with self._lock:
            return list(self._requests.values())

    def trades(self, out_trade_no: str | None = None) -> list[Trade]:
        """Oldest first."""
        with self._lock:
            self.close_due()
            if out_trade_no is None:
                return list(self._trades.values())
            return [self._trades[one] for one in self._numbers.get(out_trade_no, [])]

    def close_due(self) -> None:
        """Close what nobody paid in its time. Every look at the books does so first."""
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= self._clock():
                deadline, trade_no = heapq.heappop(self._deadlines)
                trade = self._trades[trade_no]
                if trade.status is Status.WAIT_BUYER_PAY:
                    self._end(trade, Status.TRADE_CLOSED, deadline)

    # --- below the lock --------------------------------------------------------------------------

    def _check_unused(self, request: Request) -> None:
        trade = self._of_number(request.out_trade_no)
        if trade is not None and trade.status is not Status.WAIT_BUYER_PAY:
            raise Refused(_used(trade))
        if trade is not None and (trade.amount, trade.subject) != (request.amount, request.subject):
            raise Refused("ACQ.CONTEXT_INCONSISTENT")
        if request.expires_at <= self._clock():
            raise Refused("ACQ.INVALID_PARAMETER", "time_expire is over")

    def _check_refundable(self, trade: Trade, amount: Decimal, *, is_numbered: bool) -> None:
        if trade.status is Status.TRADE_FINISHED:
            raise Refused("ACQ.TRADE_HAS_FINISHED")
        if trade.status is not Status.TRADE_SUCCESS:
            raise Refused("ACQ.TRADE_STATUS_ERROR")
        left = trade.amount - trade.refunded
        if amount > left or (amount < trade.amount and not is_numbered):
            raise Refused("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")

    def _of_number(self, out_trade_no: str) -> Trade | None:
        trades = [self._trades[one] for one in self._numbers.get(out_trade_no, [])]
        paid = [trade for trade in trades if trade.paid_at is not None]
        return next(iter(paid or trades[-1:]), None)

    def _new(self, out_trade_no: str, amount: Decimal) -> Trade:
        request, now = self._requests.get(out_trade_no), self._clock()
        return Trade(
            trade_no=f"{now.astimezone(BEIJING):%Y%m%d}22001{secrets.randbelow(10**15):015d}",
            out_trade_no=out_trade_no,
            amount=amount,
            subject=request.subject if request else out_trade_no,
            created_at=now,
            expires_at=request.expires_at if request else None,
            notify_url=request.notify_url if request else self._merchant_url,
        )

    def _paid(self, trade: Trade) -> Trade:
        if self._balance is not None:
            self._balance += trade.amount
        paid = replace(trade, status=Status.TRADE_SUCCESS, paid_at=self._clock())
        return self._keep(paid, self._notice(paid))

    def _refunded(self, trade: Trade, refund: Refund) -> Trade:
        if self._balance is not None:
            self._balance -= refund.amount
        trade = replace(trade, refunds=(*trade.refunds, refund))
        if trade.refunded == trade.amount:
            trade = replace(trade, status=Status.TRADE_CLOSED, closed_at=refund.at)
        return self._keep(trade, self._notice(trade, refund))

    def _end(self, trade: Trade, status: Status, at: datetime) -> Trade:
        ended = replace(trade, status=status, closed_at=at)
        return self._keep(ended, self._notice(ended))

    def _notice(self, trade: Trade, refund: Refund | None = None) -> Notice | None:
        return notice_of(trade, *self._payee, refund) if trade.notify_url else None

    def _keep(self, trade: Trade, notice: Notice | None = None) -> Trade:
        belonging = {"trade": trade, "notice": notice, "balance": self._balance}
        self._journal.write(**{name: it for name, it in belonging.items() if it is not None})
        self._put(trade)
        if notice is not None:
            self._tell(notice)
        return trade

    def _put(self, trade: Trade) -> None:
        if trade.trade_no not in self._trades:
            self._numbers.setdefault(trade.out_trade_no, []).append(trade.trade_no)
            if trade.expires_at is not None:
                heapq.heappush(self._deadlines, (trade.expires_at, trade.trade_no))
        self._trades[trade.trade_no] = trade


def _used(trade: Trade) -> str:
    return "ACQ.TRADE_HAS_CLOSE" if trade.paid_at is None else "ACQ.TRADE_HAS_SUCCESS"
