"""reserve.fifo: an order that waits for stock gets its hold, or is told that none is left.

It waits for its turn at a hot SKU, or has expired and its money came late.
"""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.inventory.model import Refusal, Refused
from lockstep.messaging.consumer import consume
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import count, observed
from lockstep.orders.hold import hold
from lockstep.orders.model import NotWaiting
from lockstep.payments.reinstate import reinstate


def handle(command: ReserveStock) -> Refusal | None:
    outcome = hold(command.order_id, command.reservation_id)
    count("Hold", type(outcome).__name__)
    if isinstance(outcome, NotWaiting):
        reinstate(command.order_id)
    return outcome.code if isinstance(outcome, Refused) else None


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    return consume(event, context, ReserveStock, handle)
