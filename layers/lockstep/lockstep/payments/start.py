"""Let a member pay: an attempt of its own, then the link to it.

The attempt is committed before the link is made, so that whatever is paid by it finds its order.
The link is made outside of any transaction, since that may call the channel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from lockstep import settings
from lockstep.alipay.answers import Done, NotExecuted, Refused, Unknown
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory.model import ReservationState
from lockstep.observability import count, logger
from lockstep.orders import store as orders
from lockstep.orders import unpaid_store
from lockstep.orders.model import LockedOrder, OrderNotFound, OrderStatus
from lockstep.payments import attempt_store
from lockstep.payments.model import (
    Attempt,
    AttemptState,
    NotPayable,
    Started,
    StartOutcome,
    StartPayment,
    StockNotHeld,
    TimeOver,
)

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

_TAKE_MONEY: Final = frozenset({OrderStatus.PENDING_PAYMENT, OrderStatus.PAYMENT_PROCESSING})
_PAID: Final = "ACQ.TRADE_HAS_SUCCESS"
_CLOSED: Final = "ACQ.TRADE_HAS_CLOSE"


@dataclass(frozen=True, slots=True)
class _Begun:
    """What there is to link to."""

    order: LockedOrder
    attempt: Attempt
    repeated: bool


def start(command: StartPayment, connect: Callable[[], "Gateway"]) -> StartOutcome:
    """A link by which the member's own order can be paid.

    Guard: PENDING_PAYMENT or PAYMENT_PROCESSING, its stock held, nobody closing it, and enough of
    its time left for a new page. Effect: an attempt with the order's amount and end, frozen. Lock
    order: order, attempt. Repeat: the live attempt of the same product, and a link to it. Raises
    TryAgain, also where the channel does not make the code to scan: the attempt stays.
    """
    begun = in_transaction(partial(_begin, command=command))
    if not isinstance(begun, _Begun):
        return begun
    attempt = begun.attempt
    if attempt.product == "qr":
        return _make_code(connect(), command, begun)
    url = connect().page_url(
        attempt.product,
        out_trade_no=attempt.out_trade_no,
        amount=attempt.amount,
        subject=_subject(command),
        expires_at=attempt.expires_at,
        notify_url=command.notify_url,
        return_url=settings.alipay_return_url(),
    )
    return Started(attempt, url, begun.repeated)


def _begin(tx: Tx, command: StartPayment) -> _Begun | StartOutcome:
    order = orders.lock_own_order(tx, command.member_id, command.order_no)
    if order is None:
        return OrderNotFound()
    if order.status is OrderStatus.RESERVING:
        return StockNotHeld()
    attempts = attempt_store.read_attempts(tx, order.id)
    is_closing = any(attempt.state is AttemptState.CLOSING for attempt in attempts)
    if order.status not in _TAKE_MONEY or order.cancel_requested_at is not None or is_closing:
        return NotPayable(order.status)
    return _live_or_new(tx, command, order, attempts)


def _live_or_new(
    tx: Tx, command: StartPayment, order: LockedOrder, attempts: list[Attempt]
) -> _Begun | StartOutcome:
    payable = unpaid_store.read_payable(tx, order.id)
    if payable.expires_at is None:
        raise InvariantBroken(f"order {order.id} waits for its payment without an end")
    if payable.hold is not ReservationState.RESERVED:
        return StockNotHeld()
    # The channel knows no fractions of a second; ours must not end later than its.
    ends_at = payable.expires_at.replace(microsecond=0)
    left = ends_at - payable.now
    if left <= timedelta(0):
        return TimeOver()
    for attempt in attempts:
        if attempt.state is AttemptState.OPEN and _is_same(attempt, command, order):
            return _Begun(order, attempt, repeated=True)
    if left < timedelta(seconds=settings.payment_margin_seconds()):
        return TimeOver()
    number = command.order_no if not attempts else f"{command.order_no}_{len(attempts) + 1}"
    new = attempt_store.insert_attempt(
        tx, order.id, number, command.product, order.pay_amount, ends_at
    )
    return _Begun(order, new, repeated=False)


def _is_same(attempt: Attempt, command: StartPayment, order: LockedOrder) -> bool:
    """Never a page with another sum than the order's: who paid by it would only get it back."""
    return attempt.product == command.product and attempt.amount == order.pay_amount


def _make_code(channel: "Gateway", command: StartPayment, begun: _Begun) -> StartOutcome:
    attempt = begun.attempt
    made = channel.precreate(
        out_trade_no=attempt.out_trade_no,
        amount=attempt.amount,
        subject=_subject(command),
        expires_at=attempt.expires_at,
        notify_url=command.notify_url,
    )
    match made:
        case Done(code):
            return Started(attempt, code, begun.repeated)
        case Refused(code) if code == _PAID:
            # Its notice is under way or lost: the next sweep asks.
            in_transaction(partial(_with_order, begun=begun, change=attempt_store.ask_now))
            return NotPayable(begun.order.status)
        case Refused(code) if code == _CLOSED:
            in_transaction(partial(_with_order, begun=begun, change=attempt_store.close_attempt))
        case Refused(code) | NotExecuted(code):
            count("PrecreateRefused")
            logger.error("no code to scan", code=code, trade=attempt.out_trade_no)
        case Unknown(why):
            logger.warning("no code to scan", why=why, trade=attempt.out_trade_no)
        case _:
            assert_never(made)
    raise TryAgain("the channel made no code to scan")


def _with_order(tx: Tx, begun: _Begun, change: Callable[[Tx, int], bool]) -> bool:
    orders.lock_order(tx, begun.order.id)
    return change(tx, begun.attempt.id)


def _subject(command: StartPayment) -> str:
    """What the member reads at the channel, which takes no `/`, `=` and `&` in it."""
    return f"Order {command.order_no}"
