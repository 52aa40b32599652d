"""Refusals as RFC 9457 problem documents: one code, one status, one sentence each."""

import json
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.event_handler import Response

PROBLEM_JSON: Final = "application/problem+json"

# code -> (status, what it means to the caller)
PROBLEMS: Final[dict[str, tuple[int, str]]] = {
    "IDEMPOTENCY_KEY_INVALID": (400, "Idempotency-Key must be 1 to 64 of A-Z a-z 0-9 . _ : -"),
    "BODY_UNREADABLE": (400, "The body is not JSON, or larger than 128 KB."),
    "MEMBER_ID_INVALID": (403, "The token names no member."),
    "OPERATOR_SCOPE_MISSING": (403, "The token is no operator's: it lacks the scope lockstep/ops."),
    "ORDER_NOT_FOUND": (404, "There is no order with this number, or it is not yours."),
    "PAYMENT_NOT_FOUND": (404, "No payment has this trade number."),
    "SKU_NOT_FOUND": (404, "There is no such SKU."),
    "ROUTE_NOT_FOUND": (404, "There is nothing at this address."),
    "IDEMPOTENCY_KEY_REUSED": (409, "The key belongs to a request with other content."),
    "AMOUNT_CHANGED": (409, "The order comes to another sum than expected_amount."),
    "OUT_OF_STOCK": (409, "Not all lines can be held."),
    "ORDER_NOT_CANCELLABLE": (409, "The order is paid, and no longer yours to cancel."),
    "ORDER_NOT_PAYABLE": (409, "The order is paid, closed or about to be closed."),
    "STOCK_NOT_HELD": (409, "The order's stock is not held yet, or no more."),
    "ORDER_EXPIRED": (409, "Too little of the order's time is left to pay it."),
    "ORDER_NOT_REFUNDABLE": (409, "The order is not paid, or all of it is going back already."),
    "REFUND_TOO_LARGE": (409, "More than is neither back nor asked for."),
    "RESTOCK_REFUSED": (409, "More comes back than was sold, or it is not sold yet."),
    "ORDER_TAKES_NONE": (409, "The order cannot take this money: it would only go back."),
    "PAYMENT_NOT_WAITING": (409, "The payment does not wait for a person."),
    "BODY_INVALID": (422, "The body does not say what is needed."),
    "QUERY_INVALID": (422, "A query parameter is not what it may be."),
    "SKU_UNKNOWN": (422, "A SKU does not exist or is not on sale."),
    "AMOUNT_ZERO": (422, "An order must come to more than nothing."),
    "AMOUNT_TOO_LARGE": (422, "An order may come to at most 100000000.00 yuan."),
    "TRY_AGAIN": (503, "Something we need is busy. Ask again, or look first what became of it."),
}


class Problem(Exception):
    """A refusal on its way out. ``extra`` are further members of the document."""

    def __init__(self, code: str, **extra: object) -> None:
        super().__init__(code)
        self.code = code
        self.extra = extra


def problem(code: str, **extra: object) -> Response[str]:
    """The document of ``code``. Raises KeyError for a code that has none."""
    status, detail = PROBLEMS[code]
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **extra,
    }
    headers = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Response(status, PROBLEM_JSON, json.dumps(document), headers)
