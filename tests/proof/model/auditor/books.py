"""What there is: SKUs, orders, holds, pages, trades, payments, refunds, and messages on their way.

An order is named by a number from 1 on, its holds `1-1`, `1-2`, its pages `1`, `1_2` as at the
channel, a trade `t1`, and a refund of ours by its trade, `t1#1`.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

UNPAID: Final = frozenset({"PENDING_PAYMENT", "PAYMENT_PROCESSING"})
OPEN: Final = UNPAID | {"RESERVING"}
LIVE: Final = frozenset({"OPEN", "CLOSING"})
IN_FLIGHT: Final = frozenset({"CALLING", "UNKNOWN"})

type Lines = dict[int, int]
type Message = tuple[str, str]


class Said(NamedTuple):
    """What a call is answered; ``more`` is what else of the document matters."""

    status: int
    code: str | None = None
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed


@dataclass
class Sku:
    price: int
    stock: int
    locked: int = 0
    hot: bool = False
    on_sale: bool = True

    @property
    def available(self) -> int:
        return self.stock - self.locked


@dataclass
class Hold:
    order: str
    state: str
    items: Lines
    until: int = 0


@dataclass
class Order:
    name: str
    member: int
    lines: Lines
    pay: int
    created: int
    status: str = ""
    trail: list[str] = field(default_factory=list)
    expires: int | None = None
    close_reason: str | None = None
    wish: bool = False
    paid: int = 0
    back: int = 0
    n: int = 1
    turn: int | None = None
    returned: Counter[int] = field(default_factory=Counter)

    @property
    def hold(self) -> str:
        return f"{self.name}-{self.n}"

    def become(self, status: str) -> None:
        self.status = status
        self.trail.append(status)


@dataclass
class Page:
    """``asked``: the channel has heard of it."""

    number: str
    order: str
    product: str
    expires: int
    state: str = "OPEN"
    asked: bool = False


@dataclass
class Trade:
    """As the channel has it. ``refunds`` by their number: ours by name."""

    name: str
    number: str
    amount: int
    expires: int | None
    state: str = "WAIT"
    paid_at: int | None = None
    refunds: dict[str, int] = field(default_factory=dict)
    refunded_at: int | None = None

    @property
    def back(self) -> int:
        return sum(self.refunds.values())


@dataclass
class Notice:
    """What the channel tells of a trade; ``state`` is None until it is told the first time."""

    name: str
    kind: str
    trade: str
    number: str = ""
    total: int = 0
    state: str | None = None


@dataclass
class Payment:
    trade: str
    order: str | None
    amount: int
    state: str
    reason: str | None
    paid_at: int
    created: int
    back: int = 0
    finished: bool = False


@dataclass
class Refund:
    """``is_disputed``: it was refused, since its trade is closed; ``is_lost``: of some try of it
    nobody heard the end."""

    name: str
    trade: str
    amount: int
    key: tuple[str, ...]
    state: str = "DUE"
    content: tuple[Any, ...] = ()
    called: int | None = None
    is_disputed: bool = False
    is_lost: bool = False


@dataclass
class Books:
    """``faults`` are what goes wrong with the next calls of a method about a number, ``said`` when
    what was staged for whom, ``unsent`` what the queues did not take."""

    policy: str
    skus: dict[int, Sku]
    now: int = 0
    is_down: bool = False
    orders: dict[str, Order] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    keys: dict[tuple[int, str], tuple[Any, str]] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    trades: dict[str, Trade] = field(default_factory=dict)
    notices: dict[str, Notice] = field(default_factory=dict)
    payments: dict[str, Payment] = field(default_factory=dict)
    refunds: dict[str, Refund] = field(default_factory=dict)
    waiting: Counter[Message] = field(default_factory=Counter)
    unsent: list[tuple[Message, int]] = field(default_factory=list)
    said: defaultdict[Message, list[int]] = field(default_factory=lambda: defaultdict(list))
    refused: set[tuple[str, str]] = field(default_factory=set)
    faults: defaultdict[tuple[str, str], list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def stage(self, queue: str, subject: str) -> None:
        self.said[queue, subject].append(self.now)
        if self.is_down:
            self.unsent.append(((queue, subject), self.now))
        else:
            self.waiting[queue, subject] += 1

    def pages_of(self, order: Order) -> list[Page]:
        return [page for page in self.pages.values() if page.order == order.name]

    def live_pages(self, order: Order) -> list[Page]:
        return [page for page in self.pages_of(order) if page.state in LIVE]

    def refunds_of(self, trade: str) -> list[Refund]:
        return [refund for refund in self.refunds.values() if refund.trade == trade]
