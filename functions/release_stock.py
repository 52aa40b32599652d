"""release.fifo: the holds of closed orders are given back."""

from collections.abc import Callable, Sequence
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.inventory.model import Refused, Released
from lockstep.inventory.release import release_all
from lockstep.messaging.consumer import Answer, BatchAnswer, consume_together
from lockstep.messaging.contracts import ReleaseStock
from lockstep.observability import observed


def decide(commands: Sequence[ReleaseStock], has_time: Callable[[], bool]) -> list[Answer]:
    return [_answer(outcome) for outcome in release_all(commands, has_time)]


def _answer(outcome: Released | Refused | Exception) -> Answer:
    if isinstance(outcome, Refused):
        return outcome.code
    return outcome if isinstance(outcome, Exception) else None


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume_together(event, context, ReleaseStock, decide)
