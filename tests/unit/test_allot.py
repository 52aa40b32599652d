"""allot(): what is there goes to whoever came first, each order whole or not at all."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lockstep.inventory.allot import allot
from lockstep.inventory.model import ShortLine, Wanted

SKUS = st.integers(1, 4)
LINES = st.dictionaries(SKUS, st.integers(1, 5), min_size=1)
CROWDS = st.lists(LINES, max_size=12).map(
    lambda crowd: [Wanted(n, f"{n}-1", lines) for n, lines in enumerate(crowd, 1)]
)
STOCK = st.dictionaries(SKUS, st.integers(0, 12))


def one_by_one(
    crowd: list[Wanted], stock: dict[int, int]
) -> tuple[list[int], dict[int, tuple[ShortLine, ...]], dict[int, int]]:
    """What would come of them if each came alone: (granted, short, left)."""
    left = dict(stock)
    granted: list[int] = []
    short: dict[int, tuple[ShortLine, ...]] = {}
    for order in crowd:
        lacking: list[ShortLine] = []
        for sku_id in order.lines:
            there = left.get(sku_id, 0)
            if there < order.lines[sku_id]:
                lacking.append(ShortLine(sku_id, order.lines[sku_id], there))
        if lacking:
            short[order.order_id] = tuple(lacking)
            continue
        granted.append(order.order_id)
        for sku_id in order.lines:
            left[sku_id] -= order.lines[sku_id]
    return granted, short, left


@given(CROWDS, STOCK)
def test_together_they_get_what_each_would_get_alone(crowd, stock):
    granted, short, left = one_by_one(crowd, stock)
    allotted = allot(crowd, stock)
    assert [order.order_id for order in allotted.granted] == granted
    assert allotted.short == short
    assert list(allotted.short) == list(short)
    assert {sku_id: n - allotted.taken[sku_id] for sku_id, n in stock.items()} == left


@given(CROWDS, STOCK)
def test_what_is_taken_is_what_is_granted_and_never_more_than_there_is(crowd, stock):
    allotted = allot(iter(crowd), stock)
    wanted: Counter[int] = Counter()
    for order in allotted.granted:
        wanted.update(order.lines)
    assert allotted.taken == wanted
    assert all(0 < n <= stock[sku_id] for sku_id, n in allotted.taken.items())
    assert len(allotted.granted) + len(allotted.short) == len(crowd)


def test_an_order_that_is_refused_leaves_its_other_lines_to_those_behind_it():
    crowd = [Wanted(1, "1-1", {1: 2, 2: 9}), Wanted(2, "2-1", {1: 2})]
    allotted = allot(crowd, {1: 2, 2: 8})
    assert allotted.granted == crowd[1:]
    assert allotted.short == {1: (ShortLine(2, 9, 8),)}


def test_a_refusal_names_every_line_that_is_short_and_no_other():
    crowd = [Wanted(1, "1-1", {1: 1, 2: 1, 3: 1, 4: 2})]
    assert allot(crowd, {1: 0, 2: 1, 4: 1}).short == {
        1: (ShortLine(1, 1, 0), ShortLine(3, 1, 0), ShortLine(4, 2, 1))
    }
