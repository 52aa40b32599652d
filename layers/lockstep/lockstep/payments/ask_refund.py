"""Refund an order, in whole or in part, because an operator says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from lockstep import fingerprint
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import Unreturnable
from lockstep.inventory.take_back import take_back
from lockstep.orders import store as orders
from lockstep.orders.model import LockedOrder, OrderNotFound, OrderStatus
from lockstep.orders.refund import begin_refund
from lockstep.payments import refund_store, refundable_store
from lockstep.payments.end_refund import refundable
from lockstep.payments.owe_refund import owe
from lockstep.payments.refund_model import Refund, RefundablePayment, of_number

_REFUNDABLE = frozenset({OrderStatus.PAID, OrderStatus.SHIPPED, OrderStatus.FINISHED})


@dataclass(frozen=True, slots=True)
class AskRefund:
    """POST /ops/orders/{order_no}/refunds after its body was checked. ``amount`` None: all that is
    left. ``restock`` maps sku_id to quantity."""

    order_no: str
    idempotency_key: str
    operator: str
    reason: str
    amount: Decimal | None = None
    restock: Mapping[int, int] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return fingerprint.of_refund_request(self.amount, self.reason, self.restock)

    @property
    def out_request_no(self) -> str:
        return fingerprint.of_asked_refund(self.order_no, self.idempotency_key)


# What ask_refund() comes to.


@dataclass(frozen=True, slots=True)
class Asked:
    """The refund of this key, as it is now."""

    order_id: int
    trade_no: str
    refund: Refund
    repeated: bool


@dataclass(frozen=True, slots=True)
class RefundKeyReused:
    """The key belongs to a request with other content."""


@dataclass(frozen=True, slots=True)
class RefundTooLarge:
    refundable: Decimal


@dataclass(frozen=True, slots=True)
class NotRefundable:
    status: OrderStatus


@dataclass(frozen=True, slots=True)
class RestockRefused:
    lines: tuple[Unreturnable, ...]


type AskOutcome = (
    Asked | RefundKeyReused | RefundTooLarge | NotRefundable | RestockRefused | OrderNotFound
)


def ask_refund(asked: AskRefund) -> AskOutcome:
    """Owe the buyer ``asked.amount``, once for each key, and take goods back if it says so.

    Guard: PAID, SHIPPED or FINISHED, and no more than is neither back nor asked for. Effect: a
    refund, DUE; all that is left makes the order REFUNDING, so that nobody ships it; a part leaves
    its status; RETURN entries and stock as `take_back` does. Lock order: order,
    reservation, SKUs. Repeat: the same refund, as it is now. Raises TryAgain.
    """
    return in_transaction(partial(_ask, asked=asked))


def _ask(tx: Tx, asked: AskRefund) -> AskOutcome:
    order = orders.lock_order_by_no(tx, asked.order_no)
    if order is None:
        return OrderNotFound()
    payment = refundable_store.read_applied(tx, order.id)
    if payment is None:
        return NotRefundable(order.status)
    refunds = refund_store.read_refunds(tx, payment.id)
    known = of_number(refunds, asked.out_request_no)
    if known is not None:
        if known.request_hash != asked.fingerprint:
            return RefundKeyReused()
        return Asked(order.id, payment.trade_no, known, repeated=True)
    if order.status not in _REFUNDABLE:
        return NotRefundable(order.status)
    left = refundable(payment, refunds)
    amount = left if asked.amount is None else asked.amount
    if amount > left or not amount:
        return RefundTooLarge(left)
    return _owe(tx, asked, order, payment, refunds, amount, is_all=amount == left)


def _owe(
    tx: Tx,
    asked: AskRefund,
    order: LockedOrder,
    payment: RefundablePayment,
    refunds: list[Refund],
    amount: Decimal,
    *,
    is_all: bool,
) -> AskOutcome:
    number, actor = asked.out_request_no, f"operator:{asked.operator}"
    if is_all:
        evidence = {"out_request_no": number, "reason": asked.reason}
        if not begin_refund(tx, order, actor, "REFUND_ASKED", evidence):
            raise InvariantBroken(f"order {order.id} changed though it is locked")
    owe(
        tx,
        payment.id,
        number,
        amount,
        requested_by=actor,
        reason=asked.reason,
        request_hash=asked.fingerprint,
    )
    [new] = (r for r in refund_store.read_refunds(tx, payment.id) if r.out_request_no == number)
    if asked.restock:
        refused = take_back(
            tx,
            order.reservation_id or "",
            asked.restock,
            number=number,
            earlier=[refund.out_request_no for refund in refunds],
            actor=actor,
            reason=asked.reason,
        )
        if refused:
            raise RollBack(RestockRefused(refused))
    return Asked(order.id, payment.trade_no, new, repeated=False)
