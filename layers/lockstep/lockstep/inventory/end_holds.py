"""End holds, sold or given back, many in one transaction: each command as if it came alone."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import batched
from typing import Final

from lockstep.db.errors import ConnectionLost
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import (
    Confirmed,
    HoldCommand,
    Refused,
    Released,
    Reservation,
    ReservationState,
)
from lockstep.observability import count, count_fault, logger

# So many, with ids as long as they may be, keep each statement below 16 KB, past which a proxy pins
# its connection. A queue hands over ten at a time.
TOGETHER_MAX: Final = 150


@dataclass(frozen=True, slots=True)
class End[O: (Confirmed, Released)]:
    """How a hold ends: what a command comes to where the hold is as it is, the state that follows,
    and the two statements that write it down."""

    judge: Callable[[Reservation | None, int], O | Refused]
    into: ReservationState
    mark: Callable[[Tx, Sequence[str]], int]
    count_off: Callable[[Tx, Mapping[int, int]], int]


def end_holds[O: (Confirmed, Released)](
    tx: Tx, end: End[O], commands: Iterable[HoldCommand], found: dict[str, Reservation]
) -> list[O | Refused]:
    """What each of ``commands`` comes to, in this order; ``found`` has the holds that they name,
    locked, and follows what becomes of them. Raises InvariantBroken if the counters hold less than
    the items."""
    outcomes: list[O | Refused] = []
    ended: list[Reservation] = []
    for command in commands:
        hold = found.get(command.reservation_id)
        outcome = end.judge(hold, command.order_id)
        outcomes.append(outcome)
        if hold is not None and not isinstance(outcome, Refused) and not outcome.repeated:
            ended.append(hold)
            found[hold.reservation_id] = replace(hold, state=end.into)
    _write(tx, end, [hold for hold in ended if hold.state is ReservationState.RESERVED])
    return outcomes


def _write[O: (Confirmed, Released)](tx: Tx, end: End[O], ended: Sequence[Reservation]) -> None:
    """The SKUs last, so that they are held briefly."""
    if not ended:
        return
    if end.mark(tx, [hold.reservation_id for hold in ended]) != len(ended):
        raise InvariantBroken("a hold changed under its lock")
    quantities: Counter[int] = Counter()
    for hold in ended:
        quantities.update(hold.items)
    if end.count_off(tx, quantities) != len(quantities):
        raise InvariantBroken(f"more is held than is locked of one of SKU {sorted(quantities)}")


def decide_together[C, O](
    decide: Callable[[Tx, Sequence[C]], Sequence[O]],
    commands: Sequence[C],
    has_time: Callable[[], bool],
) -> list[O | Exception]:
    """What each of ``commands`` came to, TOGETHER_MAX of them decided in one transaction.

    After an unexpected fault each is decided alone, so that none spoils another, as long as
    ``has_time`` says yes; those that it leaves have the fault. Raises TryAgain where there is no
    database.
    """
    outcomes: list[O | Exception] = []
    for some in batched(commands, TOGETHER_MAX, strict=False):
        outcomes += _together(decide, some, has_time)
    decided = Counter(type(it).__name__ for it in outcomes if not isinstance(it, Exception))
    for name, times in decided.items():
        count("Stock", name, times=times)
    return outcomes


def _together[C, O](
    decide: Callable[[Tx, Sequence[C]], Sequence[O]],
    commands: Sequence[C],
    has_time: Callable[[], bool],
) -> Sequence[O | Exception]:
    try:
        return in_transaction(lambda tx: decide(tx, commands))
    except Exception as fault:
        if isinstance(fault.__cause__, ConnectionLost):
            raise  # nobody is deciding anything
        if len(commands) == 1:
            return [fault]
        count_fault("BatchRedone", fault)
        logger.warning("decided one by one", fault=type(fault).__name__)
        return [_alone(decide, command) if has_time() else fault for command in commands]


def _alone[C, O](decide: Callable[[Tx, Sequence[C]], Sequence[O]], command: C) -> O | Exception:
    try:
        [outcome] = in_transaction(lambda tx: decide(tx, [command]))
    except Exception as fault:
        return fault
    return outcome
