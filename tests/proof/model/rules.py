"""The steps that a machine may take, by who takes them. Each is drawn, written down as a line of
words, and done by a `Life`, so that what failed can be done again without any machine.

Hypothesis leaves some rules out of a run and so takes the others more often: what needs many steps
of few kinds happens, too.
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.proof.model.machine import Machine, has_orders, nth, yuan

REPEATS_MAX = 4
PICK = st.integers(0, 9)
OWN = st.sampled_from((*[True] * 7, False))
LINES = st.sampled_from(
    (
        *("1001:1", "1001:2", "1001:1,1002:2", "1002:1", "2001:1", "2001:2,1002:1", "2001:2"),
        *("1001:1", "1002:1", "1001:2", "1002:4", "1003:1", "9999:1", "1001:1,2001:1"),
    )
)
PRODUCT = st.sampled_from(("page", "wap", "qr"))


class Members(Machine):
    @initialize(lines=st.lists(LINES, min_size=1, max_size=3))
    def begin(self, lines: list[str]) -> None:
        for key, some in zip("xyz", lines, strict=False):
            self.step("place", 42, key, some)

    @rule(
        member=st.sampled_from((42, 43)),
        key=st.sampled_from("abcdefgh"),
        lines=LINES,
        expected=st.sampled_from((*[None] * 9, "9.90", "1.00")),
    )
    def place(self, member: int, key: str, lines: str, expected: str | None) -> None:
        self.step("place", member, key, lines, expected)

    @precondition(has_orders)
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

    @precondition(has_orders)
    @rule(pick=PICK, product=PRODUCT, own=OWN)
    def start(self, pick: int, product: str, own: bool) -> None:
        unpaid = self.orders_that(lambda order: order.status == "PENDING_PAYMENT")
        order = nth(unpaid, pick) if unpaid and pick < 8 else self.an_order(pick)
        member = self.auditor.orders[order].member
        self.step("start", member if own else 85 - member, order, product)

    @precondition(has_orders)
    @rule(
        pick=PICK,
        how=st.sampled_from((*["pay"] * 4, "open", "once more", "wrong", "without a page")),
    )
    def pay(self, pick: int, how: str) -> None:
        """At the cashier; or so that money comes whatever the channel's books say: twice, late, or
        another sum."""
        payable, pages = self.payable(), list(self.auditor.pages)
        if how in {"pay", "open"} and payable:
            self.step(how, nth(payable, pick))
            return
        number = self.an_order(pick) if how == "without a page" or not pages else nth(pages, pick)
        pay = self.auditor.orders[number.partition("_")[0]].pay
        self.step("pay", number, yuan(pay + (how == "wrong")))

    @precondition(lambda self: self.late_to_be())
    @rule(pick=PICK)
    def pay_unseen(self, pick: int) -> None:
        """In time, by a number that nobody asks about; when that is told the order is over."""
        order = self.auditor.orders[nth(self.late_to_be(), pick)]
        self.step("pay", order.name, yuan(order.pay))
        self.step("go", 700)
        self.step("sweep")

    def late_to_be(self) -> list[str]:
        return self.orders_that(
            lambda order: order.status == "PENDING_PAYMENT" and not self.auditor.pages_of(order)
        )

    @precondition(lambda self: self.untold())
    @rule(pick=PICK)
    def tell(self, pick: int) -> None:
        self.step("tell", nth(self.untold(), pick))

    @precondition(lambda self: self.auditor.notices and self.life.repeats < REPEATS_MAX)
    @rule(pick=PICK)
    def tell_again(self, pick: int) -> None:
        self.life.repeats += 1
        self.step("tell", nth(list(self.auditor.notices), pick))

    def untold(self) -> list[str]:
        return [n.name for n in self.auditor.notices.values() if n.state is None]

    def payable(self) -> list[str]:
        return [number for number in self.auditor.pages if self.auditor.can_open(number)]


class Quick(Machine):
    @precondition(lambda self: self.wanting())
    @rule(pick=PICK)
    def buy(self, pick: int) -> None:
        """All of it at once."""
        order = nth(self.wanting(), pick)
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
        self.step("deliver", *nth(sorted((+self.auditor.waiting).elements()), pick), again)

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
