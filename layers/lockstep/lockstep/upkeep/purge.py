"""Delete what nobody needs any more, while everything runs.

Sent messages, decided notices, tombstones and refusals of messages go when they are old. Orders,
their requests, holds, payments, entries and events never do: a request row lives as long as its
order, since without it a retry would be a second order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lockstep.db.transaction import Reader, Tx, in_transaction, read
from lockstep.upkeep import purge_store as store
from lockstep.upkeep.purge_store import Found

type Find = Callable[[Reader, datetime, int], Found]
type Delete = Callable[[Tx, Sequence[int]], int]

# Alipay sends a notice again for 25 hours.
NOTICE_DAYS_MIN: Final = 2
_BEGINNING: Final = datetime(1970, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days what is kept; raises ValueError for what would break a promise."""

    queue_days: int = 4
    dead_letter_days: int = 14
    outbox_days: int = 30
    notice_days: int = 30
    refusal_days: int = 90

    def __post_init__(self) -> None:
        for name, days, least in (
            ("queue_days", self.queue_days, 1),
            ("dead_letter_days", self.dead_letter_days, 1),
            ("outbox_days", self.outbox_days, self.message_days),
            ("notice_days", self.notice_days, NOTICE_DAYS_MIN),
            ("refusal_days", self.refusal_days, self.message_days),
        ):
            if days < least:
                raise ValueError(f"{name} is {days}, and {least} is the least that is safe")

    @property
    def message_days(self) -> int:
        """How long a sent message can live: in its queue, as a dead letter whose time starts anew,
        and in its queue again after a redrive. Tombstones live as long."""
        return self.queue_days + self.dead_letter_days + self.queue_days


@dataclass
class Purged:
    """How many rows went; ``is_finished`` if no more of them are old enough."""

    outbox: int = 0
    notices: int = 0
    tombstones: int = 0
    refusals: int = 0
    is_finished: bool = True


def purge(retention: Retention, has_time: Callable[[], bool]) -> Purged:
    """Delete what is older than ``retention``, until nothing is or ``has_time`` says no.

    Effect: rows deleted by primary key, some hundred a transaction. Two purges may run at once.
    Repeat: nothing is left to delete.
    """
    purged = Purged()

    def each(find: Find, delete: Delete, days: int) -> int:
        deleted, is_finished = _purge(find, delete, days, has_time)
        purged.is_finished &= is_finished
        return deleted

    message_days = retention.message_days
    purged.outbox = each(store.find_outbox, store.delete_outbox, retention.outbox_days)
    purged.notices = each(store.find_notices, store.delete_notices, retention.notice_days)
    purged.tombstones = each(store.find_tombstones, store.delete_tombstones, message_days)
    purged.refusals = each(store.find_refusals, store.delete_refusals, retention.refusal_days)
    return purged


def _purge(find: Find, delete: Delete, days: int, has_time: Callable[[], bool]) -> tuple[int, bool]:
    """(rows deleted, whether that was all)."""
    deleted, since = 0, _BEGINNING
    while has_time():
        found = _look(find, since, days)
        if found.ids:
            deleted += _delete(delete, found.ids)
        if len(found.ids) < store.CHUNK_SIZE:
            return deleted, True
        since = found.at
    return deleted, False


def _look(find: Find, since: datetime, days: int) -> Found:
    return read(lambda reader: find(reader, since, days))


def _delete(delete: Delete, ids: Sequence[int]) -> int:
    return in_transaction(lambda tx: delete(tx, ids))
