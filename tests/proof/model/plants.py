"""Faults to plant in the product, so that the model can be seen to find them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from lockstep import fingerprint
from lockstep.inventory import release
from lockstep.payments import note_refund, refund, settle
from lockstep.payments.model import PaymentState, RefundReason

_FREE_THE_ORDERS_LINES: Final = """
UPDATE ims_sku_stock AS s
JOIN oms_order_item AS i ON i.sku_id = s.sku_id AND i.order_id = %s
SET s.lock_stock = s.lock_stock - i.quantity
"""
_RETURN_A_PIECE: Final = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = 1001"


@contextmanager
def _instead(place: object, name: str, of: Callable[[Any], Any]) -> Iterator[None]:
    """``of`` makes the fault from what was right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, of(getattr(place, name)))
        yield


def any_amount_pays() -> Any:
    """The amount of a payment is not compared."""

    def of(right: Any) -> Any:
        def wrong(tx: Any, report: Any, order: Any, actor: str) -> Any:
            return right(tx, replace(report, total_amount=order.pay_amount), order, actor)

        return wrong

    return _instead(settle, "_pay_or_keep", of)


def a_second_payment_is_kept() -> Any:
    """A payment of a paid order is applied like the first."""

    def of(right: Any) -> Any:
        def wrong(*arguments: Any) -> Any:
            state, reason = right(*arguments)
            is_second = reason is RefundReason.SECOND_PAYMENT
            return (PaymentState.APPLIED, None) if is_second else (state, reason)

        return wrong

    return _instead(settle, "_pay_or_keep", of)


@contextmanager
def a_refund_returns_goods() -> Iterator[None]:
    """Money that goes back brings a piece into stock."""

    def of(right: Any) -> Any:
        def wrong(tx: Any, *arguments: Any) -> Any:
            tx.execute(_RETURN_A_PIECE)
            return right(tx, *arguments)

        return wrong

    with _instead(refund, "complete", of), _instead(note_refund, "complete", of):
        yield


def a_release_frees_what_its_order_wants() -> Any:
    """Where nothing was held, the order's quantities are released all the same."""

    def of(right: Any) -> Any:
        def wrong(tx: Any, reservation_id: str, order_id: int) -> Any:
            left = right(tx, reservation_id, order_id)
            tx.execute(_FREE_THE_ORDERS_LINES, (order_id,))
            return left

        return wrong

    return _instead(release, "_leave_tombstone", of)


def a_key_ignores_its_content() -> Any:
    """Any request with a known key is a repeat."""
    return _instead(fingerprint, "of_order_request", lambda _: lambda *_: "0" * 64)


PLANTS: Final = {
    plant.__name__: plant
    for plant in (
        any_amount_pays,
        a_second_payment_is_kept,
        a_refund_returns_goods,
        a_release_frees_what_its_order_wants,
        a_key_ignores_its_content,
    )
}
