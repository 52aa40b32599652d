"""A ReserveStock is a doorbell: whoever hears it decides all that waits at that turn."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from lockstep.db.transaction import read
from lockstep.inventory.model import Refused
from lockstep.messaging.consumer import Answer, DeliverSoon
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import count_fault, logger
from lockstep.orders import turn_store
from lockstep.orders.hold import Left, hold, hold_all
from lockstep.orders.turn import TurnTaken
from lockstep.orders.turn_store import Place
from lockstep.payments import reinstate_store
from lockstep.payments.reinstate import reinstate


def answer(commands: Sequence[ReserveStock], has_time: Callable[[], bool]) -> list[Answer]:
    """Decide the orders that ``commands`` name, and all others at their turns: late money first,
    which came for older orders, then those that wait for their first hold.

    An order that was decided before is acknowledged, one that still waits comes again soon: another
    worker has its turn, or time was short.
    """
    order_ids = {command.order_id for command in commands}
    left: Left = {}
    waiting = [place for place in _places(order_ids) if place.waits]
    for sku_id in sorted({place.sku_id for place in waiting if place.sku_id is not None}):
        left |= _serve(sku_id, has_time)
    for place in waiting:
        if place.sku_id is None:
            left |= _serve_alone(place.order_id)
    still = {place.order_id for place in _places(order_ids) if place.waits} if waiting else set()
    return [_answer(command.order_id, left, still) for command in commands]


def _places(order_ids: Iterable[int]) -> list[Place]:
    return read(partial(turn_store.read_places, order_ids=order_ids))


def _serve(sku_id: int, has_time: Callable[[], bool]) -> Left:
    left: Left = {}
    try:
        for order_id in read(partial(reinstate_store.read_late_orders, sku_id=sku_id)):
            if has_time():
                left |= _revive(order_id)
        return left | hold_all(sku_id, has_time)
    except TurnTaken:
        return left


def _serve_alone(order_id: int) -> Left:
    """An order that was placed when none of its SKUs was hot."""
    outcome = hold(order_id)
    if isinstance(outcome, Refused):
        return {order_id: outcome}
    return _revive(order_id)


def _revive(order_id: int) -> Left:
    try:
        reinstate(order_id)
    except TurnTaken:
        raise
    except Exception as fault:
        count_fault("ReinstateFailed", fault)
        logger.warning("late money still waits", order_id=order_id, fault=type(fault).__name__)
        return {order_id: fault}
    return {}


def _answer(order_id: int, left: Left, still: set[int]) -> Answer:
    match left.get(order_id):
        case Refused(code):
            return code
        case Exception() as fault:
            return fault
    return DeliverSoon(f"order {order_id} still waits for its turn") if order_id in still else None
