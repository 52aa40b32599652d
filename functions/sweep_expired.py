"""Every minute: close expired orders, settle forgotten holds, stage lost commands again, and ask
Alipay what nobody told."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.alipay import gateway
from lockstep.observability import observed, time_left
from lockstep.upkeep.sweep import sweep


@observed
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return asdict(sweep(time_left(context), gateway.connect))
