"""Fingerprints decide for ever whether an old key is a replay: the form must never drift."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep import fingerprint
from lockstep.fingerprint import merge_lines

PAIRS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 1000)), min_size=1)


@pytest.mark.parametrize(
    ("computed", "golden"),
    [
        (
            fingerprint.of_order_request({1001: 2, 1002: 1}, "ring twice", Decimal("24.85")),
            "ad3a0399f70269a0209bd8d518577420900c932ff02679bdb5c94acc098217f5",
        ),
        (
            fingerprint.of_order_request({1001: 1}, None, None),
            "ff797ebe5a251562d329bc469e4b54adc3d110268acf237a734c5c0bef4df201",
        ),
        (
            fingerprint.of_order_request({1001: 1}, "门口", None),
            "c8df7fd0d55e574b7dd2e5eb1e61876f96df892051f250bb34cb6a4256193833",
        ),
        (
            fingerprint.of_reservation(7, {1001: 2, 1002: 1}),
            "6afe0f1884d7ba56f181d30ec52fd37aa2906a7ac3c56773e0e49278c4e0d502",
        ),
        (
            fingerprint.of_notice(["a", None, Decimal("9.90")]),
            "d78f5b4a281534bd9e64d2af49c110d1005d1fcaf9a73b3c7fc4d2886da7d272",
        ),
    ],
)
def test_stored_fingerprints_are_still_what_the_code_computes(computed, golden):
    """A change here makes every stored key a reuse: raise the version and accept both instead."""
    assert computed == golden


@given(PAIRS, st.randoms())
def test_the_order_of_the_lines_is_irrelevant(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    one = fingerprint.of_order_request(merge_lines(pairs), None, None)
    assert fingerprint.of_order_request(merge_lines(shuffled), None, None) == one
    lines = dict(reversed(merge_lines(pairs).items()))
    assert fingerprint.of_order_request(lines, None, None) == one


def test_each_part_of_a_request_tells_it_from_another():
    requests: list[tuple[dict[int, int], str | None, Decimal | None]] = [
        ({1: 1}, None, None),
        ({1: 2}, None, None),
        ({2: 1}, None, None),
        ({1: 1, 2: 1}, None, None),
        ({1: 1}, "", None),
        ({1: 1}, "a", None),
        ({1: 1}, None, Decimal("1.00")),
        ({1: 1}, "1.00", None),
    ]
    assert len({fingerprint.of_order_request(*request) for request in requests}) == len(requests)


def test_an_expected_amount_counts_by_its_value_not_by_its_spelling():
    one, other = Decimal("19.8"), Decimal("19.80")
    assert fingerprint.of_order_request({1: 1}, None, one) == fingerprint.of_order_request(
        {1: 1}, None, other
    )


def test_a_hold_is_its_orders_own():
    assert fingerprint.of_reservation(1, {1: 1}) != fingerprint.of_reservation(2, {1: 1})
    assert fingerprint.of_reservation(1, {1: 1}) != fingerprint.of_reservation(1, {1: 2})


def test_an_absent_part_of_a_notice_is_not_the_word_none():
    assert fingerprint.of_notice([None]) != fingerprint.of_notice(["None"])
    assert fingerprint.of_notice(["a", "b"]) != fingerprint.of_notice(["ab"])


@given(PAIRS)
def test_lines_merge_alike_from_a_list_and_from_an_iterator(pairs):
    """An iterator is spent after one pass; a helper that passed twice would lose its quantities."""
    assert merge_lines(iter(pairs)) == merge_lines(pairs)


@given(PAIRS)
def test_merged_lines_ascend_and_keep_every_piece(pairs):
    merged = merge_lines(pairs)
    assert list(merged) == sorted(merged)
    assert sum(merged.values()) == sum(quantity for _, quantity in pairs)
