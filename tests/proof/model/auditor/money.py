"""Every yuan that arrives is recorded once: applied, on its way back, or before a person."""

from tests.proof.model.auditor.books import (
    LIVE,
    UNPAID,
    Notice,
    Order,
    Payment,
    Refund,
    Said,
    Trade,
)
from tests.proof.model.auditor.channel import Channel
from tests.proof.model.auditor.stock import GRACE

PAID = frozenset({"PAID", "REFUNDING", "REFUNDED"})


class Money(Channel):
    # --- notices ---------------------------------------------------------------------------------

    def tell(self, name: str) -> str:
        """The notice is delivered, whether for the first time or not; what is answered."""
        notice = self.notices[name]
        if notice.state == "DONE":
            if notice.kind == "PAID":
                self._confirm_again(notice.trade)
            return "success"
        self.decide(notice)
        return "failure" if notice.state == "UNMATCHED" else "success"

    def decide(self, notice: Notice) -> None:
        trade = self.trades[notice.trade]
        match notice.kind:
            case "PAID":
                notice.state = self.hear_payment(trade)
            case "CLOSED":
                notice.state = self.hear_close(trade)
            case "BACK":
                notice.state = self.hear_refund(notice)
                if notice.number == "finish" and trade.name in self.payments:
                    self.payments[trade.name].finished = True
            case "FINISHED" if trade.name in self.payments:
                self.payments[trade.name].finished = True
                notice.state = "DONE"
            case _:
                notice.state = "QUERY_DUE"

    def hear(self, trade: Trade) -> None:
        """The channel was asked, and says how the trade stands."""
        if trade.paid_at is None:
            self.hear_close(trade)
            return
        self.hear_payment(trade)
        payment = self.payments[trade.name]
        if trade.state == "FINISHED":
            payment.finished = True
        if trade.state == "CLOSED":
            self.know_total(payment, trade.amount, None)

    # --- money that comes ------------------------------------------------------------------------

    def hear_payment(self, trade: Trade) -> str:
        """The inbox's state of a notice of it."""
        known = self.payments.get(trade.name)
        if known is not None and known.state != "UNMATCHED":
            self._confirm_again(trade.name)
            state = "DONE"
        else:
            state = self._take(trade, known)
        for notice in self.notices.values():
            if notice.trade == trade.name and notice.state == "QUERY_DUE":
                self.decide(notice)
        return state

    def _take(self, trade: Trade, known: Payment | None) -> str:
        order = self._order_of(trade)
        if order is None:
            if known is None:
                self._record(trade, None, "UNMATCHED", None)
            return "UNMATCHED"
        self.settle(trade, order)
        return "DONE"

    def settle(self, trade: Trade, order: Order) -> Payment:
        """Let money do what its order allows."""
        state, reason = self._what_becomes_of(trade, order)
        payment = self._record(trade, order.name, state, reason)
        page = self.pages.get(trade.number)
        if page is not None and page.state in LIVE:
            page.state = "PAID"
        if state == "APPLIED":
            self._apply(payment, order)
            self.stage("confirm", order.hold)
        elif state == "REINSTATE_PENDING":
            self.stage("reserve", f"{order.name}-{order.n + 1}")
        else:
            self.owe_rest(payment)
        return payment

    def _what_becomes_of(self, trade: Trade, order: Order) -> tuple[str, str | None]:
        if trade.amount != order.pay:
            return "REFUND_PENDING", "AMOUNT_MISMATCH"
        if order.status in UNPAID:
            return "APPLIED", None
        if order.status == "RESERVING":
            return "REFUND_PENDING", "NOT_PAYABLE"
        if order.status in PAID:
            return "REFUND_PENDING", "SECOND_PAYMENT"
        assert trade.paid_at is not None
        in_time = order.expires is not None and trade.paid_at <= order.expires
        if self.policy == "REINSTATE" and order.close_reason == "EXPIRED" and in_time:
            return "REINSTATE_PENDING", None
        return "REFUND_PENDING", "LATE_PAYMENT"

    def _apply(self, payment: Payment, order: Order) -> None:
        payment.state, payment.reason = "APPLIED", None
        order.become("PAID")
        order.paid, order.close_reason = order.pay, None
        self.book_back(payment)

    def _record(self, trade: Trade, order: str | None, state: str, reason: str | None) -> Payment:
        known = self.payments.get(trade.name)
        if known is not None:
            known.order, known.state, known.reason = order, state, reason
            return known
        assert trade.paid_at is not None
        new = Payment(trade.name, order, trade.amount, state, reason, trade.paid_at, self.now)
        self.payments[trade.name] = new
        return new

    def _order_of(self, trade: Trade) -> Order | None:
        known = self.payments.get(trade.name)
        if known is not None and known.order is not None:
            return self.orders[known.order]
        page = self.pages.get(trade.number)
        return self.orders.get(trade.number if page is None else page.order)

    def _confirm_again(self, trade: str) -> None:
        payment = self.payments.get(trade)
        if payment is None or payment.state != "APPLIED" or payment.order is None:
            return
        order = self.orders[payment.order]
        if self.holds[order.hold].state == "RESERVED":
            self.stage("confirm", order.hold)

    # --- a page that the channel closed ----------------------------------------------------------

    def hear_close(self, trade: Trade) -> str:
        page = self.pages[trade.number]
        order = self.orders[page.order]
        was_open = page.state == "OPEN"
        if page.state in LIVE:
            page.state = "CLOSED"
        if was_open and order.status in UNPAID and not self.live_pages(order):
            self.close(order, "CANCELLED" if order.wish else "GATEWAY_CLOSED")
        return "DONE"

    def close(self, order: Order, reason: str) -> None:
        order.become("CLOSED")
        order.close_reason = reason
        self.stage("release", order.hold)

    # --- late money that may revive its order ----------------------------------------------------

    def is_late(self, order: Order) -> bool:
        """Whether money that came after its time may revive it."""
        return bool(self._late(order))

    def _late(self, order: Order) -> list[Payment]:
        return [
            payment
            for payment in self.payments.values()
            if payment.order == order.name and payment.state == "REINSTATE_PENDING"
        ]

    def reinstate(self, order: Order) -> str:
        late = self._late(order)
        whole = [payment for payment in late if payment.back < payment.amount]
        if not late:
            return "nothing late"
        # What the closed order still holds is its own to sell.
        old = self.holds[order.hold]
        mine = old.items if old.state == "RESERVED" else {}
        fits = all(
            self.skus[sku].available + mine.get(sku, 0) >= wanted
            for sku, wanted in order.lines.items()
        )
        if not whole or not fits:
            self._send_back(late, "LATE_PAYMENT")
            return "sent back"
        chosen = min(whole, key=lambda payment: payment.paid_at)
        self._send_back([payment for payment in late if payment is not chosen], "SECOND_PAYMENT")
        if old.state == "RESERVED":
            self.free_hold(old)
        order.n += 1
        self.take_hold(order, self.now + GRACE)
        self._apply(chosen, order)
        self.stage("confirm", order.hold)
        return "reinstated"

    def _send_back(self, late: list[Payment], reason: str) -> None:
        for payment in late:
            payment.state, payment.reason = "REFUND_PENDING", reason
            self.owe_rest(payment)
            if payment.back == payment.amount:
                payment.state = "REFUNDED"

    # --- operators -------------------------------------------------------------------------------

    def attach(self, trade: str, name: str) -> Said:
        payment, order = self.payments.get(trade), self.orders[name]
        if payment is None:
            return Said(404, "PAYMENT_NOT_FOUND")
        if payment.order == name:
            return Said(200, None, {"state": payment.state, "repeated": True})
        if payment.state != "UNMATCHED":
            return Said(409, "PAYMENT_NOT_WAITING")
        if self._what_becomes_of(self.trades[trade], order)[0] == "REFUND_PENDING":
            return Said(409, "ORDER_TAKES_NONE")
        settled = self.settle(self.trades[trade], order)
        return Said(200, None, {"state": settled.state, "repeated": False})

    # --- for those who know of refunds -----------------------------------------------------------

    def owe_rest(self, payment: Payment) -> None:
        raise NotImplementedError

    def book_back(self, payment: Payment) -> None:
        raise NotImplementedError

    def hear_refund(self, notice: Notice) -> str:
        raise NotImplementedError

    def know_total(self, payment: Payment, total: int, named: Refund | None) -> str:
        raise NotImplementedError
