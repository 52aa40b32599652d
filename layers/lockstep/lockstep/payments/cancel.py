"""Cancel an unpaid order at its member's wish, once the channel says that nothing was paid."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import close
from lockstep.orders.model import (
    OPEN_STATUSES,
    CancelOutcome,
    CancelRequested,
    Closed,
    NotCancellable,
    OrderStatus,
)
from lockstep.payments.ask import claim_to_cancel, conclude
from lockstep.payments.conversation import Question, converse

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# The member waits, and the shortest time-out of the function is 10 s. What is not decided by then
# is left to the sweep.
WITHIN_SECONDS: Final = 8
# Of these, for the transaction that begins, and for the one that follows an answer.
_BEGIN_SECONDS: Final = 5
_CONCLUDE_SECONDS: Final = 1
# A member has one page open, or two; whoever opens many waits for the sweep.
_ASKS_MAX: Final = 3


def cancel(member_id: int, order_no: str, connect: Callable[[], "Gateway"]) -> CancelOutcome:
    """Close the member's own order at the member's wish.

    Guard: not paid, and the channel says so of every payment page that may be open. Effect:
    CLOSED/CANCELLED, event, ReleaseStock; without a page at once, otherwise the wish and CLOSING
    are committed before the channel is asked. NotCancellable if it says that the order was paid,
    CancelRequested while it says nothing: the sweep goes on. Lock order: order, attempt, payment.
    Repeat: Closed(repeated=True), or the channel is asked again. Raises TryAgain.
    """
    deadline = time.monotonic() + WITHIN_SECONDS
    outcome, questions = in_transaction(
        partial(_begin, member_id=member_id, order_no=order_no), within_seconds=_BEGIN_SECONDS
    )
    for question in questions[:_ASKS_MAX]:
        left = int(deadline - time.monotonic()) - _CONCLUDE_SECONDS
        if left < 1:
            break
        answer = converse(connect(), question, within_seconds=left)
        concluded = conclude(question, answer, actor=f"member:{member_id}")
        if concluded.status is OrderStatus.CLOSED:
            return Closed(question.order_id, repeated=not concluded.has_closed)
        if concluded.status not in OPEN_STATUSES:
            return NotCancellable(concluded.status)
    return outcome


def _begin(tx: Tx, member_id: int, order_no: str) -> tuple[CancelOutcome, list[Question]]:
    outcome = close.cancel(tx, member_id, order_no)
    if isinstance(outcome, CancelRequested):
        return outcome, claim_to_cancel(tx, outcome.order_id)
    return outcome, []
