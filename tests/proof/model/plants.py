"""Faults of the books: of money, of stock, and of what a key stands for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from lockstep import fingerprint
from lockstep.inventory import release
from lockstep.payments import note_refund, refund, settle
from lockstep.payments.model import PaymentState, RefundReason
from tests.proof.plants import Kind, Plant, instead

_FREE_THE_ORDERS_LINES: Final = """
UPDATE ims_sku_stock AS s
JOIN oms_order_item AS i ON i.sku_id = s.sku_id AND i.order_id = %s
SET s.lock_stock = s.lock_stock - i.quantity
"""
_RETURN_A_PIECE: Final = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = 1001"


def _any_amount_pays() -> Any:
    def of(right: Any) -> Any:
        def wrong(tx: Any, report: Any, order: Any, actor: str) -> Any:
            return right(tx, replace(report, total_amount=order.pay_amount), order, actor)

        return wrong

    return instead(settle, "_pay_or_keep", of)


def _a_second_payment_is_kept() -> Any:
    def of(right: Any) -> Any:
        def wrong(*arguments: Any) -> Any:
            state, reason = right(*arguments)
            is_second = reason is RefundReason.SECOND_PAYMENT
            return (PaymentState.APPLIED, None) if is_second else (state, reason)

        return wrong

    return instead(settle, "_pay_or_keep", of)


@contextmanager
def _a_refund_returns_goods() -> Iterator[None]:
    def of(right: Any) -> Any:
        def wrong(tx: Any, *arguments: Any) -> Any:
            tx.execute(_RETURN_A_PIECE)
            return right(tx, *arguments)

        return wrong

    with instead(refund, "complete", of), instead(note_refund, "complete", of):
        yield


def _a_release_frees_what_its_order_wants() -> Any:
    def of(right: Any) -> Any:
        def wrong(tx: Any, commands: Any) -> Any:
            left = right(tx, commands)
            for command in commands:
                tx.execute(_FREE_THE_ORDERS_LINES, (command.order_id,))
            return left

        return wrong

    return instead(release, "_leave_tombstones", of)


def _a_key_ignores_its_content() -> Any:
    return instead(fingerprint, "of_order_request", lambda _: lambda *_: "0" * 64)


# The cases are few steps that show it; in its fixed form orders.0 found each fault, in other steps.
PLANTS: Final = (
    Plant(
        "the amount of a payment is not compared",
        _any_amount_pays,
        "joint.0",
        "place 42 x 1001:1; pay 1 9.91; tell PAID:t1",
        kind=Kind.AMOUNT_UNCHECKED,
    ),
    Plant(
        "a payment of a paid order is applied like the first",
        _a_second_payment_is_kept,
        "joint.0",
        "place 42 x 1001:1; pay 1 9.90; pay 1 9.90; tell PAID:t1; tell PAID:t2",
    ),
    Plant(
        "money that goes back brings a piece into stock",
        _a_refund_returns_goods,
        "joint.0",
        "place 42 x 1001:1; pay 1 9.90; tell PAID:t1; refund 1 r rest; deliver refund t1#1",
    ),
    Plant(
        "where nothing was held, the order's quantities are released all the same",
        _a_release_frees_what_its_order_wants,
        "joint.0",
        "place 42 x 1001:1,2001:1; cancel 42 1; deliver release 1-1",
        kind=Kind.CALLERS_QUANTITIES,
    ),
    Plant(
        "any request with a known key is a repeat",
        _a_key_ignores_its_content,
        "orders.0",
    ),
)
