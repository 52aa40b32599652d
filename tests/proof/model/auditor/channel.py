"""Alipay's own books: trades of a number, what closes and refunds them, and what it tells of it."""

from typing import Final

from tests.proof.model.auditor.books import Notice, Page, Trade
from tests.proof.model.auditor.stock import Stock

REFUND_GAP: Final = 3
# The call was not carried out; whatever else goes wrong with one happens to its answer.
NOT_DONE: Final = frozenset({"unknown_before", "no_balance"})


class Channel(Stock):
    def trade_of(self, number: str) -> Trade | None:
        """The first that was paid, else the newest."""
        trades = [trade for trade in self.trades.values() if trade.number == number]
        paid = [trade for trade in trades if trade.paid_at is not None]
        return next(iter(paid or trades[-1:]), None)

    def goes_wrong(self, method: str, number: str) -> str | None:
        faults = self.faults[method, number]
        return faults.pop(0) if faults else None

    # --- buyers and the merchant's console -------------------------------------------------------

    def can_open(self, number: str) -> bool:
        page, trade = self.pages.get(number), self.trade_of(number)
        if trade is not None:
            return trade.state == "WAIT"
        return page is not None and page.asked and page.expires > self.now

    def open_trade(self, number: str) -> Trade:
        trade = self.trade_of(number)
        return trade if trade is not None else self._new(number, self._amount_of(number))

    def pay_trade(self, number: str, amount: int | None) -> Trade:
        """``amount`` where money comes whatever the books say; else what the page asks for."""
        trade = self.trade_of(number)
        if trade is None or trade.state != "WAIT":
            trade = self._new(number, self._amount_of(number) if amount is None else amount)
        elif amount is not None:
            trade.amount = amount
        trade.state, trade.paid_at = "SUCCESS", self.now
        self._tell("PAID", trade)
        return trade

    def refund_trade(self, trade: Trade, amount: int, number: str) -> None:
        trade.refunds[number] = amount
        trade.refunded_at = self.now
        if trade.back == trade.amount:
            trade.state = "CLOSED"
        self._tell("BACK", trade, number)

    def finish_trade(self, trade: Trade) -> None:
        trade.state = "FINISHED"
        self._tell("BACK" if trade.back else "FINISHED", trade, "finish")

    def close_due_trades(self) -> None:
        for trade in self.trades.values():
            if trade.state == "WAIT" and trade.expires is not None and trade.expires <= self.now:
                self._close(trade)

    # --- the seller's questions ------------------------------------------------------------------

    def converse(self, page: Page, *, closing: bool, may_appear: bool) -> str:
        """What a question about a page comes to: it is asked, and closed where that is wanted."""
        trade = self.trade_of(page.number)
        if self.goes_wrong("alipay.trade.query", page.number) is not None:
            return "unknown"
        if trade is not None and trade.paid_at is not None:
            return "paid"
        if trade is not None and trade.state == "CLOSED":
            return "closed"
        if not closing:
            return "unpaid"
        fault = self.goes_wrong("alipay.trade.close", page.number)
        if trade is not None and fault not in NOT_DONE:
            self._close(trade)
        if fault is not None:
            return "unknown"
        if trade is not None:
            return "closed by us"
        return "unpaid" if may_appear else "never begun"

    # --- below -----------------------------------------------------------------------------------

    def _amount_of(self, number: str) -> int:
        return self.orders[self.pages[number].order].pay

    def _new(self, number: str, amount: int) -> Trade:
        page = self.pages.get(number)
        expires = page.expires if page is not None and page.asked else None
        trade = Trade(f"t{len(self.trades) + 1}", number, amount, expires)
        self.trades[trade.name] = trade
        return trade

    def _close(self, trade: Trade) -> None:
        trade.state = "CLOSED"
        self._tell("CLOSED", trade)

    def _tell(self, kind: str, trade: Trade, number: str = "") -> None:
        name = f"{kind}:{trade.name}" + (f":{trade.back}" if kind == "BACK" else "")
        if number == "finish":
            name = f"{kind}:{trade.name}:finish"
        self.notices[name] = Notice(name, kind, trade.name, number, trade.back)
