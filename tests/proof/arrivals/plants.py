"""Faults to plant: what goes wrong once messages and notices come in another order, or twice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest

from functions import confirm_stock, refund_payment, release_stock
from lockstep.alipay.gateway import Gateway
from lockstep.db.transaction import Tx, in_transaction
from lockstep.inventory import release, store
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Refused, Released
from lockstep.orders import read_store
from lockstep.payments import accept, decide, refund, refund_store, refundable_store
from lockstep.payments.model import Result
from lockstep.payments.refund import Tried


@contextmanager
def a_release_without_a_tombstone() -> Iterator[None]:
    """A release that finds no hold leaves nothing, so that the hold may still be taken."""

    def leave_nothing(*_: object) -> Released:
        return Released(repeated=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "_leave_tombstone", leave_nothing)
        yield


@contextmanager
def a_release_of_what_was_ordered() -> Iterator[None]:
    """A release frees its order's lines, whether or not a hold has them."""

    def free_the_lines(reservation_id: str, order_id: int) -> Released | Refused:
        def work(tx: Tx) -> Released | Refused:
            was_held = store.lock_reservation(tx, reservation_id) is not None
            released = release.give_back(tx, reservation_id, order_id)
            if not was_held and isinstance(released, Released):
                lines, _ = read_store.read_wanted(tx, order_id)
                for sku_id, quantity in lines.items():
                    store.free_stock(tx, sku_id, quantity)
            return released

        return in_transaction(work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_stock, "release", free_the_lines)
        yield


@contextmanager
def a_confirm_that_is_skipped_too_early() -> Iterator[None]:
    """A confirm that finds no hold is refused for good, though its order is paid."""

    def is_not_paid(_: int) -> bool:
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confirm_stock, "is_paid", is_not_paid)
        yield


@contextmanager
def a_confirm_that_is_done_too_early() -> Iterator[None]:
    """A confirm that finds no hold is answered like one that sold it."""

    def always_done(reservation_id: str, order_id: int) -> Confirmed:
        confirm(reservation_id, order_id)
        return Confirmed(repeated=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confirm_stock, "confirm", always_done)
        yield


@contextmanager
def a_stored_notice_that_is_replayed() -> Iterator[None]:
    """A notice that was stored and not decided counts as done when it comes again."""

    def replay(*_: object, **__: object) -> Result:
        return Result.REPLAYED

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accept, "_later_delivery", replay)
        yield


@contextmanager
def a_notice_that_is_left_waiting() -> Iterator[None]:
    """What came before its payment is not decided with it."""

    def leave(*_: object) -> None:
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "_decide_waiting", leave)
        yield


@contextmanager
def a_refund_that_is_done_again() -> Iterator[None]:
    """A command to refund what has gone back is done once more, under another number."""

    def try_again(refund_id: int, connect: Callable[[], Gateway]) -> Tried:
        tried = refund.try_refund(refund_id, connect)
        done = in_transaction(lambda tx: _read(tx, refund_id)) if tried is Tried.ENDED else None
        if done is not None:
            trade_no, amount = done
            connect().refund(
                trade_no=trade_no, out_request_no="again", amount=amount, reason="again"
            )
        return tried

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refund_payment, "try_refund", try_again)
        yield


def _read(tx: Tx, refund_id: int) -> tuple[str, Decimal] | None:
    place = refundable_store.read_refund_place(tx, refund_id)
    if place is None:
        return None
    payment = refundable_store.lock_refundable(tx, place[0])
    found = [one for one in refund_store.read_refunds(tx, place[0]) if one.id == refund_id]
    return None if payment is None else (payment.trade_no, found[0].amount)
