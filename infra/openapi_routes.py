"""Which route takes and answers what: the table that the OpenAPI document is made from.

The tests hold it against the routes in the code, the template and real answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from infra import openapi_models as answers
from lockstep.api.operator_requests import (
    SCOPE,
    TRADE_NO,
    AttachBody,
    GiveBackBody,
    RefundOrderBody,
)
from lockstep.api.requests import KEY, ORDER_NO, SKU_ID_MAX, PlaceOrderBody, StartPaymentBody
from lockstep.orders.model import OrderStatus
from lockstep.payments.waiting import WAITING

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


_TRADE_NO: Final = _parameter(
    "trade_no",
    "path",
    {"type": "string", "pattern": f"^{TRADE_NO.pattern}$"},
    "Alipay's number of the trade.",
)
_KEY_SCHEMA: Final = {"type": "string", "pattern": f"^{KEY.pattern}$"}
_KEY: Final = _parameter("Idempotency-Key", "header", _KEY_SCHEMA, "Chosen by the caller.")
_KEY_OF_A_PART: Final = _KEY | {"required": False, "description": "Wanted with an amount."}
_ORDER_NO: Final = _parameter(
    "order_no",
    "path",
    {"type": "string", "pattern": f"^{ORDER_NO.pattern}$"},
    "Number of the order; a member sees none but their own.",
)
_STATUSES: Final = [str(status) for status in OrderStatus if status is not OrderStatus.NONE]
_PAGE: Final = (
    _parameter("status", "query", {"type": "string", "enum": _STATUSES}, "Only these orders."),
    _parameter("cursor", "query", {"type": "string"}, "The next_cursor of the page before."),
    _parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "How many on a page.",
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
    scope: str | None = None
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
        (_KEY,),
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
    Operation(
        "post",
        "/ops/orders/{order_no}/refunds",
        "refundOrder",
        "Refund a paid order, in whole or in part, once for each key.",
        {
            201: ("The refund, asked for.", answers.RefundedOrder),
            200: ("A replay: the refund of this key, as it is now.", answers.RefundedOrder),
        },
        (
            "OPERATOR_SCOPE_MISSING",
            "IDEMPOTENCY_KEY_INVALID",
            "BODY_UNREADABLE",
            "BODY_INVALID",
            "ORDER_NOT_FOUND",
            "IDEMPOTENCY_KEY_REUSED",
            "ORDER_NOT_REFUNDABLE",
            "REFUND_TOO_LARGE",
            "RESTOCK_REFUSED",
            "TRY_AGAIN",
        ),
        (_ORDER_NO, _KEY),
        RefundOrderBody,
        scope=SCOPE,
    ),
    Operation(
        "get",
        "/ops/payments",
        "listWaitingPayments",
        "Money that waits for a person, newest first.",
        {200: ("A page of it.", answers.WaitingPage)},
        ("OPERATOR_SCOPE_MISSING", "QUERY_INVALID", "TRY_AGAIN"),
        (
            _parameter(
                "state",
                "query",
                {"type": "string", "enum": [str(state) for state in WAITING]},
                "Only in this state; APPLIED: of a paid order whose last refund was given up.",
            ),
            *_PAGE[1:],
        ),
        scope=SCOPE,
    ),
    Operation(
        "post",
        "/ops/payments/{trade_no}/refund",
        "giveMoneyBack",
        "Have money that waits for a person go back; may be repeated.",
        {200: ("The payment and its refund, as they are now.", answers.MoneyGivenBack)},
        (
            "OPERATOR_SCOPE_MISSING",
            "IDEMPOTENCY_KEY_INVALID",
            "IDEMPOTENCY_KEY_REUSED",
            "BODY_UNREADABLE",
            "BODY_INVALID",
            "PAYMENT_NOT_FOUND",
            "PAYMENT_NOT_WAITING",
            "REFUND_TOO_LARGE",
            "TRY_AGAIN",
        ),
        (_TRADE_NO, _KEY_OF_A_PART),
        GiveBackBody,
        scope=SCOPE,
    ),
    Operation(
        "post",
        "/ops/payments/{trade_no}/attach",
        "attachPayment",
        "Give money that fits no order to the order that it is for; may be repeated.",
        {200: ("The payment's state from now on.", answers.PaymentAttached)},
        (
            "OPERATOR_SCOPE_MISSING",
            "BODY_UNREADABLE",
            "BODY_INVALID",
            "ORDER_NOT_FOUND",
            "PAYMENT_NOT_FOUND",
            "ORDER_TAKES_NONE",
            "PAYMENT_NOT_WAITING",
            "TRY_AGAIN",
        ),
        (_TRADE_NO,),
        AttachBody,
        scope=SCOPE,
    ),
)
