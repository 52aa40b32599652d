"""Place an order, once per idempotency key."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from lockstep import fingerprint, settings
from lockstep.db.errors import ConnectionLost, LockNotAvailable
from lockstep.db.transaction import WITHIN_SECONDS, Reader, RollBack, Tx, in_transaction, read
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory import store as stock
from lockstep.inventory.model import ReservationState, Sku
from lockstep.money import PAYABLE_MAX
from lockstep.orders import gate, request_store
from lockstep.orders.begin import KeyTaken, StockShort, claim_and_insert, write_rest
from lockstep.orders.model import (
    AmountRefused,
    InFlight,
    KeyReused,
    Order,
    OrderLine,
    OrderStatus,
    OutOfStock,
    Placed,
    PlaceOrder,
    PlaceOutcome,
    Replayed,
    SkuUnknown,
)
from lockstep.orders.query import reload

# Stock that comes and goes under our eyes; after that the client may ask again.
_SHORTAGE_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class _Existing:
    """The key's order, made by another call."""

    order_id: int


type _Known = _Existing | InFlight | KeyReused
type _Decision = Placed | _Known | SkuUnknown | AmountRefused | OutOfStock | StockShort


def place(command: PlaceOrder) -> PlaceOutcome:
    """Create the order of ``command`` with its stock held, or say by name why not.

    Guard: the key is new; every SKU is on sale; the sum is what the member expects; stock is
    available. Effect: request, order, lines, event and hold in one transaction; a refusal leaves
    no row. Lock order: request key, order, reservation, SKUs ascending. Repeat: Replayed.
    A row that stays locked too long is InFlight: the same key may be sent again. For a hot SKU
    nobody waits for a key, and the gate refuses before anything is written. Raises TryAgain where
    there is no database to decide it.
    """
    deadline = time.monotonic() + WITHIN_SECONDS
    for _ in range(_SHORTAGE_TRIES):
        left = deadline - time.monotonic()
        try:
            decision = in_transaction(partial(_decide, command=command), within_seconds=left)
        except TryAgain as fault:
            if isinstance(fault.__cause__, ConnectionLost):
                raise  # nobody is deciding anything
            break
        if not isinstance(decision, StockShort):
            return _answer(decision)
        shortage = read(partial(_shortage, command=command))
        if shortage is not None:
            return shortage
        # What was missing came back between the refusal and our look: another try is fair.
    return InFlight()


def _answer(decision: Placed | _Known | SkuUnknown | AmountRefused | OutOfStock) -> PlaceOutcome:
    return Replayed(reload(decision.order_id)) if isinstance(decision, _Existing) else decision


def _decide(tx: Tx, command: PlaceOrder) -> _Decision:
    request_hash = fingerprint.of_order_request(
        command.lines, command.note, command.expected_amount
    )
    skus = stock.read_skus(tx, command.lines)
    # A known key goes before every refusal, but only who would be refused has to look for it.
    refusal = _refusal(tx, command, skus)
    if refusal is not None:
        raise RollBack(_answer_known_key(tx, command, request_hash) or refusal)
    turn_sku_id = min((sku.sku_id for sku in skus.values() if sku.hot), default=None)
    try:
        order = claim_and_insert(
            tx, command, request_hash, _draft(command, skus, turn_sku_id is not None), turn_sku_id
        )
    except LockNotAvailable:
        return InFlight()
    except KeyTaken:
        known = _answer_known_key(tx, command, request_hash)
        if known is None:  # our failed INSERT keeps it from going
            raise InvariantBroken("a key is taken by no request") from None
        return known
    write_rest(tx, command, order)
    return Placed(order)


def _answer_known_key(tx: Tx, command: PlaceOrder, request_hash: str) -> _Known | None:
    """What the key's request comes to; None if there is none. Waits for nobody."""
    try:
        request = request_store.read_request(tx, command.member_id, command.idempotency_key)
    except LockNotAvailable:
        return InFlight()
    if request is None:
        return None
    if request.request_hash != request_hash:
        return KeyReused()
    if request.order_id is None:
        raise InvariantBroken("a request was committed without its order")
    return _Existing(request.order_id)


def _refusal(
    reader: Reader, command: PlaceOrder, skus: Mapping[int, Sku]
) -> SkuUnknown | AmountRefused | OutOfStock | None:
    missing = tuple(i for i in command.lines if i not in skus or not skus[i].on_sale)
    if missing:
        return SkuUnknown(missing)
    pay_amount = sum((skus[i].price * n for i, n in command.lines.items()), Decimal(0))
    amount_refused = _refuse_amount(pay_amount, command.expected_amount)
    if amount_refused is not None:
        return amount_refused
    return gate.shortage(reader, command, skus) if gate.is_shut(skus) else None


def _refuse_amount(pay_amount: Decimal, expected: Decimal | None) -> AmountRefused | None:
    if expected is not None and expected != pay_amount:
        return AmountRefused("AMOUNT_CHANGED", pay_amount)
    if pay_amount == 0:
        return AmountRefused("AMOUNT_ZERO", pay_amount)
    if pay_amount > PAYABLE_MAX:
        return AmountRefused("AMOUNT_TOO_LARGE", pay_amount)
    return None


def _draft(command: PlaceOrder, skus: Mapping[int, Sku], is_queued: bool) -> Order:
    """The order as it will be, without its id and numbers."""
    now = next(iter(skus.values())).now
    lines = tuple(
        OrderLine(i, skus[i].title, n, skus[i].price, skus[i].price * n)
        for i, n in sorted(command.lines.items())
    )
    pay_amount = sum((line.amount for line in lines), Decimal(0))
    return Order(
        id=0,
        order_no="",
        member_id=command.member_id,
        status=OrderStatus.RESERVING if is_queued else OrderStatus.PENDING_PAYMENT,
        close_reason=None,
        cancel_requested_at=None,
        total_amount=pay_amount,
        pay_amount=pay_amount,
        paid_amount=Decimal("0.00"),
        refunded_amount=Decimal("0.00"),
        note=command.note,
        reservation_id=None,
        reservation_state=None if is_queued else ReservationState.RESERVED,
        created_at=now,
        # A queued order's time starts when its hold is taken.
        expires_at=None if is_queued else now + timedelta(seconds=settings.order_ttl_seconds()),
        paid_at=None,
        lines=lines,
    )


def _shortage(reader: Reader, command: PlaceOrder) -> OutOfStock | None:
    """Every line that is short right now, or None if none is any more."""
    return gate.shortage(reader, command, stock.read_skus(reader, command.lines))
