"""What members, operators, Alipay's console and the system do in a storm of money: all of it from
one seed, in the order in which it begins.

Each order has a fate, dealt like cards so that every one of them happens: acts in their order,
mixed with everybody else's. What a word means stands in `money_acts`.
"""

import random
from dataclasses import dataclass, field
from typing import Final

from lockstep.orders.model import Order, PlaceOrder
from lockstep.payments.model import Product

STOCK: Final = {1001: 40, 1002: 2000, 1003: 2000, 1004: 2000, 1005: 2000, 2001: 50, 2002: 2000}
# A single fen has no parts, and what three of them cost has some that are odd.
PRICE: Final = {1003: "0.01", 1004: "33.33"}
HOT: Final = {2001, 2002}
PRODUCTS: Final[tuple[Product, ...]] = ("page", "wap", "qr")

# How often in a round of all of them. "start" is a page, a wap page or a code, as chance has it.
FATES: Final = {
    "place": 2,
    "place start": 2,
    "place start open": 2,
    "place start pay": 8,
    "place place start start pay": 4,
    # Twice, wrong, and by two pages.
    "place start pay again": 4,
    "place start wrong": 2,
    "place start wrong start pay": 2,
    "place start start pay pay_first": 5,
    # Given up: before, while and after it is paid, and while the channel says nothing.
    "place cancel": 2,
    "place start cancel": 3,
    "place start open cancel": 3,
    "place start cancel pay": 4,
    "place start pay cancel": 4,
    "place start cancel_in_the_dark": 2,
    "place start open cancel_in_the_dark pay": 3,
    # Over: asked about, paid late, and paid in time but told late.
    "place start poll": 1,
    "place start open expire": 3,
    "place start expire pay": 2,
    "place start expire late": 3,
    "place expire late": 2,
    "place start expire in_time": 4,
    "place expire in_time in_time": 3,
    # Paid, and no notice tells.
    "place start untold": 4,
    "place start untold_cancel": 7,
    "place start poll untold poll": 3,
    # Refunds by operators, each key repeated; in the merchant's console; and after the last day.
    "place start pay refund_part refund_part refund_rest": 6,
    "place start pay refund_rest refund_rest refund_rest": 6,
    "place start pay refund_part console_part": 8,
    "place start pay console_part refund_rest": 4,
    "place start pay console_rest": 3,
    "place start pay refund_part console_rest": 3,
    "place start pay finish refund_rest": 3,
    "place start expire late finish": 3,
    "place start pay again console_part": 3,
    "place start expire late console_part give_back": 4,
    # Money for a number that nobody knows.
    "stray": 2,
    "stray give_back give_back": 3,
    "stray console_part": 1,
    "place stray attach attach": 4,
    "place cancel stray attach": 2,
}
# What the system does by itself between all that, for every hundred orders.
UPKEEP: Final = {"deliver": 200, "relay": 8, "sweep": 12, "a_minute": 20}
# The seller's account is empty for some time.
ONCE: Final = {"empty_the_account": (0.3, 0.5), "fill_the_account": (0.6, 0.8)}


@dataclass
class Member:
    """What one member wants, and what came of it so far. ``numbers`` are the out_trade_no of the
    pages, ``trades`` the trade_no of what was paid."""

    n: int
    command: PlaceOrder
    order: Order | None = None
    numbers: list[str] = field(default_factory=list)
    trades: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Act:
    """``member`` is nobody in particular where the system does something by itself."""

    what: str
    member: Member
    product: Product = "page"


NOBODY: Final = Member(0, PlaceOrder(1, "nobody", {}))


def plan(seed: int, orders: int) -> list[Act]:
    """The acts, each order's in theirs, all mixed."""
    chance = random.Random(seed)
    acts: list[tuple[float, Act]] = []
    for n, fate in enumerate(_dealt(chance, orders), start=1):
        member = Member(n, PlaceOrder(n % 60 + 1, f"k{n}", _lines(chance)))
        words = fate.split()
        moments = _moments(chance, words)
        acts += [
            (at, Act(word, member, chance.choice(PRODUCTS)))
            for at, word in zip(moments, words, strict=True)
        ]
    for word, times in UPKEEP.items():
        acts += [(chance.random(), Act(word, NOBODY)) for _ in range(times * orders // 100)]
    acts += [(chance.uniform(*between), Act(word, NOBODY)) for word, between in ONCE.items()]
    return [act for _, act in sorted(acts, key=lambda timed: timed[0])]


def _moments(chance: random.Random, words: list[str]) -> list[float]:
    """Placed early, so that there is time for the rest. In half of all fates the last two acts
    begin at the same moment, unless the first of them must be over for the other to make sense."""
    first = chance.random() * 0.5
    moments = [first, *sorted(chance.uniform(first, 1) for _ in words[1:])]
    if len(words) > 2 and words[-2] != "start" and chance.random() < 0.5:
        moments[-2] = moments[-1]
    return moments


def _dealt(chance: random.Random, orders: int) -> list[str]:
    round_of_all = [fate for fate, times in FATES.items() for _ in range(times)]
    rounds = -(-orders // len(round_of_all))
    dealt = (round_of_all * rounds)[:orders]
    chance.shuffle(dealt)
    return dealt


def _lines(chance: random.Random) -> dict[int, int]:
    skus = chance.sample(sorted(STOCK), chance.choice([1, 1, 2, 3]))
    return {sku_id: chance.choice([1, 1, 2]) for sku_id in sorted(skus)}
