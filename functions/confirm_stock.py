"""confirm.fifo: a paid order's hold becomes a sale."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Refusal, Refused
from lockstep.messaging.consumer import BatchAnswer, DeliverAgain, consume
from lockstep.messaging.contracts import ConfirmStock
from lockstep.observability import count, observed
from lockstep.orders.query import is_paid


def handle(command: ConfirmStock) -> Refusal | None:
    outcome = confirm(command.reservation_id, command.order_id)
    count("Stock", type(outcome).__name__)
    if not isinstance(outcome, Refused):
        return None
    # Too early, perhaps: a paid order must get its stock, so it is tried again, never skipped.
    if outcome.code is Refusal.RESERVATION_NOT_RESERVED and is_paid(command.order_id):
        raise DeliverAgain(f"{command.reservation_id} is not reserved though its order is paid")
    return outcome.code


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume(event, context, ConfirmStock, handle)
