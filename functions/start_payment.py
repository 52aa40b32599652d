"""POST /orders/{order_no}/payments: a link by which a member can pay an order."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.alipay import gateway
from lockstep.api import answers
from lockstep.api.app import new_app
from lockstep.api.requests import read_start_payment
from lockstep.observability import count, observed
from lockstep.payments.start import start

app = new_app()


@app.post("/orders/<order_no>/payments")
def start_payment(order_no: str) -> Response[str]:
    command = read_start_payment(app.current_event.raw_event, order_no)
    outcome = start(command, gateway.connect)
    count("Start", type(outcome).__name__)
    return answers.to_start(outcome)


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
