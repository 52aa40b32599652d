"""Refusals as problem documents."""

import json
from http import HTTPStatus

import pytest

from functions import create_order, query_orders
from lockstep.api.problems import PROBLEMS, problem
from lockstep.errors import TimeShort, TryAgain
from tests.support.http_events import PROBLEM_JSON, get, post_order, send

# Promised to tools outside: rename nothing.
PROMISED = {
    "IDEMPOTENCY_KEY_INVALID": 400,
    "BODY_UNREADABLE": 400,
    "MEMBER_ID_INVALID": 403,
    "ORDER_NOT_FOUND": 404,
    "SKU_NOT_FOUND": 404,
    "IDEMPOTENCY_KEY_REUSED": 409,
    "AMOUNT_CHANGED": 409,
    "OUT_OF_STOCK": 409,
    "ORDER_NOT_CANCELLABLE": 409,
    "BODY_INVALID": 422,
    "SKU_UNKNOWN": 422,
    "AMOUNT_ZERO": 422,
    "TRY_AGAIN": 503,
    "OPERATOR_SCOPE_MISSING": 403,
    "PAYMENT_NOT_FOUND": 404,
    "ORDER_NOT_REFUNDABLE": 409,
    "REFUND_TOO_LARGE": 409,
    "RESTOCK_REFUSED": 409,
    "PAYMENT_NOT_WAITING": 409,
}


def test_no_promised_code_was_renamed_or_moved_to_another_status():
    assert PROMISED.items() <= {code: status for code, (status, _) in PROBLEMS.items()}.items()


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_code_makes_a_document_with_its_five_members(code):
    answer = problem(code, more=["one"])
    status, detail = PROBLEMS[code]
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == PROBLEM_JSON
    assert json.loads(answer.body or "") == {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "more": ["one"],
    }


def test_only_a_passing_fault_asks_to_come_back():
    asking = {code for code in PROBLEMS if "Retry-After" in problem(code).headers}
    assert asking == {"TRY_AGAIN"}


def test_a_refusal_without_a_document_is_a_programming_error():
    with pytest.raises(KeyError):
        problem("NO_SUCH_CODE")


def fail(fault: Exception):
    def failing(*_: object) -> None:
        raise fault

    return failing


@pytest.mark.parametrize("fault", [TryAgain("1205"), TimeShort("over")])
def test_a_passing_fault_is_answered_as_one_wherever_it_shows(monkeypatch, fault):
    monkeypatch.setattr(create_order, "place", fail(fault))
    monkeypatch.setattr("lockstep.inventory.query.find", fail(fault))
    for answer in (
        send(create_order.handler, post_order()),
        send(query_orders.handler, get("/stock/1001")),
    ):
        assert (answer.status, answer.code) == (503, "TRY_AGAIN")
        assert int(answer.headers["retry-after"]) >= 1


def test_any_other_fault_is_a_function_error_and_never_an_answer(monkeypatch):
    monkeypatch.setattr(create_order, "place", fail(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        send(create_order.handler, post_order())
