"""What an operator is told of money that was to be attached."""

import json

import pytest

from lockstep.api.operator_answers import to_attach
from lockstep.api.operator_requests import read_attach
from lockstep.api.problems import Problem
from lockstep.orders.model import OrderNotFound, OrderStatus
from lockstep.payments.model import (
    Attached,
    OrderTakesNone,
    PaymentNotFound,
    PaymentNotWaiting,
    PaymentState,
)
from tests.support.http_events import as_operator, request


@pytest.mark.parametrize("repeated", [False, True])
def test_attached_money_is_answered_with_what_it_became(repeated):
    response = to_attach("T1", Attached(PaymentState.APPLIED, repeated=repeated))
    document = {"trade_no": "T1", "state": "APPLIED", "repeated": repeated}
    assert (response.status_code, json.loads(response.body or "")) == (200, document)


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [
        (PaymentNotFound(), 404, "PAYMENT_NOT_FOUND"),
        (OrderNotFound(), 404, "ORDER_NOT_FOUND"),
        (PaymentNotWaiting(PaymentState.REFUNDED), 409, "PAYMENT_NOT_WAITING"),
        (OrderTakesNone(OrderStatus.PAID, "SECOND_PAYMENT"), 409, "ORDER_TAKES_NONE"),
    ],
)
def test_what_cannot_be_attached_is_refused_by_name(outcome, status, code):
    response = to_attach("T1", outcome)
    document = json.loads(response.body or "")
    assert (response.status_code, document["code"]) == (status, code)
    if code == "PAYMENT_NOT_WAITING":
        assert document["payment_state"] == "REFUNDED"
    if code == "ORDER_TAKES_NONE":
        told = (document["order_status"], document["payment_reason"])
        assert told == ("PAID", "SECOND_PAYMENT")


@pytest.mark.parametrize(
    "body",
    [
        {"order_no": "O1"},
        {"order_no": "", "reason": "x"},
        {"order_no": "O" * 33, "reason": "x"},
        {"order_no": "O1", "reason": ""},
        {"order_no": "O1", "reason": " "},
        {"order_no": "O1", "reason": "x" * 201},
        {"order_no": 1, "reason": "x"},
        {"order_no": "O1", "reason": "x", "amount": "9.90"},
    ],
)
def test_a_body_that_says_less_or_more_is_refused(body):
    event = request("POST", "/", claims=as_operator(), body=json.dumps(body))
    with pytest.raises(Problem, match="BODY_INVALID"):
        read_attach(event, "T1")
