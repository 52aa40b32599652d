"""Take the holds that queued orders wait for: all that wait for a hot SKU, in turns."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from lockstep.db.errors import ConnectionLost
from lockstep.db.transaction import Reader, Tx, in_transaction, read
from lockstep.inventory.model import Refused
from lockstep.messaging import outbox
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import correlation_id, count, count_fault, logger
from lockstep.orders import turn_store
from lockstep.orders.decide import Decided, decide
from lockstep.orders.model import Held, HoldOutcome, NotWaiting, SoldOut
from lockstep.orders.turn import TurnTaken, take_turn, take_turn_of

# Each statement about this many orders stays below 16 KB, past which a proxy pins its connection;
# larger batches bring little more (infra/decisions/0030).
BATCH_MAX: Final = 1000


type Left = dict[int, Refused | Exception]


def line_up(tx: Tx, order_id: int, reservation_id: str) -> None:
    """Stage the command that takes the order's hold when its turn comes."""
    outbox.stage(
        tx,
        ReserveStock(
            reservation_id=reservation_id, order_id=order_id, correlation_id=correlation_id()
        ),
    )


def hold(order_id: int) -> HoldOutcome:
    """Decide one waiting order alone, as ``decide`` says, at its turn if it stands at one.

    Repeat, or an order that closed meanwhile: NotWaiting. Raises TurnTaken.
    """
    decided = in_transaction(partial(_hold_alone, order_id=order_id))
    if order_id in decided.held:
        return Held()
    if order_id in decided.sold_out:
        return SoldOut()
    refusal = decided.refused.get(order_id)
    return NotWaiting() if refusal is None else Refused(refusal)


def hold_all(sku_id: int, has_time: Callable[[], bool]) -> Left:
    """Decide every order that waits at the turn of ``sku_id``, in order of arrival, until none
    does or ``has_time`` says no. Returns why those that were looked at still wait.

    The turn is held for one transaction of at most BATCH_MAX orders, then asked for again. After an
    unexpected fault the orders of a batch are decided one by one, so that none spoils another.
    Raises TurnTaken, and TryAgain where there is no database.
    """
    left: Left = {}
    after = 0
    while has_time():
        try:
            order_ids, still = in_transaction(partial(_hold_next, sku_id=sku_id, after=after))
        except TurnTaken:
            raise
        except Exception as fault:
            if isinstance(fault.__cause__, ConnectionLost):
                raise  # nobody is deciding anything
            count_fault("BatchRedone", fault)
            logger.warning("decided one by one", sku_id=sku_id, fault=type(fault).__name__)
            order_ids = read(partial(_next_ids, sku_id=sku_id, after=after))
            still = _one_by_one(order_ids, has_time)
        if not order_ids:
            break
        if still:  # they would be the first again
            after = order_ids[-1]
            left |= still
    return left


def _hold_alone(tx: Tx, order_id: int) -> Decided:
    take_turn_of(tx, order_id)
    return decide(tx, [order_id])


def _hold_next(tx: Tx, sku_id: int, after: int) -> tuple[list[int], Left]:
    """Who was looked at, and who of them still waits."""
    take_turn(tx, sku_id)
    order_ids = _next_ids(tx, sku_id, after)
    if not order_ids:
        return [], {}
    decided = decide(tx, order_ids)
    tx.after_commit(partial(_count, decided))
    return order_ids, {order_id: Refused(why) for order_id, why in decided.refused.items()}


def _next_ids(reader: Reader, sku_id: int, after: int) -> list[int]:
    return turn_store.read_waiting_ids(reader, sku_id, after, BATCH_MAX)


def _count(decided: Decided) -> None:
    for outcome, orders in (("Held", decided.held), ("SoldOut", decided.sold_out)):
        if orders:
            count("Hold", outcome, times=len(orders))


def _one_by_one(order_ids: Sequence[int], has_time: Callable[[], bool]) -> Left:
    still: Left = {}
    for order_id in order_ids:
        if not has_time():
            break
        try:
            outcome = hold(order_id)
        except TurnTaken:
            raise
        except Exception as fault:
            still[order_id] = fault
        else:
            count("Hold", type(outcome).__name__)
            if isinstance(outcome, Refused):
                still[order_id] = outcome
    return still
