"""What members see: amounts as strings, times as RFC 3339 UTC with milliseconds."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from lockstep.inventory.model import Sku
from lockstep.money import show_yuan
from lockstep.orders.model import Order, Transition
from lockstep.payments.model import PaymentView, Started

type View = dict[str, Any]


def show_time(moment: datetime | None) -> str | None:
    """'2026-10-24T02:00:05.000Z'."""
    if moment is None:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def show_order(order: Order) -> View:
    return {
        "order_no": order.order_no,
        "status": order.status,
        "close_reason": order.close_reason,
        "total_amount": show_yuan(order.total_amount),
        "pay_amount": show_yuan(order.pay_amount),
        "paid_amount": show_yuan(order.paid_amount),
        "refunded_amount": show_yuan(order.refunded_amount),
        "currency": "CNY",
        "created_at": show_time(order.created_at),
        "expires_at": show_time(order.expires_at),
        "paid_at": show_time(order.paid_at),
        "note": order.note,
        "lines": [
            {
                "sku_id": line.sku_id,
                "title": line.title,
                "quantity": line.quantity,
                "price": show_yuan(line.price),
                "amount": show_yuan(line.amount),
            }
            for line in order.lines
        ],
        "reservation": {
            "reservation_id": order.reservation_id,
            "state": order.reservation_state,
        },
    }


def show_order_in_full(
    order: Order, payments: Iterable[PaymentView], timeline: Sequence[Transition]
) -> View:
    return show_order(order) | {
        "payments": [
            {
                "provider": payment.provider,
                "trade_no": payment.trade_no,
                "amount": show_yuan(payment.amount),
                "state": payment.state,
                "paid_at": show_time(payment.paid_at),
            }
            for payment in payments
        ],
        "timeline": [
            {
                "at": show_time(entry.at),
                "from": entry.from_status,
                "to": entry.to_status,
                "actor": entry.actor,
                "reason": entry.reason,
            }
            for entry in timeline
        ],
    }


def show_started(started: Started) -> View:
    attempt = started.attempt
    return {
        "out_trade_no": attempt.out_trade_no,
        "qr_code" if attempt.product == "qr" else "pay_url": started.link,
        "amount": show_yuan(attempt.amount),
        "expires_at": show_time(attempt.expires_at),
    }


def show_sku(sku: Sku) -> View:
    return {
        "sku_id": sku.sku_id,
        "title": sku.title,
        "price": show_yuan(sku.price),
        "stock": sku.stock,
        "lock_stock": sku.lock_stock,
        "available": sku.available,
        "hot": sku.hot,
    }
