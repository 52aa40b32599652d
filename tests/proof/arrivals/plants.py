"""Faults that an order of arrivals shows: what goes wrong once messages and notices come
in another order, or twice."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import partial
from typing import Final

from functions import confirm_stock, refund_payment, release_stock
from lockstep.alipay.gateway import Gateway
from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import batch_store, release
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import (
    Confirmed,
    HoldCommand,
    Refused,
    Released,
    Reservation,
    ReservationState,
)
from lockstep.orders import read_store
from lockstep.payments import accept, decide, refund, refund_store, refundable_store
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried
from tests.proof.plants import Kind, Plant, instead, returning


def _a_release_of_what_was_ordered() -> AbstractContextManager[None]:

    def free_the_lines(tx: Tx, command: HoldCommand) -> Released | Refused:
        was_held = batch_store.lock_reservation(tx, command.reservation_id) is not None
        released = release.give_back(tx, command.reservation_id, command.order_id)
        if not was_held and isinstance(released, Released):
            lines, _ = read_store.read_wanted(tx, command.order_id)
            batch_store.free_stock(tx, lines)
        return released

    def free_all(commands: Sequence[HoldCommand], _: object) -> list[Released | Refused]:
        return [in_transaction(partial(free_the_lines, command=one)) for one in commands]

    return instead(release_stock, "release_all", lambda _: free_all)


def _a_release_that_leaves_nothing() -> AbstractContextManager[None]:

    def leave_nothing(_: Tx, commands: Sequence[HoldCommand]) -> dict[str, Reservation]:
        missing = [Reservation(*one, None, ReservationState.INIT, {}) for one in _names(commands)]
        return {hold.reservation_id: hold for hold in missing}

    return instead(release, "_leave_tombstones", lambda _: leave_nothing)


def _names(commands: Sequence[HoldCommand]) -> list[tuple[str, int]]:
    return [(command.reservation_id, command.order_id) for command in commands]


def _a_confirm_that_is_done_too_early() -> AbstractContextManager[None]:

    def always_done(commands: Sequence[HoldCommand], _: object) -> list[Confirmed]:
        for command in _names(commands):
            confirm(*command)
        return [Confirmed(repeated=False)] * len(commands)

    return instead(confirm_stock, "confirm_all", lambda _: always_done)


def _a_refund_that_is_done_again() -> AbstractContextManager[None]:
    """Under another number."""

    def try_again(refund_id: int, connect: Callable[[], Gateway]) -> Tried:
        tried = refund.try_refund(refund_id, connect)
        done = in_transaction(lambda tx: _read(tx, refund_id)) if tried is Tried.ENDED else None
        if done is not None:
            trade_no, amount = done
            connect().refund(
                trade_no=trade_no, out_request_no="again", amount=amount, reason="again"
            )
        return tried

    return instead(refund_payment, "try_refund", lambda _: try_again)


def _read(tx: Tx, refund_id: int) -> tuple[str, Decimal] | None:
    place = refundable_store.read_refund_place(tx, refund_id)
    if place is None:
        return None
    payment = refundable_store.lock_refundable(tx, place[0])
    found = [one for one in refund_store.read_refunds(tx, place[0]) if one.id == refund_id]
    return None if payment is None else (payment.trade_no, found[0].amount)


PLANTS: Final = (
    Plant(
        "a release that finds no hold leaves nothing, so that the hold may still be taken",
        _a_release_that_leaves_nothing,
        "cancelled-in-line",
        seen="release-1: acknowledged",
    ),
    Plant(
        "a release frees its order's lines, whether or not a hold has them",
        _a_release_of_what_was_ordered,
        "cancelled-in-line",
        seen="stock of SKU 1001",
        kind=Kind.CALLERS_QUANTITIES,
    ),
    Plant(
        "a confirm that finds no hold is refused for good, though its order is paid",
        partial(instead, confirm_stock, "paid_of", returning(value=frozenset())),
        "its-hold-comes-late",
        seen="refused for good",
    ),
    Plant(
        "a confirm that finds no hold is answered like one that sold it",
        _a_confirm_that_is_done_too_early,
        "its-hold-comes-late",
        seen="confirm-1: acknowledged",
    ),
    Plant(
        "a notice that was stored and not decided counts as done when it comes again",
        partial(instead, accept, "_later_delivery", returning(Result.REPLAYED)),
        "its-order-comes-late",
        seen="in other rows, at once",
    ),
    Plant(
        "what came before its payment is not decided with it",
        partial(instead, decide, "_decide_waiting", returning(None)),
        "given-back-in-parts",
        seen="in other rows, at once",
    ),
    Plant(
        "a command to refund what has gone back is done once more",
        _a_refund_that_is_done_again,
        "refunded-in-part-by-an-operator",
        seen="refunds at Alipay's",
    ),
)
