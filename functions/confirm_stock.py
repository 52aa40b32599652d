"""confirm.fifo: the holds of paid orders become sales."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.inventory.confirm import confirm_all
from lockstep.inventory.model import Confirmed, Refusal, Refused
from lockstep.messaging.consumer import Answer, BatchAnswer, DeliverAgain, consume_together
from lockstep.messaging.contracts import ConfirmStock
from lockstep.observability import observed
from lockstep.orders.query import paid_of

_NOT_RESERVED: Final = Refused(Refusal.RESERVATION_NOT_RESERVED)


def decide(commands: Sequence[ConfirmStock], has_time: Callable[[], bool]) -> list[Answer]:
    outcomes = confirm_all(commands, has_time)
    decided = list(zip(commands, outcomes, strict=True))
    paid = paid_of({command.order_id for command, came_to in decided if came_to == _NOT_RESERVED})
    return [_answer(command, came_to, paid) for command, came_to in decided]


def _answer(
    command: ConfirmStock, outcome: Confirmed | Refused | Exception, paid: set[int]
) -> Answer:
    # Too early, perhaps: a paid order must get its stock, so it is tried again, never skipped.
    if outcome == _NOT_RESERVED and command.order_id in paid:
        return DeliverAgain(f"{command.reservation_id} is not reserved though its order is paid")
    if isinstance(outcome, Refused):
        return outcome.code
    return outcome if isinstance(outcome, Exception) else None


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume_together(event, context, ConfirmStock, decide)
