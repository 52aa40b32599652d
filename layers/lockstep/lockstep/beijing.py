"""Beijing's clock: a fixed offset, since China has no summer time and slim containers no zone
files."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

BEIJING: Final = timezone(timedelta(hours=8))


def to_utc(local: datetime) -> datetime:
    """A naive Beijing wall-clock time, as Alipay sends it, as aware UTC. Raises OverflowError."""
    return local.replace(tzinfo=BEIJING).astimezone(UTC)
