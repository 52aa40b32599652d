"""The steps that a machine may take, by who takes them. Each is drawn, written down as a line of
words, and done by a `Life`, so that what failed can be done again without any machine.

Hypothesis leaves some rules out of a run and so takes the others more often: what needs many steps
of few kinds happens, too.
"""

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.proof.auditor.books import Order, Trade
from tests.proof.auditor.channel import REFUND_GAP
from tests.proof.auditor.minutes import Auditor
from tests.proof.model_life import Life
from tests.proof.model_world import a_still_world
from tests.support.database import Database

STRAYS_MAX = 2
PICK = st.integers(0, 9)
OWN = st.sampled_from((*[True] * 7, False))
LINES = st.sampled_from(
    (
        *("1001:1", "1001:2", "1001:1,1002:2", "1002:1", "2001:1", "2001:2,1002:1", "2001:2"),
        *("1001:3", "1002:4", "1003:1", "9999:1", "1001:1,2001:1"),
    )
)
PRODUCT = st.sampled_from(("page", "wap", "qr"))
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


class Departed(Exception):
    """The product and the auditor do not agree after these steps."""

    def __init__(self, steps: Iterable[str]) -> None:
        self.steps = "; ".join(steps)
        super().__init__(self.steps)


class Machine(RuleBasedStateMachine):
    """``lives`` are those that were lived, ``departed`` what was found in them."""

    database: ClassVar[Database]
    policy: ClassVar[str]
    lives: ClassVar[list[Life]]
    departed: ClassVar[list[Departed]]

    def __init__(self) -> None:
        super().__init__()
        self._open = ExitStack()
        still = self._open.enter_context(a_still_world(self.database, self.policy))
        self.life = Life(still, self.policy)
        self.lives.append(self.life)

    @property
    def auditor(self) -> Auditor:
        return self.life.auditor

    def step(self, *words: object) -> None:
        try:
            self.life.do(" ".join(str(word) for word in words if word is not None))
        except Exception as fault:
            self.departed.append(Departed(self.life.steps))
            raise self.departed[-1] from fault

    def teardown(self) -> None:
        with self._open:
            if sys.exc_info()[0] is None:
                self.step("rest")

    # --- what there is to choose from ------------------------------------------------------------

    def an_order(self, pick: int) -> str:
        return _nth(list(self.auditor.orders), pick)

    def a_trade(self, pick: int) -> str:
        return _nth(list(self.auditor.payments) or list(self.auditor.trades), pick)

    def orders_that(self, are: Callable[[Order], bool]) -> list[str]:
        return [order.name for order in self.auditor.orders.values() if are(order)]


def _nth[T](some: list[T], pick: int) -> T:
    """The newest is 0."""
    return some[-1 - pick % len(some)]


def _has_orders(machine: Machine) -> bool:
    return bool(machine.auditor.orders)


class Members(Machine):
    @initialize(lines=st.lists(LINES, min_size=1, max_size=3))
    def begin(self, lines: list[str]) -> None:
        for key, some in zip("xyz", lines, strict=False):
            self.step("place", 42, key, some)

    @rule(
        member=st.sampled_from((42, 43)),
        key=st.sampled_from("abcdefgh"),
        lines=LINES,
        expected=st.sampled_from((*[None] * 7, "9.90", "1.00")),
    )
    def place(self, member: int, key: str, lines: str, expected: str | None) -> None:
        self.step("place", member, key, lines, expected)

    @precondition(_has_orders)
    @rule(pick=PICK, what=st.sampled_from(("look", "cancel", "outage", "foreign")))
    def turn_to(self, pick: int, what: str) -> None:
        """Of an order; in an outage the queues take nothing, and what is staged waits for the
        relay."""
        order = self.an_order(pick)
        member = self.auditor.orders[order].member
        match what:
            case "look":
                self.step("look", order)
            case "foreign":
                self.step("cancel", 85 - member, order)
            case "outage":
                self.step("queues", "down")
                self.step("cancel", member, order)
                self.step("queues", "up")
            case _:
                self.step("cancel", member, order)


class Buyers(Machine):
    @initialize(products=st.lists(PRODUCT, max_size=2))
    def begin_to_pay(self, products: list[str]) -> None:
        for order, product in zip(self.auditor.orders, products, strict=False):
            self.step("start", 42, order, product)

    @precondition(_has_orders)
    @rule(pick=PICK, product=PRODUCT, own=OWN)
    def start(self, pick: int, product: str, own: bool) -> None:
        unpaid = self.orders_that(lambda order: order.status == "PENDING_PAYMENT")
        order = _nth(unpaid, pick) if unpaid and pick < 8 else self.an_order(pick)
        member = self.auditor.orders[order].member
        self.step("start", member if own else 85 - member, order, product)

    @precondition(_has_orders)
    @rule(
        pick=PICK,
        how=st.sampled_from((*["pay"] * 4, "open", "once more", "wrong", "without a page")),
    )
    def pay(self, pick: int, how: str) -> None:
        """At the cashier; or so that money comes whatever the channel's books say: twice, late, or
        another sum."""
        payable, pages = self.payable(), list(self.auditor.pages)
        if how in {"pay", "open"} and payable:
            self.step(how, _nth(payable, pick))
            return
        number = self.an_order(pick) if how == "without a page" or not pages else _nth(pages, pick)
        pay = self.auditor.orders[number.partition("_")[0]].pay
        self.step("pay", number, _yuan(pay + (how == "wrong")))

    @precondition(lambda self: self.auditor.notices)
    @rule(pick=PICK)
    def tell(self, pick: int) -> None:
        names = list(self.auditor.notices)
        untold = [name for name in names if self.auditor.notices[name].state is None]
        self.step("tell", _nth(untold if untold and pick < 8 else names, pick))

    def payable(self) -> list[str]:
        return [number for number in self.auditor.pages if self.auditor.can_open(number)]


class Quick(Machine):
    @precondition(lambda self: self.wanting())
    @rule(pick=PICK)
    def buy(self, pick: int) -> None:
        """All of it at once."""
        order = _nth(self.wanting(), pick)
        self.step("start", self.auditor.orders[order].member, order, "page")
        self.step("pay", list(self.auditor.pages)[-1])
        self.step("tell", list(self.auditor.notices)[-1])

    def wanting(self) -> list[str]:
        return self.orders_that(
            lambda order: (
                order.status == "PENDING_PAYMENT"
                and not self.auditor.pages_of(order)
                and self.auditor.trade_of(order.name) is None
                and (order.expires or 0) > self.auditor.now + 120
            )
        )


class Hours(Machine):
    @precondition(lambda self: +self.auditor.waiting)
    @rule(pick=PICK, again=st.sampled_from((None, None, None, "again")))
    def deliver(self, pick: int, again: str | None) -> None:
        self.step("deliver", *_nth(sorted((+self.auditor.waiting).elements()), pick), again)

    @rule(seconds=st.sampled_from((5, 15, 15, 61, 61, 61, 300, 700, 3700)), sweeps=st.booleans())
    def go(self, seconds: int, sweeps: bool) -> None:
        self.step("go", seconds)
        if sweeps:
            self.step("sweep")

    @precondition(lambda self: self.auditor.unsent)
    @rule()
    def relay(self) -> None:
        self.step("relay")


class Merchant(Machine):
    @rule(
        sku=st.sampled_from((1001, 1002, 1003, 2001)),
        stock=st.integers(0, 4),
        price=st.sampled_from(("9.90", "9.90", "7.77")),
        hot=st.sampled_from(("hot", "cold", "cold")),
        on_sale=st.sampled_from(("sells", "sells", "sells", "rests")),
    )
    def load(self, sku: int, stock: int, price: str, hot: str, on_sale: str) -> None:
        self.step("load", sku, stock, price, hot, on_sale)


class BadDays(Machine):
    @precondition(lambda self: self.auditor.pages)
    @rule(pick=PICK, fault=FAULTS)
    def fault(self, pick: int, fault: tuple[str, str]) -> None:
        method, action = fault
        number = _nth(list(self.auditor.pages), pick)
        if method != "alipay.trade.refund" or not self.has_console_refunds(number):
            self.step("fault", method, number, action)

    def has_console_refunds(self, number: str) -> bool:
        of_number = (trade for trade in self.auditor.trades.values() if trade.number == number)
        return any(refund.startswith("console") for trade in of_number for refund in trade.refunds)


class Operators(Machine):
    @precondition(_has_orders)
    @rule(
        pick=PICK,
        key=st.sampled_from("rs"),
        amount=st.sampled_from(("rest", "1.00", "3.33", "50.00")),
        restock=st.sampled_from((None, None, "1001:1", "1002:1", "1001:2")),
    )
    def refund(self, pick: int, key: str, amount: str, restock: str | None) -> None:
        paid = self.orders_that(lambda order: order.paid > 0)
        self.step("refund", _nth(paid or list(self.auditor.orders), pick), key, amount, restock)

    @precondition(lambda self: self.in_the_console())
    @rule(pick=PICK, what=st.sampled_from(("part", "part", "whole", "finish")))
    def console(self, pick: int, what: str) -> None:
        """The merchant's own; or the channel says that its time for refunds is over."""
        trade = _nth(self.in_the_console(), pick)
        left = trade.amount - trade.back
        if what == "finish":
            self.step("finish", trade.name)
        elif self.may_refund(trade):
            self.step("console", trade.name, _yuan(left if what == "whole" else max(left // 3, 1)))

    @precondition(lambda self: len(self.strays()) < STRAYS_MAX)
    @rule(amount=st.sampled_from(("9.90", "19.80", "3.33")))
    def stray(self, amount: str) -> None:
        """Money for a number that nobody knows."""
        self.step("pay", f"nobody{len(self.auditor.trades)}", amount)

    @precondition(lambda self: self.auditor.payments or self.strays())
    @rule(pick=PICK, other=PICK, gives_back=st.booleans())
    def see_to(self, pick: int, other: int, gives_back: bool) -> None:
        trade = self.a_waiting_trade(pick)
        if gives_back or not self.auditor.orders:
            self.step("giveback", trade)
        else:
            self.step("attach", trade, self.an_order(other))

    def a_waiting_trade(self, pick: int) -> str:
        waiting = ("UNMATCHED", "REFUND_FAILED")
        some = [p.trade for p in self.auditor.payments.values() if p.state in waiting]
        return _nth(some, pick) if some and pick < 5 else self.a_trade(pick)

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


class Stock(Members, Quick, Hours, Merchant):
    """Many orders for few pieces, paid at once or not at all."""


class Orders(Members, Buyers, Hours, BadDays):
    """Pages, their payments and their ends."""


class Money(Members, Buyers, Hours, BadDays, Operators):
    """Whatever comes and goes back."""


class Joint(Members, Buyers, Quick, Hours, Merchant, BadDays, Operators):
    """Everybody at once."""


def _yuan(fen: int) -> str:
    return f"{fen // 100}.{fen % 100:02d}"
