"""The proof's world with every clock standing still until a step moves it, and with the messages
and notices lying where a step can pick any one of them.

The database's sessions, the channel and the product's client all read one time, so that what is due
is due for everybody, on a slow machine too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final

import pytest

from infra.local.alipay_gateway.wording import Notice
from lockstep.alipay import gateway
from lockstep.db import connection
from lockstep.upkeep import ask_due
from tests.proof.world import World, a_world
from tests.support import notices
from tests.support.builders import a_sku
from tests.support.database import Database
from tests.support.local_alipay import PassingClock

BEGAN: Final = datetime(2026, 10, 24, 2, 0, 0, tzinfo=UTC)
# (price, stock, hot, on_sale): little of each, so that it runs out.
SKUS: Final = {
    1001: ("9.90", 4, False, True),
    1002: ("3.33", 3, False, True),
    1003: ("5.00", 5, False, False),
    2001: ("1.00", 3, True, True),
}


class StillClock(PassingClock):
    def __call__(self) -> datetime:
        return BEGAN + self.ahead

    @property
    def seconds(self) -> int:
        return int(self.ahead.total_seconds())


@dataclass
class StillWorld:
    """``told`` are the channel's notices, by no order."""

    world: World
    clock: StillClock
    told: list[Notice] = field(default_factory=list)

    def go(self, seconds: int) -> None:
        self.clock.ahead += timedelta(seconds=seconds)
        connection.current().execute("SET timestamp = %s", (self.clock().timestamp(),))
        self.world.books.close_due()

    def tell(self, notice: Notice) -> str:
        """Send this notice, for the first time or again; what is answered."""
        body = self.world.alipay.service._encode(notice.words)
        return str(notices.answer(notices.http_event(body))["body"])


@contextmanager
def a_still_world(database: Database, policy: str) -> Iterator[StillWorld]:
    clock = StillClock()
    with (
        pytest.MonkeyPatch.context() as patch,
        a_world(database, policy=policy, clock=clock, stock={}) as world,
    ):
        still = StillWorld(world, clock)
        _stop_the_clocks(clock, patch)
        # One question after the other, so that a history is the same each time.
        patch.setattr(ask_due, "PARALLEL_MAX", 1)
        world.books._tell = still.told.append
        for sku, (price, stock, hot, on_sale) in SKUS.items():
            a_sku(database, sku, price=price, stock=stock, hot=hot, on_sale=on_sale)
        yield still
        connection.discard()


def _stop_the_clocks(clock: StillClock, patch: pytest.MonkeyPatch) -> None:
    variables = connection._session_variables

    def at_the_time(lock_wait_seconds: int | None) -> str:
        return f"{variables(lock_wait_seconds)}, SESSION timestamp = {clock().timestamp()}"

    class Stopped:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return clock().astimezone(zone)

    connection.discard()
    patch.setattr(connection, "_session_variables", at_the_time)
    patch.setattr(gateway, "datetime", Stopped)


def fen(yuan: Decimal | str) -> int:
    return int(Decimal(yuan) * 100)
