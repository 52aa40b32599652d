"""Send what the handlers' own sends left behind: claim, commit, send, mark per entry.

Nothing is locked while SQS is called. A claim is a lease: a relay that dies leaves its rows due
again. Two relays may run at once; the order inside a group is kept by one of them, and the
consumers do not rely on it (infra/decisions/0007).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import batched
from typing import Final

from lockstep.db.transaction import Tx, in_transaction, read
from lockstep.messaging import store
from lockstep.messaging.outbox import mark_sent, send_batch
from lockstep.messaging.store import Staged
from lockstep.observability import count

CLAIM_MAX: Final = 100
# Longer than a claim takes to send. A message that fails again and again is tried every five
# minutes: when its queue is well again, that is how late it comes.
LEASE_SECONDS: Final = 60
LEASE_SECONDS_MAX: Final = 300
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
    lease, and no later message of its group is sent before that."""
    sent = failed = 0
    broken: set[tuple[str, str]] = set()
    while has_time():
        claimed = in_transaction(_claim)
        if not claimed:
            break
        delivered = _send(claimed, broken)
        if delivered:
            mark_sent(delivered)
        sent += len(delivered)
        failed += len(claimed) - len(delivered)
    if failed:
        count("RelayFailed")
    return Relayed(sent, failed, read(store.count_due))


def _claim(tx: Tx) -> list[Staged]:
    due = store.lock_due(tx, CLAIM_MAX)
    if due:
        store.lease(tx, [message.id for message in due], LEASE_SECONDS, LEASE_SECONDS_MAX)
    return due


def _send(claimed: Iterable[Staged], broken: set[tuple[str, str]]) -> list[str]:
    """The ids of the messages that SQS took. Groups of which one failed become ``broken``, and
    their later messages stay behind: they must not overtake it."""
    delivered: list[str] = []
    for queue, messages in _turns(claimed):
        whole = [message for message in messages if (queue, message.group_key) not in broken]
        for batch in batched(whole, _BATCH_MAX, strict=False):
            taken = send_batch(queue, batch)
            delivered += taken
            broken |= {(queue, m.group_key) for m in batch if m.message_id not in taken}
    return delivered


def _turns(claimed: Iterable[Staged]) -> list[tuple[str, list[Staged]]]:
    """By queue, the first message of each group, then the second of each, and so on: SQS may
    refuse any entry of a call, so a call must not hold two of one group."""
    turns: defaultdict[tuple[int, str], list[Staged]] = defaultdict(list)
    before: Counter[tuple[str, str]] = Counter()
    for message in sorted(claimed, key=lambda message: message.id):
        group = message.queue, message.group_key
        turns[before[group], message.queue].append(message)
        before[group] += 1
    return [(queue, turns[turn, queue]) for turn, queue in sorted(turns)]
