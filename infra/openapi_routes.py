"""Which route takes and answers what: the table that the OpenAPI document is made from.

The tests hold it against the routes in the code, the template and real answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from infra import openapi_models as answers
from lockstep.api.requests import KEY, ORDER_NO, SKU_ID_MAX, PlaceOrderBody, StartPaymentBody
from lockstep.orders.model import OrderStatus

type Json = dict[str, Any]


def _parameter(name: str, place: str, schema: Json, description: str) -> Json:
    required = place == "path" or name == "Idempotency-Key"
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": description,
        "schema": schema,
    }


_KEY_SCHEMA: Final = {"type": "string", "pattern": f"^{KEY.pattern}$"}
_ORDER_NO: Final = _parameter(
    "order_no",
    "path",
    {"type": "string", "pattern": f"^{ORDER_NO.pattern}$"},
    "Number of an order of the member's own.",
)
_STATUSES: Final = [str(status) for status in OrderStatus if status is not OrderStatus.NONE]
_PAGE: Final = (
    _parameter("status", "query", {"type": "string", "enum": _STATUSES}, "Only these orders."),
    _parameter("cursor", "query", {"type": "string"}, "The next_cursor of the page before."),
    _parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "Orders on a page.",
    ),
)


@dataclass(frozen=True)
class Operation:
    """One route: what it takes, what it answers, and the codes that it refuses with."""

    method: str
    path: str
    name: str
    summary: str
    answers: Mapping[int, tuple[str, type[BaseModel]]]
    problems: Sequence[str]
    parameters: Sequence[Json] = ()
    body: type[BaseModel] | None = None
    waits: frozenset[int] = frozenset()
    may_wait: frozenset[int] = frozenset()


OPERATIONS: Final = (
    Operation(
        "post",
        "/orders",
        "createOrder",
        "Place an order with its stock held, once for each key.",
        {
            201: ("The order, new.", answers.PlacedOrder),
            200: ("A replay: the order of this key, as it is now.", answers.PlacedOrder),
            202: ("Still being decided.", answers.RequestInFlight),
        },
        (
            "IDEMPOTENCY_KEY_INVALID",
            "BODY_UNREADABLE",
            "MEMBER_ID_INVALID",
            "IDEMPOTENCY_KEY_REUSED",
            "AMOUNT_CHANGED",
            "OUT_OF_STOCK",
            "BODY_INVALID",
            "SKU_UNKNOWN",
            "AMOUNT_ZERO",
            "AMOUNT_TOO_LARGE",
            "TRY_AGAIN",
        ),
        (_parameter("Idempotency-Key", "header", _KEY_SCHEMA, "Chosen by the caller."),),
        PlaceOrderBody,
        waits=frozenset({202}),
        may_wait=frozenset({200, 201}),
    ),
    Operation(
        "get",
        "/orders",
        "listOrders",
        "The member's orders, newest first.",
        {200: ("A page of them.", answers.OrderPage)},
        ("MEMBER_ID_INVALID", "QUERY_INVALID", "TRY_AGAIN"),
        _PAGE,
    ),
    Operation(
        "get",
        "/orders/{order_no}",
        "getOrder",
        "An order with its payments and its trail.",
        {200: ("The order.", answers.OrderInFull)},
        ("MEMBER_ID_INVALID", "ORDER_NOT_FOUND", "TRY_AGAIN"),
        (_ORDER_NO,),
    ),
    Operation(
        "get",
        "/orders/requests/{key}",
        "getOrderRequest",
        "What is known of a request, by its key.",
        {200: ("What is known.", answers.OrderRequest)},
        ("IDEMPOTENCY_KEY_INVALID", "MEMBER_ID_INVALID", "TRY_AGAIN"),
        (_parameter("key", "path", _KEY_SCHEMA, "The Idempotency-Key of the request."),),
    ),
    Operation(
        "post",
        "/orders/{order_no}/cancel",
        "cancelOrder",
        "Close an unpaid order; may be repeated.",
        {
            200: ("The order, closed.", answers.CancelledOrder),
            202: ("Kept until the gateway says that nothing was paid.", answers.CancelledOrder),
        },
        ("MEMBER_ID_INVALID", "ORDER_NOT_FOUND", "ORDER_NOT_CANCELLABLE", "TRY_AGAIN"),
        (_ORDER_NO,),
        waits=frozenset({202}),
    ),
    Operation(
        "post",
        "/orders/{order_no}/payments",
        "startPayment",
        "A link by which an unpaid order can be paid.",
        {
            201: ("A new payment.", answers.StartedPayment),
            200: ("The same payment again, while it can be paid.", answers.StartedPayment),
        },
        (
            "BODY_UNREADABLE",
            "MEMBER_ID_INVALID",
            "ORDER_NOT_FOUND",
            "ORDER_NOT_PAYABLE",
            "STOCK_NOT_HELD",
            "ORDER_EXPIRED",
            "BODY_INVALID",
            "TRY_AGAIN",
        ),
        (_ORDER_NO,),
        StartPaymentBody,
    ),
    Operation(
        "get",
        "/stock/{sku_id}",
        "getStock",
        "A SKU and its counters.",
        {200: ("As they are now.", answers.StockOfSku)},
        ("SKU_NOT_FOUND", "TRY_AGAIN"),
        (
            _parameter(
                "sku_id",
                "path",
                {"type": "integer", "minimum": 1, "maximum": SKU_ID_MAX},
                "Number of a SKU.",
            ),
        ),
    ),
)
