"""What waits for a person: money that fits no order, and refunds that the channel will not do."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from lockstep.db.transaction import read
from lockstep.payments import waiting_store
from lockstep.payments.model import PaymentState
from lockstep.payments.refund_model import WaitingMoney

# APPLIED: of a paid order, when its last refund was given up.
WAITING: Final = (PaymentState.UNMATCHED, PaymentState.REFUND_FAILED, PaymentState.APPLIED)
_NEWEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """Newest first; ``next_before`` continues after the last one, None at the end."""

    payments: list[WaitingMoney]
    next_before: int | None


def waiting(states: Iterable[PaymentState], before: int | None, limit: int) -> WaitingPage:
    """At most ``limit`` payments in any of ``states`` that are older than ``before``."""
    found = [
        payment
        for state in states
        for payment in read(
            partial(
                waiting_store.list_waiting,
                state=state,
                before=before or _NEWEST,
                limit=limit + 1,
            )
        )
    ]
    found.sort(key=lambda payment: payment.id, reverse=True)
    page = found[:limit]
    return WaitingPage(page, page[-1].id if len(found) > limit else None)
