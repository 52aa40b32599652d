"""/ops: refund orders, and see to money that waits for a person. For operators only."""

from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.api import operator_answers, operator_requests
from lockstep.api.app import answer, new_app
from lockstep.api.requests import write_cursor
from lockstep.observability import count, observed
from lockstep.payments.ask_refund import ask_refund
from lockstep.payments.attach import attach
from lockstep.payments.give_back import give_back
from lockstep.payments.waiting import waiting

app = new_app()


@app.post("/ops/orders/<order_no>/refunds")
def refund_order(order_no: str) -> Response[str]:
    event = app.current_event.raw_event
    outcome = ask_refund(operator_requests.read_refund_order(event, order_no))
    count("RefundOrder", type(outcome).__name__)
    return operator_answers.to_refund(outcome)


@app.get("/ops/payments")
def list_payments() -> Response[str]:
    asked = operator_requests.read_waiting_query(app.current_event.raw_event)
    page = waiting(asked.states, asked.before, asked.limit)
    payments = [operator_answers.show_waiting(payment) for payment in page.payments]
    return answer(200, {"payments": payments, "next_cursor": write_cursor(page.next_before)})


@app.post("/ops/payments/<trade_no>/refund")
def refund_payment(trade_no: str) -> Response[str]:
    event = app.current_event.raw_event
    outcome = give_back(operator_requests.read_give_back(event, unquote(trade_no)))
    count("GiveBack", type(outcome).__name__)
    return operator_answers.to_give_back(outcome)


@app.post("/ops/payments/<trade_no>/attach")
def attach_payment(trade_no: str) -> Response[str]:
    event = app.current_event.raw_event
    number, operator, body = operator_requests.read_attach(event, unquote(trade_no))
    outcome = attach(number, body.order_no, f"operator:{operator}", body.reason)
    count("Attach", type(outcome).__name__)
    return operator_answers.to_attach(number, outcome)


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
