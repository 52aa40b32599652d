"""Each minute: close what expired, settle what was forgotten, say again what was lost, and ask the
channel what nobody told.

Through the operations that people and queues use, one short transaction each. One bad row is
reported and never stops the rest. Two sweeps may run at once: every act is decided under the
order's lock, or by the hold's own guard.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from lockstep import settings
from lockstep.db.transaction import Reader, read
from lockstep.errors import InvariantBroken
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Refused, Released
from lockstep.inventory.release import release
from lockstep.messaging.contracts import ConfirmStock
from lockstep.observability import count_fault, logger
from lockstep.orders.close import expire
from lockstep.orders.model import OrderStatus
from lockstep.payments.owe_refund import owe_forgotten
from lockstep.payments.refund_model import RefundState
from lockstep.upkeep import refund_sweep_store as refunds
from lockstep.upkeep import store
from lockstep.upkeep.ask_due import ask_due
from lockstep.upkeep.pages import Due, each_due
from lockstep.upkeep.refund_sweep_store import UnaskedRefund
from lockstep.upkeep.restage import (
    PATIENCE_SECONDS,
    restage_hold,
    restage_reinstatement,
    restage_reserve,
    what_becomes_of,
)
from lockstep.upkeep.restage_refund import restage_refund
from lockstep.upkeep.store import Mark, OpenHold

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Both wait for their payment, and for the end of their time.
_UNPAID: Final = (OrderStatus.PENDING_PAYMENT, OrderStatus.PAYMENT_PROCESSING)
# A queued order's command may be lost; its turn may also just not have come.
_WAITED_SECONDS: Final = 60
# What a report can carry; the count of failures is a metric.
_FAILED_MAX: Final = 100


@dataclass
class Swept:
    """What a sweep did; ``failed`` names the rows that it could not settle, each with why."""

    orders_closed: int = 0
    holds_settled: int = 0
    restaged: int = 0
    asked: int = 0
    notices_decided: int = 0
    failed: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


def sweep(has_time: Callable[[], bool], connect: Callable[[], "Gateway"]) -> Swept:
    """Go through everything that is overdue until nothing is, or ``has_time`` says no.

    A paid order's hold is never released, and an order with a payment page that may be open is not
    closed before the channel says that nothing was paid. The channel comes last: it takes longest.
    """
    swept = Swept()

    def each[R: Due](page: Callable[[Reader, Mark], list[R]], act: Callable[[R], bool]) -> int:
        return sum(_try(act, row, swept.failed) for row in each_due(page, has_time))

    given_up = partial(store.read_waiting_orders, seconds=settings.reserving_limit_seconds())
    waiting = partial(store.read_waiting_turns, seconds=_WAITED_SECONDS)
    late = partial(store.read_late_payments, seconds=_WAITED_SECONDS)
    for status in _UNPAID:
        expired = partial(store.read_expired_orders, status=status)
        swept.orders_closed += each(expired, lambda order: expire(order.order_id))
    swept.orders_closed += each(given_up, lambda order: expire(order.order_id))
    swept.holds_settled = each(store.read_overdue_holds, _settle)
    swept.restaged += each(store.read_unsettled_holds, restage_hold)
    swept.restaged += each(waiting, restage_reserve)
    swept.restaged += each(late, restage_reinstatement)
    swept.restaged += each(refunds.read_unasked_refunds, _owe)
    for state in (RefundState.CALLING, RefundState.UNKNOWN, RefundState.DUE):
        due = partial(refunds.read_due_refunds, state=state)
        swept.restaged += each(due, restage_refund)
    asked = ask_due(connect, has_time, partial(_fail, swept.failed))
    swept.asked = asked.asked
    swept.orders_closed += asked.orders_closed
    swept.notices_decided = asked.notices_decided
    swept.left = read(store.count_overdue)
    return swept


def _try[R: Due](act: Callable[[R], bool], row: R, failed: list[str]) -> bool:
    try:
        return act(row)
    except Exception as fault:
        _fail(failed, row.name, fault)
        return False


def _fail(failed: list[str], name: str, fault: Exception) -> None:
    count_fault("SweepFailed", fault)
    logger.error("not settled", row=name, exc_info=fault)
    if len(failed) < _FAILED_MAX:
        failed.append(f"{name}: {type(fault).__name__}")


def _owe(unasked: UnaskedRefund) -> bool:
    return owe_forgotten(unasked.payment_id, PATIENCE_SECONDS)


def _settle(hold: OpenHold) -> bool:
    """Settle an overdue hold as its order says; False where the order is open, or it was
    settled."""
    if hold.status is None:
        raise InvariantBroken(f"{hold.reservation_id} is held for no order")
    says = what_becomes_of(hold.status, is_named=hold.is_named)
    if says is None:
        return False  # unpaid: the order's own expiry decides, and the gateway before it
    settle: Callable[[str, int], Confirmed | Released | Refused]
    settle = confirm if says is ConfirmStock else release
    outcome = settle(hold.reservation_id, hold.order_id)
    return not isinstance(outcome, Refused) and not outcome.repeated
