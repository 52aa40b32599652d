"""Send what the handlers' own sends left behind: claim, commit, send, mark per entry.

Nothing is locked while SQS is called. A claim is a lease: a relay that dies leaves its rows due
again. Two relays may run at once; the order inside a group is kept by one of them, and the
consumers do not rely on it (infra/decisions/0007).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import batched, groupby
from typing import Final

from lockstep.db.transaction import Tx, in_transaction, read
from lockstep.messaging import store
from lockstep.messaging.outbox import send_batch
from lockstep.messaging.store import Staged
from lockstep.observability import count

CLAIM_MAX: Final = 100
# Longer than a batch takes to send; shorter than anybody would notice.
LEASE_SECONDS: Final = 60
# What SQS takes in one call.
_BATCH_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Relayed:
    """How many messages were sent, how many were not, and how many were due when time was over."""

    sent: int
    failed: int
    left: int


def relay(has_time: Callable[[], bool]) -> Relayed:
    """Send until nothing is due or ``has_time`` says no. What fails is due again after its
    lease."""
    sent = failed = 0
    while has_time():
        claimed = in_transaction(_claim)
        if not claimed:
            break
        delivered = _send(claimed)
        if delivered:
            in_transaction(partial(_mark, message_ids=delivered))
        sent += len(delivered)
        failed += len(claimed) - len(delivered)
    if failed:
        count("RelayFailed")
    return Relayed(sent, failed, read(store.count_due))


def _claim(tx: Tx) -> list[Staged]:
    due = store.lock_due(tx, CLAIM_MAX)
    if due:
        store.lease(tx, [message.id for message in due], LEASE_SECONDS)
    return due


def _send(claimed: Iterable[Staged]) -> list[str]:
    """The ids of the messages that SQS took."""
    delivered: list[str] = []
    by_queue = sorted(claimed, key=lambda message: (message.queue, message.id))
    for queue, messages in groupby(by_queue, key=lambda message: message.queue):
        broken_groups: set[str] = set()
        for batch in batched(messages, _BATCH_MAX, strict=False):
            entries = [m for m in batch if m.group_key not in broken_groups]
            taken = send_batch(queue, entries)
            delivered += taken
            broken_groups |= _groups_not_in(taken, entries)
    return delivered


def _groups_not_in(taken: Sequence[str], entries: Iterable[Staged]) -> set[str]:
    """Groups of which an entry failed: their later messages must not overtake it."""
    return {message.group_key for message in entries if message.message_id not in taken}


def _mark(tx: Tx, message_ids: Iterable[str]) -> None:
    for message_id in message_ids:
        store.mark_sent(tx, message_id)
