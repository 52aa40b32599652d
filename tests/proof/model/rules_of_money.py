"""The steps of operators and of the merchant's console, and what goes wrong at the channel."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.proof.model.auditor.books import UNPAID, Trade
from tests.proof.model.auditor.channel import REFUND_GAP
from tests.proof.model.machine import Machine, nth, yuan
from tests.proof.model.rules import PICK

STRAYS_MAX = 2
FAULTS = st.sampled_from(
    (
        *(("alipay.trade.query", action) for action in ("unknown_before", "lose_response")),
        *(("alipay.trade.close", action) for action in ("unknown_before", "lose_response")),
        *(("alipay.trade.precreate", action) for action in ("unknown_before", "unsigned")),
        *(("alipay.trade.refund", action) for action in ("unknown_before", "unknown_after")),
        ("alipay.trade.refund", "lose_response"),
        ("alipay.trade.refund", "no_balance"),
        ("alipay.trade.fastpay.refund.query", "unknown_before"),
    )
)


class BadDays(Machine):
    @precondition(lambda self: self.auditor.pages)
    @rule(pick=PICK, fault=FAULTS)
    def fault(self, pick: int, fault: tuple[str, str]) -> None:
        method, action = fault
        number = nth(list(self.auditor.pages), pick)
        if method != "alipay.trade.refund" or not self.has_console_refunds(number):
            self.step("fault", method, number, action)

    @precondition(lambda self: self.with_a_page())
    @rule(pick=PICK, method=st.sampled_from(("alipay.trade.query", "alipay.trade.close")))
    def cancel_in_the_dark(self, pick: int, method: str) -> None:
        order = self.auditor.orders[nth(self.with_a_page(), pick)]
        number = self.auditor.live_pages(order)[0].number
        if self.auditor.can_open(number):
            self.step("open", number)
        self.step("fault", method, number, "lose_response")
        self.step("cancel", order.member, order.name)

    def with_a_page(self) -> list[str]:
        return self.orders_that(
            lambda order: order.status in UNPAID and bool(self.auditor.live_pages(order))
        )

    @precondition(lambda self: self.refunds_to_lose())
    @rule(pick=PICK, is_done=st.booleans())
    def lose_a_refund(self, pick: int, is_done: bool) -> None:
        name = nth(self.refunds_to_lose(), pick)
        number = self.auditor.trades[self.auditor.refunds[name].trade].number
        action = "lose_response" if is_done else "unknown_before"
        self.step("fault", "alipay.trade.refund", number, action)
        self.step("deliver", "refund", name, "again")
        self.step("go", 15)

    def refunds_to_lose(self) -> list[str]:
        names = [subject for queue, subject in +self.auditor.waiting if queue == "refund"]
        trades = {name: self.auditor.trades[self.auditor.refunds[name].trade] for name in names}
        return [name for name in names if not self.has_console_refunds(trades[name].number)]

    def has_console_refunds(self, number: str) -> bool:
        of_number = (trade for trade in self.auditor.trades.values() if trade.number == number)
        return any(refund.startswith("console") for trade in of_number for refund in trade.refunds)


class Operators(Machine):
    @precondition(lambda self: self.paid())
    @rule(
        pick=PICK,
        key=st.sampled_from("rst"),
        amount=st.sampled_from(("rest", "1.00", "3.33", "50.00")),
        restock=st.sampled_from((None, None, "1001:1", "1002:1", "1001:2")),
    )
    def refund(self, pick: int, key: str, amount: str, restock: str | None) -> None:
        order = nth(self.paid(), pick) if pick < 9 else self.an_order(pick)
        self.step("refund", order, key, amount, restock)

    def paid(self) -> list[str]:
        return self.orders_that(lambda order: order.paid > 0)

    @precondition(lambda self: self.in_the_console())
    @rule(pick=PICK, what=st.sampled_from(("part", "part", "whole", "finish")))
    def console(self, pick: int, what: str) -> None:
        """The merchant's own; or the channel says that its time for refunds is over."""
        trade = nth(self.in_the_console(), pick)
        left = trade.amount - trade.back
        if what == "finish":
            self.step("finish", trade.name)
        elif self.may_refund(trade):
            self.step("console", trade.name, yuan(left if what == "whole" else max(left // 3, 1)))

    @precondition(lambda self: len(self.strays()) < STRAYS_MAX)
    @rule(amount=st.sampled_from(("9.90", "19.80", "3.33")))
    def stray(self, amount: str) -> None:
        """Money for a number that nobody knows."""
        self.step("pay", f"nobody{len(self.auditor.trades)}", amount)

    @precondition(lambda self: self.seen_to() or self.strays())
    @rule(pick=PICK, other=PICK, gives_back=st.booleans())
    def see_to(self, pick: int, other: int, gives_back: bool) -> None:
        trade = self.a_waiting_trade(pick)
        if gives_back or not self.auditor.orders:
            self.step("giveback", trade)
        else:
            self.step("attach", trade, self.an_order(other))

    def a_waiting_trade(self, pick: int) -> str:
        some = self.seen_to()
        return nth(some, pick) if some and pick < 8 else self.a_trade(pick)

    def seen_to(self) -> list[str]:
        waiting = ("UNMATCHED", "REFUND_FAILED")
        return [p.trade for p in self.auditor.payments.values() if p.state in waiting]

    def strays(self) -> list[Trade]:
        return [t for t in self.auditor.trades.values() if t.number.startswith("nobody")]

    def in_the_console(self) -> list[Trade]:
        return [trade for trade in self.auditor.trades.values() if trade.state == "SUCCESS"]

    def may_refund(self, trade: Trade) -> bool:
        """Where of a refund of ours nobody heard the end, only the channel can tell the two apart,
        and the auditor cannot say when it will."""
        auditor = self.auditor
        return (
            (trade.refunded_at is None or auditor.now - trade.refunded_at >= REFUND_GAP)
            and not any(refund.is_lost for refund in auditor.refunds_of(trade.name))
            and not auditor.faults["alipay.trade.refund", trade.number]
        )
