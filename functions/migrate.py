"""At each deployment, before the other functions change: bring the database up to date.

CloudFormation calls it and waits for its answer; called by hand, with `{}`, it answers its caller.
"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from infra import deployment
from lockstep.observability import observed


@observed
def handler(event: dict[str, Any], _: LambdaContext) -> dict[str, Any]:
    if "ResponseURL" in event:
        return deployment.answered(event, deployment.bring_up_to_date)
    return deployment.bring_up_to_date()
