"""What goes back: asked for by the system or an operator, or done in the merchant's console."""

from tests.proof.model.auditor.books import IN_FLIGHT, Lines, Notice, Order, Payment, Refund, Said
from tests.proof.model.auditor.channel import NOT_DONE, REFUND_GAP
from tests.proof.model.auditor.money import Money

ASK_AFTER = 10


class Refunds(Money):
    # --- who asks --------------------------------------------------------------------------------

    def owe(self, payment: Payment, amount: int, key: tuple[str, ...], content: object = ()) -> str:
        name = f"{payment.trade}#{len(self.refunds_of(payment.trade)) + 1}"
        self.refunds[name] = Refund(name, payment.trade, amount, key, content=(content,))
        self.stage("refund", name)
        return name

    def owe_rest(self, payment: Payment) -> None:
        if payment.back < payment.amount:
            self.owe(payment, payment.amount - payment.back, ("system",))

    def ask_refund(self, name: str, key: str, amount: int | None, restock: Lines) -> Said:
        order = self.orders[name]
        payment = self._applied(order)
        if payment is None:
            return Said(409, "ORDER_NOT_REFUNDABLE")
        content = (amount, tuple(sorted(restock.items())))
        for refund in self.refunds_of(payment.trade):
            if refund.key == ("order", key):
                same = refund.content == (content,)
                return Said(200) if same else Said(409, "IDEMPOTENCY_KEY_REUSED")
        if order.status != "PAID":
            return Said(409, "ORDER_NOT_REFUNDABLE")
        return self._refund_order(order, payment, key, amount, restock)

    def _refund_order(
        self, order: Order, payment: Payment, key: str, amount: int | None, restock: Lines
    ) -> Said:
        left = self._refundable(payment)
        wanted = left if amount is None else amount
        if wanted > left or not wanted:
            return Said(409, "REFUND_TOO_LARGE", {"refundable": left})
        hold = self.holds[order.hold]
        sold = hold.items if hold.state == "CONFIRMED" else {}
        if any(n > sold.get(sku, 0) - order.returned[sku] for sku, n in restock.items()):
            return Said(409, "RESTOCK_REFUSED")
        if wanted == left:
            order.become("REFUNDING")
        content = (amount, tuple(sorted(restock.items())))
        self.owe(payment, wanted, ("order", key), content)
        for sku, quantity in restock.items():
            self.skus[sku].stock += quantity
            order.returned[sku] += quantity
        return Said(201)

    def give_back(self, trade: str) -> Said:
        payment = self.payments.get(trade)
        if payment is None:
            return Said(404, "PAYMENT_NOT_FOUND")
        by_people = [r for r in self.refunds_of(trade) if r.key[0] == "person"]
        if payment.state not in {"UNMATCHED", "REFUND_FAILED"}:
            if payment.state == "APPLIED" or not by_people:
                return Said(409, "PAYMENT_NOT_WAITING")
            return Said(200)
        rest = payment.amount - payment.back
        payment.state = "REFUND_PENDING" if payment.state == "UNMATCHED" else "REFUNDING"
        for refund in reversed(self.refunds_of(trade)):
            if refund.state == "FAILED" and refund.amount == rest:
                refund.state, refund.key = "DUE", ("person",)
                self.stage("refund", refund.name)
                return Said(200)
        self.owe(payment, rest, ("person",))
        return Said(200)

    # --- a try -----------------------------------------------------------------------------------

    def deliver_refund(self, name: str, *, is_due: bool) -> str:
        refund = self.refunds[name]
        if refund.state in {"DONE", "FAILED"}:
            return "ended"
        if not is_due:
            return "not due"
        if refund.state == "DUE":
            return self._call(refund)
        assert refund.called is not None
        if self.now - refund.called < ASK_AFTER:
            return "deferred"
        return self._is_it_paid(refund) if refund.is_disputed else self._was_it_done(refund)

    def _call(self, refund: Refund) -> str:
        payment, of_trade = self.payments[refund.trade], self.refunds_of(refund.trade)
        if payment.back + refund.amount > payment.amount:
            self._begin(payment)
            return self._shrink(refund, payment)
        if payment.finished:
            self._begin(payment)
            return self._give_up(refund)
        called = [other.called for other in of_trade if other.called is not None]
        if any(other.state in IN_FLIGHT for other in of_trade) or any(
            self.now - at < REFUND_GAP for at in called
        ):
            return "deferred"
        refund.called, refund.is_disputed = self.now, False
        self._begin(payment)
        fault = self.goes_wrong("alipay.trade.refund", self.trades[refund.trade].number)
        if fault == "no_balance":
            return "no balance"
        said = "nothing" if fault in NOT_DONE else self._carry_out(refund)
        return self._conclude(refund, "nothing" if fault is not None else said)

    def _carry_out(self, refund: Refund) -> str:
        """What the channel does, and answers."""
        trade = self.trades[refund.trade]
        if trade.state == "CLOSED":
            return "closed"
        if trade.state == "FINISHED" or refund.amount > trade.amount - trade.back:
            return "never"
        if trade.refunded_at is not None and self.now - trade.refunded_at < REFUND_GAP:
            return "too soon"
        self.refund_trade(trade, refund.amount, refund.name)
        return "done"

    def _conclude(self, refund: Refund, said: str) -> str:
        if said == "done":
            self.complete(refund)
            trade = self.trades[refund.trade]
            self.know_total(self.payments[refund.trade], trade.back, None)
        elif said == "never":
            self._give_up(refund)
        elif said != "too soon":
            refund.state, refund.is_disputed = "UNKNOWN", said == "closed"
            refund.is_lost = True
        return said

    def _shrink(self, refund: Refund, payment: Payment) -> str:
        """Somebody was quicker in the merchant's console: what is left is owed in its place."""
        if refund.key != ("system",) or payment.state == "APPLIED":
            return self._give_up(refund)
        refund.state = "FAILED"
        self.owe_rest(payment)
        return "shrunk"

    def _was_it_done(self, refund: Refund) -> str:
        trade = self.trades[refund.trade]
        if self.goes_wrong("alipay.trade.fastpay.refund.query", trade.number) is not None:
            return "nothing"
        if refund.name in trade.refunds:
            self.complete(refund)
            return "found done"
        refund.state = "DUE"
        return "found not done"

    def _is_it_paid(self, refund: Refund) -> str:
        """Its refund was refused since the trade is closed: then all of it went back."""
        trade = self.trades[refund.trade]
        if self.goes_wrong("alipay.trade.query", trade.number) is not None:
            return "nothing"
        payment = self.payments[refund.trade]
        refund.state = "FAILED"  # first: it is what was in flight
        self.know_total(payment, trade.amount, None)
        refund.state = "UNKNOWN"
        return self._give_up(refund)

    def _begin(self, payment: Payment) -> None:
        if payment.state in {"REFUND_PENDING", "REFUND_FAILED"}:
            payment.state = "REFUNDING"

    # --- what follows ----------------------------------------------------------------------------

    def complete(self, refund: Refund) -> None:
        if refund.state == "DONE":
            return
        refund.state = "DONE"
        payment = self.payments[refund.trade]
        payment.back += refund.amount
        self.book_back(payment)
        self._left_to_a_person(payment)

    def _give_up(self, refund: Refund) -> str:
        refund.state = "FAILED"
        payment = self.payments[refund.trade]
        if payment.state != "APPLIED":
            self._left_to_a_person(payment)
        elif payment.order is not None and self._refundable(payment):
            order = self.orders[payment.order]
            if order.status == "REFUNDING":
                order.become("PAID")
        return "failed"

    def _left_to_a_person(self, payment: Payment) -> None:
        if payment.state == "REFUNDING" and not self._open(payment):
            payment.state = "REFUND_FAILED"

    def book_back(self, payment: Payment) -> None:
        if payment.state != "APPLIED" or payment.order is None:
            if payment.back == payment.amount and payment.state != "REINSTATE_PENDING":
                payment.state = "REFUNDED"
            return
        order = self.orders[payment.order]
        order.back = payment.back
        if order.back == order.paid and order.status == "PAID":
            order.become("REFUNDING")
        if order.back == order.paid and order.status == "REFUNDING":
            order.become("REFUNDED")

    # --- what the channel tells of it ------------------------------------------------------------

    def hear_refund(self, notice: Notice) -> str:
        payment = self.payments.get(notice.trade)
        if payment is None:
            return "QUERY_DUE"
        return self.know_total(payment, notice.total, self.refunds.get(notice.number))

    def know_total(self, payment: Payment, total: int, named: Refund | None) -> str:
        """The inbox's state of what told it. So much has gone back in all; ``named`` among it."""
        if named is not None:
            self.complete(named)
        if total <= payment.back:
            return "DONE"
        if any(refund.state in IN_FLIGHT for refund in self.refunds_of(payment.trade)):
            return "QUERY_DUE"
        payment.back = total
        self.book_back(payment)
        return "DONE"

    # --- sums ------------------------------------------------------------------------------------

    def _applied(self, order: Order) -> Payment | None:
        return next(
            (p for p in self.payments.values() if p.order == order.name and p.state == "APPLIED"),
            None,
        )

    def _open(self, payment: Payment) -> list[Refund]:
        of_trade = self.refunds_of(payment.trade)
        return [refund for refund in of_trade if refund.state not in {"DONE", "FAILED"}]

    def _refundable(self, payment: Payment) -> int:
        asked = sum(refund.amount for refund in self._open(payment))
        return max(payment.amount - payment.back - asked, 0)
