"""The HTTP interface as its callers have it: each request goes to the function of its route, and
each answer is held against the OpenAPI document."""

import json
import re
from typing import Any

from functions import cancel_order, create_order, operate_payments, query_orders, start_payment
from infra.openapi import FILE
from tests.support import schema
from tests.support.http_events import Answer, Event, send

DOCUMENT: Any = json.loads(FILE.read_text(encoding="utf-8"))
SCHEMAS = DOCUMENT["components"]["schemas"]

HANDLERS = {
    "post /orders": create_order.handler,
    "get /orders": query_orders.handler,
    "get /orders/requests/{key}": query_orders.handler,
    "get /orders/{order_no}": query_orders.handler,
    "post /orders/{order_no}/cancel": cancel_order.handler,
    "post /orders/{order_no}/payments": start_payment.handler,
    "get /stock/{sku_id}": query_orders.handler,
    "post /ops/orders/{order_no}/refunds": operate_payments.handler,
    "get /ops/payments": operate_payments.handler,
    "post /ops/payments/{trade_no}/refund": operate_payments.handler,
    "post /ops/payments/{trade_no}/attach": operate_payments.handler,
}


def ask(event: Event) -> Answer:
    """Answer ``event``; an answer that the document does not have fails the test."""
    route = _route(event)
    answer = send(HANDLERS[route], event)
    method, path = route.split(" ")
    assert undocumented(answer, DOCUMENT["paths"][path][method]["responses"]) == []
    return answer


def undocumented(answer: Answer, responses: Any) -> list[str]:
    """What of ``answer`` none of ``responses`` has."""
    response = responses.get(str(answer.status))
    if response is None:
        return [f"status {answer.status}"]
    content = response["content"].get(answer.content_type)
    if content is None:
        return [f"content type {answer.content_type}"]
    headers = response.get("headers", {})
    known = {name.lower() for name in headers} | {"content-type"}
    wanted = {name.lower() for name in headers if headers[name]["required"]} | {"content-type"}
    wrong = (answer.headers.keys() - known) | (wanted - answer.headers.keys())
    return [
        *(f"header {name}" for name in sorted(wrong)),
        *schema.faults(answer.document, content["schema"], SCHEMAS),
    ]


def _route(event: Event) -> str:
    called = f"{event['requestContext']['http']['method'].lower()} {event['rawPath']}"
    # In the table's order: /orders/requests/{key} before /orders/{order_no}.
    return next(
        route for route in HANDLERS if re.fullmatch(re.sub(r"\{\w+}", "[^/]+", route), called)
    )
