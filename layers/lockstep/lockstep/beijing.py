"""Beijing's clock: a fixed offset, since China has no summer time and slim containers no zone
files. All that Alipay is told and tells is in it: `yyyy-MM-dd HH:mm:ss`, and no word of a zone."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

BEIJING: Final = timezone(timedelta(hours=8))

# gmt_refund comes with a fraction of a second, the other times without.
_WRITTEN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
)


def to_utc(local: datetime) -> datetime:
    """A naive Beijing wall-clock time, as Alipay sends it, as aware UTC. Raises OverflowError."""
    return local.replace(tzinfo=BEIJING).astimezone(UTC)


def from_utc(moment: datetime) -> datetime:
    """An aware time on Beijing's clock."""
    return moment.astimezone(BEIJING)


def written(moment: datetime) -> str:
    """An aware time as Alipay reads it, floored to the second."""
    return from_utc(moment).strftime("%Y-%m-%d %H:%M:%S")


def read(text: str) -> datetime:
    """A time as Alipay writes it, as aware UTC. Raises ValueError."""
    if not _WRITTEN.fullmatch(text):
        raise ValueError("not a time of Alipay's")
    try:
        return to_utc(datetime.fromisoformat(text))
    except OverflowError as error:  # the first hours of the year 1
        raise ValueError(str(error)) from error
