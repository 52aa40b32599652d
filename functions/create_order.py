"""POST /orders: place an order with its stock held, once per Idempotency-Key."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.api import answers
from lockstep.api.app import new_app
from lockstep.api.requests import read_place_order
from lockstep.observability import count, observed
from lockstep.orders.place import place

app = new_app()


@app.post("/orders")
def create_order() -> Response[str]:
    outcome = place(read_place_order(app.current_event.raw_event))
    count("Order", type(outcome).__name__)
    return answers.to_place(outcome)


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
