"""Order numbers: unique by index, rising in time, not guessable, readable by a person.

date(8, Beijing day) + business line(2) + millisecond of the day(8) + shard(2) + random(4) = 24
digits. The time is the database's, so a wrong clock elsewhere, or one that steps back, cannot
repeat a number more often than four random digits allow; the unique key catches the rest and the
caller draws again.
"""

import secrets
from datetime import datetime, timedelta
from typing import Final

from lockstep.beijing import BEIJING

LENGTH: Final = 24


def new_order_no(now: datetime, member_id: int, business_line: str = "01") -> str:
    """A fresh number for ``member_id`` at the database's time ``now`` (aware)."""
    local = now.astimezone(BEIJING)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    millisecond = (local - midnight) // timedelta(milliseconds=1)
    return (
        f"{local:%Y%m%d}{business_line}{millisecond:08d}"
        f"{member_id % 100:02d}{secrets.randbelow(10_000):04d}"
    )
