"""What operators may send: the same care as for members, and a scope that their token must have."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from lockstep import fingerprint
from lockstep.api import requests
from lockstep.api.problems import Problem
from lockstep.api.requests import Event
from lockstep.money import parse_yuan
from lockstep.payments.ask_refund import AskRefund
from lockstep.payments.give_back import GiveBack
from lockstep.payments.model import PaymentState
from lockstep.payments.waiting import WAITING

SCOPE: Final = "lockstep/ops"
TRADE_NO: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
# What an actor's column holds, `operator:` before it.
_OPERATOR: Final = re.compile(r"[!-~]{1,64}", re.ASCII)

Reason = Annotated[str, Field(max_length=200, pattern=r"\S")]

Yuan = Annotated[str, Field(pattern=r"^[0-9]{1,16}(\.[0-9]{1,2})?$")]


class RefundOrderBody(requests.Body):
    """The body of POST /ops/orders/{order_no}/refunds. Without ``amount``: all that is left."""

    reason: Reason
    amount: Yuan | None = None
    restock: list[requests.OrderLineBody] = Field(default=[], max_length=100)


class GiveBackBody(requests.Body):
    """The body of POST /ops/payments/{trade_no}/refund. Without ``amount``: all that is left; with
    one, the request has an Idempotency-Key."""

    reason: Reason
    amount: Yuan | None = None


class AttachBody(requests.Body):
    """The body of POST /ops/payments/{trade_no}/attach."""

    order_no: Annotated[str, Field(pattern=f"^{requests.ORDER_NO.pattern}$")]
    reason: Reason


@dataclass(frozen=True, slots=True)
class WaitingQuery:
    """The query of GET /ops/payments. ``before`` is a payment's internal id."""

    states: tuple[PaymentState, ...]
    before: int | None
    limit: int


def read_operator(event: Event) -> str:
    """The operator that the verified token names. Raises Problem OPERATOR_SCOPE_MISSING.

    The route asks for the scope too; this holds where the gateway in front does not.
    """
    claims = requests.read_claims(event)
    operator = claims.get("sub")
    has_scope = SCOPE in str(claims.get("scope", "")).split()
    # As text only: a claim that is null would sign as "None".
    if not has_scope or not isinstance(operator, str) or not _OPERATOR.fullmatch(operator):
        raise Problem("OPERATOR_SCOPE_MISSING")
    return operator


def read_refund_order(event: Event, order_no: str) -> AskRefund:
    """POST /ops/orders/{order_no}/refunds as a command. Raises Problem: the operator, then the key,
    then the body."""
    operator = read_operator(event)
    key = _read_key(event)
    body = requests.read_body(event, RefundOrderBody)
    amount = _read_amount(body.amount)
    restock = fingerprint.merge_lines((line.sku_id, line.quantity) for line in body.restock)
    return AskRefund(requests.check_order_no(order_no), key, operator, body.reason, amount, restock)


def _read_key(event: Event) -> str:
    return requests.check_key(event.get("headers", {}).get("idempotency-key", ""))


def _read_amount(text: str | None) -> Decimal | None:
    amount = None if text is None else parse_yuan(text)
    if amount == Decimal():
        raise requests.invalid_body(["amount"], "greater_than", "more than nothing")
    return amount


def read_give_back(event: Event, trade_no: str) -> GiveBack:
    """POST /ops/payments/{trade_no}/refund as a command; an amount wants a key. Raises Problem."""
    operator = read_operator(event)
    body = requests.read_body(event, GiveBackBody)
    number, amount = check_trade_no(trade_no), _read_amount(body.amount)
    has_key = "idempotency-key" in event.get("headers", {})
    key = _read_key(event) if has_key or amount is not None else ""
    return GiveBack(number, operator, body.reason, amount, key)


def read_attach(event: Event, trade_no: str) -> tuple[str, str, AttachBody]:
    """(trade_no, operator, body) of POST /ops/payments/{trade_no}/attach. Raises Problem."""
    operator = read_operator(event)
    body = requests.read_body(event, AttachBody)
    return check_trade_no(trade_no), operator, body


def check_trade_no(text: str) -> str:
    """``text``, if it can be a trade's number. Raises Problem PAYMENT_NOT_FOUND."""
    if not TRADE_NO.fullmatch(text):
        raise Problem("PAYMENT_NOT_FOUND")
    return text


def read_waiting_query(event: Event) -> WaitingQuery:
    """The query of GET /ops/payments; an empty parameter is an absent one. Raises Problem."""
    read_operator(event)
    query = event.get("queryStringParameters") or {}
    state = query.get("state") or None
    if state is not None and state not in WAITING:
        raise requests.bad_query("state", "not a state in which money waits for a person")
    before, limit = requests.read_page(query)
    return WaitingQuery(WAITING if state is None else (PaymentState(state),), before, limit)
