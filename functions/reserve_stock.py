"""reserve.fifo: orders that wait for stock get their holds, or are told that none is left.

Each waits for its turn at a hot SKU, or has expired and its money came late.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.messaging.consumer import BatchAnswer, consume_together
from lockstep.messaging.contracts import ReserveStock
from lockstep.observability import observed
from lockstep.payments.doorbell import answer


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume_together(event, context, ReserveStock, answer)
