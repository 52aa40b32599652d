"""At each deployment, before the other functions change: bring the database up to date.

CloudFormation calls it and waits for its answer. Called by hand it answers its caller: with `{}` it
applies what is pending; with `{"catalogue": "<CSV>", "actor": "operator:alice"}`, and perhaps a
`load_id`, it loads a catalogue, since it stands where the database can be reached.
"""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from infra import deployment
from lockstep.inventory.catalogue import load_catalogue
from lockstep.observability import observed


@observed
def handler(event: dict[str, Any], _: LambdaContext) -> dict[str, Any]:
    if "ResponseURL" in event:
        return deployment.answered(event, deployment.bring_up_to_date)
    if "catalogue" in event:
        return asdict(load_catalogue(event["catalogue"], event["actor"], event.get("load_id")))
    return deployment.bring_up_to_date()
