"""HTTP requests as the API hands them to the functions: signed notices, and asking for a list."""

import base64
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from infra.local import alipay, alipay_sign
from infra.local.paths import BENCH_HOME


def notices(order_nos: Sequence[str], amount: Decimal) -> list[dict[str, Any]]:
    """A payment notice for each, signed as ``our_notice.let_notices_come`` expects."""
    shop = alipay.ensure(BENCH_HOME)
    key = alipay_sign.load_key(shop.signing_key_file)
    bodies = [
        alipay_sign.form_body(
            alipay_sign.payment_notice(
                shop.app_id, shop.seller_id, order_no, f"T{order_no}", amount
            ),
            key,
        )
        for order_no in order_nos
    ]
    return [
        {
            "version": "2.0",
            "requestContext": {"requestId": "bench"},
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
        }
        for body in bodies
    ]


def list_of(member_id: int) -> dict[str, Any]:
    """GET /orders with the member's verified token."""
    return {
        "version": "2.0",
        "routeKey": "GET /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {"accept": "application/json"},
        "requestContext": {
            "requestId": "bench",
            "stage": "$default",
            "http": {"method": "GET", "path": "/orders"},
            "authorizer": {"jwt": {"claims": {"sub": str(member_id)}}},
        },
        "isBase64Encoded": False,
    }
