"""Attaching money to an order, as an operator asks for it and is answered."""

from typing import Annotated, assert_never

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel, ConfigDict, Field

from lockstep.api.app import answer
from lockstep.api.problems import problem
from lockstep.orders.model import OrderNotFound
from lockstep.payments.model import Attached, AttachOutcome, PaymentNotFound, PaymentNotWaiting


class AttachBody(BaseModel):
    """The body of POST /ops/payments/{trade_no}/attach."""

    model_config = ConfigDict(strict=True, extra="forbid")

    order_no: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")]
    reason: Annotated[str, Field(min_length=1, max_length=200)]


def to_attach(trade_no: str, outcome: AttachOutcome) -> Response[str]:
    """The answer to it."""
    match outcome:
        case Attached(state, repeated):
            document = {"trade_no": trade_no, "state": state, "repeated": repeated}
            return answer(200, document)
        case PaymentNotFound():
            return problem("PAYMENT_NOT_FOUND")
        case PaymentNotWaiting(state):
            return problem("PAYMENT_NOT_WAITING", payment_state=state)
        case OrderNotFound():
            return problem("ORDER_NOT_FOUND")
        case _:
            assert_never(outcome)
