"""SHA-256 over the canonical form of a request: equal content, equal fingerprint, whatever its
order.

Versioned, because the form decides for ever whether an old key is a replay or a reuse.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal

from lockstep.money import show_yuan


def merge_lines(lines: Iterable[tuple[int, int]]) -> dict[int, int]:
    """(sku_id, quantity) pairs with each SKU once, ascending: also the order in which rows are
    locked."""
    merged: dict[int, int] = {}
    for sku_id, quantity in lines:
        merged[sku_id] = merged.get(sku_id, 0) + quantity
    return dict(sorted(merged.items()))


def of_order_request(
    lines: Mapping[int, int], note: str | None, expected_amount: Decimal | None
) -> str:
    """The fingerprint of POST /orders: its merged lines, note and expected amount."""
    expected = None if expected_amount is None else show_yuan(expected_amount)
    return _sha256(["order-request", 1, _pairs(lines), note, expected])


def of_reservation(order_id: int, lines: Mapping[int, int]) -> str:
    """The fingerprint of a hold: whose it is, and how much of what."""
    return _sha256(["reservation", 1, order_id, _pairs(lines)])


def of_notice(content: Iterable[object]) -> str:
    """The fingerprint of a channel notice: what it says, not when it was delivered."""
    return _sha256(["notice", 1, *(None if part is None else str(part) for part in content)])


def of_automatic_refund(provider: str, trade_no: str, n: int = 0) -> str:
    """The out_request_no of the refund that a payment which no order takes calls for; after ``n``
    refunds of it that were asked for here, the one of what is left.

    Derived from the trade and not from a row's id, so that a restored database asks for the same
    refund again and not for a second one. 33 characters: Alipay takes 64.
    """
    again = [n] if n else []
    return "A" + _sha256(["automatic-refund", 1, provider, trade_no, *again])[:32]


def of_asked_refund(order_no: str, idempotency_key: str) -> str:
    """The out_request_no of the refund that a person asked for, by the key of the request."""
    return "O" + _sha256(["asked-refund", 1, order_no, idempotency_key])[:32]


def of_refund_request(amount: Decimal | None, reason: str, restock: Mapping[int, int]) -> str:
    """The fingerprint of POST /ops/orders/{order_no}/refunds."""
    wanted = None if amount is None else show_yuan(amount)
    return _sha256(["refund-request", 1, wanted, reason, _pairs(restock)])


def _pairs(lines: Mapping[int, int]) -> list[list[int]]:
    return [[sku_id, lines[sku_id]] for sku_id in sorted(lines)]


def _sha256(content: list[object]) -> str:
    canonical = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
