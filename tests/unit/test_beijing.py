"""Beijing's clock, eight hours ahead of UTC in every season, as Alipay reads and writes it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep import beijing

moments = st.integers(-30_000_000_000, 250_000_000_000).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC).replace(microsecond=seconds % 1_000_000)
)


@given(moments)
def test_what_is_written_is_read_back_to_the_second(moment):
    assert beijing.read(beijing.written(moment)) == moment.replace(microsecond=0)


@given(moments)
def test_there_and_back_is_where_one_was(moment):
    there = beijing.from_utc(moment)
    assert there.utcoffset() == timedelta(hours=8)
    assert beijing.to_utc(there.replace(tzinfo=None)) == moment


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 10, 24, 16, 0, 0, 999999, tzinfo=UTC),
        datetime(2026, 10, 24, 12, 0, 0, 999999, tzinfo=timezone(timedelta(hours=-4))),
    ],
)
def test_a_day_begins_at_four_in_the_afternoon_of_utc_and_seconds_are_floored(moment):
    assert beijing.written(moment) == "2026-10-25 00:00:00"


@pytest.mark.parametrize("text", ["", "2026-10-24", "2026-02-30 10:00:00", "0001-01-01 00:00:00"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whichever words
        beijing.read(text)
