"""Every minute: send the messages that no handler got rid of right after its commit."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.messaging.relay import relay
from lockstep.observability import observed, time_left


@observed
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    relayed = relay(time_left(context))
    return {"sent": relayed.sent, "failed": relayed.failed, "left": relayed.left}
