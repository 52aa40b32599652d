"""POST /orders/{order_no}/cancel: close an unpaid order at its member's wish."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.alipay import gateway
from lockstep.api import answers
from lockstep.api.app import new_app
from lockstep.api.requests import check_order_no, read_member_id
from lockstep.observability import count, observed
from lockstep.payments.cancel import cancel

app = new_app()


@app.post("/orders/<order_no>/cancel")
def cancel_order(order_no: str) -> Response[str]:
    member_id = read_member_id(app.current_event.raw_event)
    outcome = cancel(member_id, check_order_no(order_no), gateway.connect)
    count("Cancel", type(outcome).__name__)
    return answers.to_cancel(outcome)


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
