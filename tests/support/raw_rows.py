"""Rows written by hand, as an operator or a broken program would: valid but for what is changed."""

from collections.abc import Mapping
from typing import Final

from tests.support.database import Database

_HASH: Final = "0" * 64
_SOON: Final = "2026-11-30 12:00:00.000"

VALID: Final[Mapping[str, Mapping[str, object]]] = {
    "oms_order_transition": {"from_status": "PAID", "to_status": "CLOSED"},
    "oms_order": {
        "order_no": "202611300100000000420001",
        "member_id": 42,
        "status": "PENDING_PAYMENT",
        "prev_status": "NONE",
        "total_amount": "9.90",
        "pay_amount": "9.90",
        "reservation_id": "202611300100000000420001-1",
        "expires_at": _SOON,
    },
    "oms_order_item": {
        "order_id": 1,
        "sku_id": 1001,
        "title": "SKU 1001",
        "quantity": 2,
        "price": "9.90",
        "amount": "19.80",
    },
    "oms_order_request": {
        "member_id": 42,
        "idempotency_key": "k",
        "request_hash": _HASH,
        "state": "SUCCESS",
        "order_id": 1,
    },
    "oms_order_event": {
        "order_id": 1,
        "from_status": "NONE",
        "to_status": "PENDING_PAYMENT",
        "actor": "member:42",
        "reason": "PLACED",
    },
    "oms_order_payment": {
        "provider": "alipay",
        "trade_no": "T1",
        "out_trade_no": "202611300100000000420001",
        "order_id": 1,
        "amount": "9.90",
        "state": "APPLIED",
    },
    "oms_payment_attempt": {
        "order_id": 1,
        "out_trade_no": "202611300100000000420001",
        "product": "page",
        "amount": "9.90",
        "state": "OPEN",
        "expires_at": _SOON,
    },
    "oms_refund": {
        "payment_id": 1,
        "out_request_no": "R1",
        "amount": "9.90",
        "state": "DUE",
        "requested_by": "system:refund_payment",
        "next_try_at": _SOON,
    },
    "oms_money_entry": {
        "order_id": 1,
        "payment_id": 1,
        "kind": "PAYMENT",
        "amount": "9.90",
        "source": "payment:1",
    },
    "oms_notice": {
        "provider": "alipay",
        "notify_id": "N1",
        "content_hash": _HASH,
        "kind": "PAYMENT",
        "app_id": "2021000100000001",
        "state": "DONE",
    },
    "ims_sku_stock": {"sku_id": 1001, "title": "SKU 1001", "price": "9.90", "stock": 10},
    "ims_hot_turn": {"sku_id": 2001},
    "ims_stock_entry": {
        "sku_id": 1001,
        "kind": "INITIAL",
        "delta": 10,
        "source": "initial:1001",
        "actor": "test",
        "reason": "built",
    },
    "ims_catalogue_load": {
        "load_id": "first",
        "content_hash": "0" * 64,
        "actor": "test",
        "loaded": 1,
        "repriced": 0,
        "restocked": 0,
        "unchanged": 0,
    },
    "ims_reservation": {
        "reservation_id": "202611300100000000420001-1",
        "order_id": 1,
        "n": 1,
        "request_hash": _HASH,
        "state": "RESERVED",
        "expires_at": _SOON,
    },
    "ims_reservation_item": {
        "reservation_id": "202611300100000000420001-1",
        "sku_id": 1001,
        "quantity": 2,
    },
    "outbox": {
        "message_id": "0" * 32,
        "queue": "confirm",
        "group_key": "202611300100000000420001-1",
        "payload": "{}",
        "next_at": _SOON,
    },
    "message_refusal": {
        "message_id": "0" * 32,
        "type": "ConfirmStock",
        "reservation_id": "202611300100000000420001-1",
        "code": "RESERVATION_NOT_RESERVED",
    },
}


def insert_row(database: Database, table: str, **changes: object) -> int:
    """Insert the valid row of ``table`` with ``changes``; the id it drew, 0 where it draws none."""
    row = {**VALID[table], **changes}
    columns, places = ", ".join(row), ", ".join(["%s"] * len(row))
    with database.session.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({places})",  # noqa: S608 - names from above
            tuple(row.values()),
        )
        return int(cursor.lastrowid)
