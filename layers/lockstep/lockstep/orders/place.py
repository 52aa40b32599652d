"""Place an order, once per idempotency key."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from lockstep import fingerprint, settings
from lockstep.db.errors import ConnectionLost, DuplicateKey, LockNotAvailable
from lockstep.db.transaction import WITHIN_SECONDS, Reader, RollBack, Tx, in_transaction, read
from lockstep.errors import InvariantBroken, TryAgain
from lockstep.inventory import store as stock
from lockstep.inventory.model import Refused, Short, ShortLine, Sku, reservation_id_of
from lockstep.inventory.reserve import reserve
from lockstep.money import PAYABLE_MAX
from lockstep.order_no import new_order_no
from lockstep.orders import read_store, request_store, store
from lockstep.orders.hold import line_up
from lockstep.orders.model import (
    AmountRefused,
    InFlight,
    KeyReused,
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

# Four random digits: two orders of one shard in one millisecond meet once in ten thousand.
_ORDER_NO_TRIES: Final = 3
# Stock that comes and goes under our eyes; after that the client may ask again.
_SHORTAGE_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class _Existing:
    """The key's order; ``created`` if this very call made it."""

    order_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class _StockShort:
    """Some line could not be held, and nothing was kept."""


type _Decision = _Existing | InFlight | KeyReused | SkuUnknown | AmountRefused | _StockShort


def place(command: PlaceOrder) -> PlaceOutcome:
    """Create the order of ``command`` with its stock held, or say by name why not.

    Guard: the key is new; every SKU is on sale; the sum is what the member expects; stock is
    available. Effect: request, order, lines, event and hold in one transaction; a refusal leaves
    no row. Lock order: request key, order, reservation, SKUs ascending. Repeat: Replayed.
    A row that stays locked too long is InFlight: the same key may be sent again. Raises
    TryAgain where there is no database to decide it.
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
        if not isinstance(decision, _StockShort):
            return _answer(decision)
        shortage = read(partial(_shortage, command=command))
        if shortage is not None:
            return shortage
        # What was missing came back between the refusal and our look: another try is fair.
    return InFlight()


def _answer(
    decision: _Existing | InFlight | KeyReused | SkuUnknown | AmountRefused,
) -> PlaceOutcome:
    if not isinstance(decision, _Existing):
        return decision
    order = reload(decision.order_id)
    return Placed(order) if decision.created else Replayed(order)


def _decide(tx: Tx, command: PlaceOrder) -> _Decision:
    request_hash = fingerprint.of_order_request(
        command.lines, command.note, command.expected_amount
    )
    if not request_store.claim_request(
        tx, command.member_id, command.idempotency_key, request_hash
    ):
        return _answer_known_key(tx, command, request_hash)
    skus = stock.read_skus(tx, command.lines)
    lines = _price(skus, command)
    pay_amount = sum((line.amount for line in lines), Decimal(0))
    _check_amount(pay_amount, command.expected_amount)
    now = next(iter(skus.values())).now
    turn_sku_id = min((sku.sku_id for sku in skus.values() if sku.hot), default=None)
    order_id = _write(tx, command, lines, pay_amount, now, turn_sku_id)
    return _Existing(order_id, created=True)


def _answer_known_key(
    tx: Tx, command: PlaceOrder, request_hash: str
) -> _Existing | InFlight | KeyReused:
    try:
        request = request_store.read_request(tx, command.member_id, command.idempotency_key)
    except LockNotAvailable:
        return InFlight()
    if request is None:  # our failed INSERT keeps it from going
        raise InvariantBroken("a key is taken by no request")
    if request.request_hash != request_hash:
        return KeyReused()
    if request.order_id is None:
        raise InvariantBroken("a request was committed without its order")
    return _Existing(request.order_id, created=False)


def _price(skus: dict[int, Sku], command: PlaceOrder) -> tuple[OrderLine, ...]:
    missing = tuple(i for i in command.lines if i not in skus or not skus[i].on_sale)
    if missing:
        raise RollBack(SkuUnknown(missing))
    return tuple(
        OrderLine(
            sku_id, skus[sku_id].title, quantity, skus[sku_id].price, skus[sku_id].price * quantity
        )
        for sku_id, quantity in command.lines.items()
    )


def _check_amount(pay_amount: Decimal, expected: Decimal | None) -> None:
    if expected is not None and expected != pay_amount:
        raise RollBack(AmountRefused("AMOUNT_CHANGED", pay_amount))
    if pay_amount == 0:
        raise RollBack(AmountRefused("AMOUNT_ZERO", pay_amount))
    if pay_amount > PAYABLE_MAX:
        raise RollBack(AmountRefused("AMOUNT_TOO_LARGE", pay_amount))


def _write(
    tx: Tx,
    command: PlaceOrder,
    lines: tuple[OrderLine, ...],
    pay_amount: Decimal,
    now: datetime,
    turn_sku_id: int | None,
) -> int:
    """All of it, the SKU rows last: they are what other buyers wait for."""
    queued = turn_sku_id is not None
    status = OrderStatus.RESERVING if queued else OrderStatus.PENDING_PAYMENT
    # A queued order's time starts when its hold is taken.
    expires_at = None if queued else now + timedelta(seconds=settings.order_ttl_seconds())
    reservation_id, order_id = _insert_order(
        tx, command, status, pay_amount, turn_sku_id, now, expires_at
    )
    store.insert_items(tx, order_id, lines)
    actor = f"member:{command.member_id}"
    store.append_event(tx, order_id, OrderStatus.NONE, status, actor, "PLACED")
    if not request_store.complete_request(tx, command.member_id, command.idempotency_key, order_id):
        raise InvariantBroken("the request claimed by this transaction is not there")
    if expires_at is None:
        line_up(tx, order_id, reservation_id)
    else:
        _hold(tx, reservation_id, order_id, command, expires_at)
    return order_id


def _hold(
    tx: Tx, reservation_id: str, order_id: int, command: PlaceOrder, expires_at: datetime
) -> None:
    hold_until = expires_at + timedelta(seconds=settings.hold_grace_seconds())
    match reserve(tx, reservation_id, order_id, command.lines, hold_until):
        case Short():
            raise RollBack(_StockShort())
        case Refused(code):
            raise InvariantBroken(f"a new order's hold was refused: {code}")


def _insert_order(
    tx: Tx,
    command: PlaceOrder,
    status: OrderStatus,
    pay_amount: Decimal,
    turn_sku_id: int | None,
    now: datetime,
    expires_at: datetime | None,
) -> tuple[str, int]:
    """The id of the order's first hold, and the order's id."""
    for _ in range(_ORDER_NO_TRIES):
        order_no = new_order_no(now, command.member_id)
        reservation_id = reservation_id_of(order_no, 1)
        try:
            order_id = store.insert_order(
                tx,
                order_no,
                command.member_id,
                status,
                pay_amount,
                command.note,
                reservation_id,
                turn_sku_id,
                now,
                expires_at,
            )
        except DuplicateKey as taken:
            if taken.key != "uk_order_no":
                raise
        else:
            return reservation_id, order_id
    raise InvariantBroken(f"no order number of {_ORDER_NO_TRIES} was free")


def _shortage(reader: Reader, command: PlaceOrder) -> OutOfStock | None:
    """Every line that is short right now, or None if none is any more."""
    skus = stock.read_skus(reader, command.lines)
    short = tuple(
        ShortLine(sku_id, wanted, skus[sku_id].available)
        for sku_id, wanted in command.lines.items()
        if sku_id in skus and skus[sku_id].available < wanted
    )
    if not short:
        return None
    own_orders = read_store.read_own_holds(
        reader, command.member_id, [line.sku_id for line in short]
    )
    return OutOfStock(short, own_orders)
