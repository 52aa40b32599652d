"""Ask the channel what became of an attempt, and let that have its consequences.

    claim (a transaction: CLOSING where it is to end, and a lease)
      -> converse (no transaction, no lock)
      -> conclude (a transaction: the payment, or the end of the attempt and of its order)

One way for three wishes: a member cancels, an order's time is over, or nobody told us. Whoever dies
in between leaves the lease; when it is over, the sweep asks again.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never

from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.observability import count, logger
from lockstep.orders import store as orders
from lockstep.orders import unpaid_store
from lockstep.orders.close import end
from lockstep.orders.model import OPEN_STATUSES, LockedOrder, OrderStatus
from lockstep.payments import attempt_store
from lockstep.payments.attempt_store import AskedAttempt
from lockstep.payments.conversation import (
    Answer,
    ClosedByChannel,
    ClosedByUs,
    NeverBegun,
    NotKnown,
    Paid,
    Question,
    Unpaid,
)
from lockstep.payments.decide import hear
from lockstep.payments.model import AttemptState

# Somebody who holds the order for longer is left to it.
PATIENCE_SECONDS: Final = 1
_LIVE: Final = frozenset({AttemptState.OPEN, AttemptState.CLOSING})
_PAUSE_SECONDS_MIN: Final = 60
_PAUSE_SECONDS_MAX: Final = 900


@dataclass(frozen=True, slots=True)
class Concluded:
    """The order's status, and whether this call closed it."""

    status: OrderStatus
    has_closed: bool


def claim(attempt_id: int, order_id: int, actor: str) -> Question | Concluded:
    """What is to be asked about an attempt whose turn has come, or what there was to do instead.

    Guard: its next_ask_at has passed. Effect: a lease; CLOSING, where the attempt's time is over,
    a cancel was asked for, or its order takes no money any more. One that is CLOSED is asked about
    a last time, after its order was ended if the channel's own word closed the attempt. Lock order:
    order, attempt. Repeat: nothing to ask, until the lease is over.
    """
    return in_transaction(
        partial(_claim, attempt_id=attempt_id, order_id=order_id, actor=actor),
        within_seconds=PATIENCE_SECONDS,
    )


def _claim(tx: Tx, attempt_id: int, order_id: int, actor: str) -> Question | Concluded:
    order = _lock(tx, order_id)
    due = attempt_store.read_attempt(tx, attempt_id)
    if due is None:
        raise InvariantBroken(f"attempt {attempt_id} is gone")
    if due.attempt.state not in _LIVE:
        ended = _end(tx, order, actor)
        if ended.has_closed:
            return ended
    begins = _should_end(order, due) and attempt_store.begin_closing(tx, attempt_id)
    if not attempt_store.lease_attempt(tx, attempt_id):
        return Concluded(order.status, has_closed=False)
    return Question(
        attempt_id,
        order_id,
        due.attempt.out_trade_no,
        asks=0 if begins else due.asks,
        is_closing=begins or due.attempt.state is not AttemptState.OPEN,
        may_still_appear=_is_waited_for(order, due),
    )


def _should_end(order: LockedOrder, due: AskedAttempt) -> bool:
    return due.is_over or order.status not in OPEN_STATUSES or _is_given_up(order)


def _is_waited_for(order: LockedOrder, due: AskedAttempt) -> bool:
    """Whether money by it, should its trade appear yet, would come before the attempt is closed."""
    is_live = due.attempt.state in _LIVE
    return is_live and not due.is_over and not _is_given_up(order)


def _is_given_up(order: LockedOrder) -> bool:
    """By its member: it closes as soon as nothing is paid, and money that comes later goes back."""
    return order.status in OPEN_STATUSES and order.cancel_requested_at is not None


def claim_to_cancel(tx: Tx, order_id: int) -> list[Question]:
    """The same for every live attempt of an order that the caller has locked and its member gave
    up; also for what somebody asks about right now, since a second answer does no harm."""
    live = [each for each in attempt_store.read_attempts(tx, order_id) if each.state in _LIVE]
    for attempt in live:
        attempt_store.begin_closing(tx, attempt.id)
        attempt_store.ask_now(tx, attempt.id)
        attempt_store.lease_attempt(tx, attempt.id)
    return [
        Question(
            attempt.id,
            order_id,
            attempt.out_trade_no,
            asks=0,
            is_closing=True,
            may_still_appear=False,
        )
        for attempt in live
    ]


def conclude(
    question: Question, answer: Answer, actor: str, *, within_seconds: int = PATIENCE_SECONDS
) -> Concluded:
    """Do what follows from the answer.

    Effect: the payment is settled as if a notice had told it; or the attempt is closed, and with
    the last one its order, if a cancel was asked for or its time is over; or it is asked again
    later, and an order that should have been closed is PAYMENT_PROCESSING until then. Lock order:
    order, attempt, payment. Repeat, or somebody else was first: no change.
    """
    count("Asked", type(answer).__name__)
    if isinstance(answer, NotKnown):
        logger.warning("the channel gave no answer", why=answer.why, trade=question.out_trade_no)
    return in_transaction(
        partial(_conclude, question=question, answer=answer, actor=actor),
        within_seconds=within_seconds,
    )


def _conclude(tx: Tx, question: Question, answer: Answer, actor: str) -> Concluded:
    order = _lock(tx, question.order_id)
    was_open = order.status in OPEN_STATUSES
    match answer:
        case Paid(trade):
            hear(tx, trade)
            # Its trade may have been known before it: then that told it nothing.
            attempt_store.mark_attempt_paid(tx, question.out_trade_no)
            attempt_store.forget_attempt(tx, question.attempt_id)
            order = _lock(tx, question.order_id)
        case ClosedByChannel(trade):
            hear(tx, trade)
            _close(tx, question)
            order = _lock(tx, question.order_id)
        case ClosedByUs():
            _close(tx, question)
        case NeverBegun():
            attempt_store.close_attempt(tx, question.attempt_id)
            attempt_store.ask_at_the_end(tx, question.attempt_id)
        case Unpaid():
            _ask_later(tx, question)
        case NotKnown():
            if _ask_later(tx, question) and question.is_closing:
                return _wait_for_the_channel(tx, order, actor)
        case _:
            assert_never(answer)
    ended = _end(tx, order, actor)
    return Concluded(ended.status, was_open and ended.status is OrderStatus.CLOSED)


def _close(tx: Tx, question: Question) -> None:
    """For good: nobody can pay it any more."""
    if not attempt_store.close_attempt(tx, question.attempt_id):
        attempt_store.forget_attempt(tx, question.attempt_id)


def _ask_later(tx: Tx, question: Question) -> bool:
    """After 1, 2, 4, 8, then 15 minutes. False: somebody else concludes it, or did."""
    pause = min(_PAUSE_SECONDS_MIN * 2 ** min(question.asks, 4), _PAUSE_SECONDS_MAX)
    if question.is_closing:
        return attempt_store.postpone_close(tx, question.attempt_id, pause)
    return attempt_store.postpone_poll(tx, question.attempt_id, pause)


def _wait_for_the_channel(tx: Tx, order: LockedOrder, actor: str) -> Concluded:
    waits = OrderStatus.PAYMENT_PROCESSING
    if not unpaid_store.mark_processing(tx, order.id):
        return Concluded(order.status, has_closed=False)
    orders.append_event(tx, order.id, order.status, waits, actor, "ANSWER_UNKNOWN")
    return Concluded(waits, has_closed=False)


def _end(tx: Tx, order: LockedOrder, actor: str) -> Concluded:
    if order.status in OPEN_STATUSES and end(tx, order, actor):
        return Concluded(OrderStatus.CLOSED, has_closed=True)
    return Concluded(order.status, has_closed=False)


def _lock(tx: Tx, order_id: int) -> LockedOrder:
    order = orders.lock_order(tx, order_id)
    if order is None:
        raise InvariantBroken(f"order {order_id}, which has an attempt, does not exist")
    return order
