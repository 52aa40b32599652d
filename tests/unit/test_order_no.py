"""Order numbers: the Beijing day of the database's clock, rising, and rarely the same twice."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.beijing import to_utc
from lockstep.order_no import new_order_no

NOON = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)


def test_a_number_has_24_digits_each_with_its_place(monkeypatch):
    monkeypatch.setattr(secrets, "randbelow", lambda _: 7)
    at = datetime(2026, 11, 30, 4, 0, 0, 123_999, tzinfo=UTC)
    number = new_order_no(at, 4242)
    assert number == "202611300143200123420007"
    assert len(number) == 24
    assert new_order_no(at, 4242, business_line="07")[8:10] == "07"


@pytest.mark.parametrize(
    ("utc", "day", "millisecond"),
    [
        (datetime(2026, 11, 30, 15, 59, tzinfo=UTC), "20261130", 86_340_000),  # 23:59 in Beijing
        (datetime(2026, 11, 30, 15, 59, 59, 999_999, tzinfo=UTC), "20261130", 86_399_999),
        (datetime(2026, 11, 30, 16, 0, tzinfo=UTC), "20261201", 0),  # midnight in Beijing
        (datetime(2026, 11, 30, 16, 1, tzinfo=UTC), "20261201", 60_000),  # 00:01 in Beijing
        (datetime(2026, 12, 31, 16, 0, tzinfo=UTC), "20270101", 0),
    ],
)
def test_the_day_turns_at_midnight_in_beijing(utc, day, millisecond):
    number = new_order_no(utc, 1)
    assert number[:8] == day
    assert int(number[10:18]) == millisecond


def test_numbers_rise_with_time_also_over_midnight():
    start = datetime(2026, 11, 30, 15, 59, 59, 990_000, tzinfo=UTC)
    numbers = [new_order_no(start + timedelta(milliseconds=i), 99) for i in range(20)]
    assert numbers == sorted(numbers)


def test_the_shard_keeps_one_members_numbers_apart_from_anothers():
    assert new_order_no(NOON, 100)[18:20] == "00"
    assert new_order_no(NOON, 199)[18:20] == "99"


def test_ten_thousand_numbers_over_a_clock_set_back_hardly_ever_repeat():
    """Worst case: one member, eight processes on one clock, which steps back 5 s half-way.

    Sixteen draws share each millisecond, so by chance some 7 of 10 000 repeat; the unique key
    uk_order_no refuses those and place() draws again.
    """

    def draw(_worker: int) -> list[str]:
        five_seconds = [NOON + timedelta(milliseconds=8 * i) for i in range(625)]
        return [new_order_no(at, 42) for at in five_seconds + five_seconds]

    with ThreadPoolExecutor(8) as workers:
        numbers = [number for drawn in workers.map(draw, range(8)) for number in drawn]
    assert len(numbers) == 10_000
    assert len(numbers) - len(set(numbers)) < 40


def test_the_random_part_is_drawn_anew_each_time():
    assert len({new_order_no(NOON, 42)[-4:] for _ in range(200)}) > 150


def test_beijing_time_is_eight_hours_ahead():
    assert to_utc(datetime(2026, 12, 1, 0, 1)) == datetime(  # noqa: DTZ001 - as sent
        2026, 11, 30, 16, 1, tzinfo=UTC
    )
