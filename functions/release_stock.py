"""release.fifo: a closed order's hold is given back."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.inventory.model import Refusal, Refused
from lockstep.inventory.release import release
from lockstep.messaging.consumer import BatchAnswer, consume
from lockstep.messaging.contracts import ReleaseStock
from lockstep.observability import count, observed


def handle(command: ReleaseStock) -> Refusal | None:
    outcome = release(command.reservation_id, command.order_id)
    count("Stock", type(outcome).__name__)
    return outcome.code if isinstance(outcome, Refused) else None


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume(event, context, ReleaseStock, handle)
