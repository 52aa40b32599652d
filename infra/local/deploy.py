"""Deploy the real template into the local cloud, and say what came of it."""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from types_boto3_cloudformation.client import CloudFormationClient

from infra.local import build, cloud, parameters, routes
from infra.local.paths import LOCAL
from infra.local.processes import locked
from infra.local.steps import SetupError, step

ARTIFACTS = "lockstep-artifacts"


@dataclass(frozen=True)
class Deployed:
    api_url: str
    functions: dict[str, str]
    queues: dict[str, str]


@dataclass(frozen=True)
class Resource:
    name: str
    type: str
    id: str


def ensure(home: Path, endpoint: str, stack: str, given: Mapping[str, str]) -> Deployed:
    """Build and deploy what has changed since the last time: code, template or parameters."""
    values = parameters.complete(given)
    # Locked, because the build is shared: another home must not rebuild it while it is uploaded.
    with locked(LOCAL, "build"):
        wanted = json.dumps({"built": build.ensure(), "parameters": values}, sort_keys=True)
        stamp = cloud.files(home) / "deployed"
        if not stamp.exists() or stamp.read_text() != wanted:
            with step("Deploying template.yaml to it"):
                under(home, endpoint, stack, values)
            stamp.write_text(wanted)
    return _describe(endpoint, stack)


def under(home: Path, endpoint: str, stack: str, values: Mapping[str, str]) -> Deployed:
    """Deploy what is built under this name, whatever else is there; all parameters are given."""
    _deploy(home, endpoint, stack, values)
    _create_routes(endpoint, stack, values)
    return _describe(endpoint, stack)


def _deploy(home: Path, endpoint: str, stack: str, values: Mapping[str, str]) -> None:
    cloud.session().client("s3", endpoint_url=endpoint).create_bucket(Bucket=ARTIFACTS)
    command = [
        *("sam", "deploy", "--template-file", str(build.TEMPLATE), "--stack-name", stack),
        *("--s3-bucket", ARTIFACTS, "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
        *("--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar"),
        "--parameter-overrides",
        *(f'{name}="{value}"' for name, value in values.items()),
    ]
    environment = cloud.client_environment(home, endpoint)
    done = subprocess.run(
        command, check=False, cwd=home, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SetupError(f"sam deploy failed:\n{done.stdout[-4000:]}{done.stderr}")


def _create_routes(endpoint: str, stack: str, values: Mapping[str, str]) -> None:
    session = cloud.session()
    resources = _resources(session.client("cloudformation", endpoint_url=endpoint), stack)
    lambdas = session.client("lambda", endpoint_url=endpoint)
    meanings = {
        **values,
        **{resource.name: resource.id for resource in resources},
        **{
            f"{resource.name}.Arn": lambdas.get_function_configuration(FunctionName=resource.id)[
                "FunctionArn"
            ]
            for resource in _of_type(resources, "AWS::Lambda::Function")
        },
        "AWS::Partition": "aws",
        "AWS::Region": cloud.REGION,
        "AWS::StackName": stack,
    }
    template = _processed_template(session.client("cloudformation", endpoint_url=endpoint), stack)
    for api in _of_type(resources, "AWS::ApiGatewayV2::Api"):
        body = template["Resources"][api.name]["Properties"]["Body"]
        routes.create(session.client("apigatewayv2", endpoint_url=endpoint), api.id, body, meanings)


def _describe(endpoint: str, stack: str) -> Deployed:
    formation = cloud.session().client("cloudformation", endpoint_url=endpoint)
    resources = _resources(formation, stack)
    [api] = _of_type(resources, "AWS::ApiGatewayV2::Api")
    return Deployed(
        # $default is the stage; escaped, so that no shell takes it for a variable.
        api_url=f"{endpoint}/_aws/execute-api/{api.id}/%24default",
        functions={
            snake_case(function.name): function.id
            for function in _of_type(resources, "AWS::Lambda::Function")
        },
        queues={
            queue_key(queue.name): queue.id for queue in _of_type(resources, "AWS::SQS::Queue")
        },
    )


def snake_case(name: str) -> str:
    """A function's logical id is its file's name in CamelCase."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def queue_key(name: str) -> str:
    """ConfirmQueue is `confirm`, ConfirmDeadLetterQueue is `confirm_dlq`."""
    return snake_case(name).removesuffix("_queue").replace("_dead_letter", "_dlq")


def _resources(formation: CloudFormationClient, stack: str) -> list[Resource]:
    listed = formation.describe_stack_resources(StackName=stack)["StackResources"]
    return [
        Resource(found["LogicalResourceId"], found["ResourceType"], found["PhysicalResourceId"])
        for found in listed
    ]


def _of_type(resources: list[Resource], kind: str) -> list[Resource]:
    return sorted(
        (resource for resource in resources if resource.type == kind), key=lambda each: each.name
    )


def _processed_template(formation: CloudFormationClient, stack: str) -> routes.Json:
    body = formation.get_template(StackName=stack, TemplateStage="Processed")["TemplateBody"]
    return json.loads(body) if isinstance(body, str) else body
