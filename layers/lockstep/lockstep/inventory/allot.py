"""Deal out what is available, first come first served: each order whole, or not at all."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep.inventory.model import ShortLine, Wanted


@dataclass(frozen=True, slots=True)
class Allotted:
    """Who gets what is wanted, and whose lines are short, each in order of arrival; ``taken`` is
    how much of which SKU that comes to."""

    granted: list[Wanted]
    short: dict[int, tuple[ShortLine, ...]]
    taken: Counter[int]


def allot(wanted: Iterable[Wanted], available: Mapping[int, int]) -> Allotted:
    """As if each order came alone, in this order: one that is refused leaves what it wanted to
    those behind it. A SKU that ``available`` does not know has nothing."""
    allotted = Allotted([], {}, Counter())
    for order in wanted:
        short = tuple(
            ShortLine(sku_id, quantity, left)
            for sku_id, quantity in order.lines.items()
            if (left := available.get(sku_id, 0) - allotted.taken[sku_id]) < quantity
        )
        if short:
            allotted.short[order.order_id] = short
        else:
            allotted.granted.append(order)
            allotted.taken.update(order.lines)
    return allotted
