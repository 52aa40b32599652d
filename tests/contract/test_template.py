"""What template.yaml must keep true, whatever is added to it."""

import re

import pytest
import yaml

from infra.local.paths import ROOT


class Template(yaml.SafeLoader):
    """Reads !Ref X and !GetAtt X.Arn as "X" and "X.Arn": enough to follow who names whom."""


def untagged(loader, _suffix, node):
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    return loader.construct_sequence(node, deep=True)


Template.add_multi_constructor("!", untagged)

TEMPLATE = yaml.load((ROOT / "template.yaml").read_text(), Template)  # noqa: S506 (a SafeLoader)
RESOURCES = TEMPLATE["Resources"]


def of_type(kind):
    return {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == kind}


FUNCTIONS = of_type("AWS::Serverless::Function")
QUEUES = of_type("AWS::SQS::Queue")
COMMAND_QUEUES = {name: queue for name, queue in QUEUES.items() if "RedrivePolicy" in queue}
EVENTS = [
    (name, event, declared)
    for name, function in FUNCTIONS.items()
    for event, declared in function.get("Events", {}).items()
]


# Who may ask Alipay for something, and so may read the app's own key.
CALLERS = {"CancelOrder", "RefundPayment", "StartPayment", "SweepExpired"}


def default(parameter):
    return TEMPLATE["Parameters"][parameter]["Default"]


def test_a_function_is_named_after_its_file():
    for name, function in FUNCTIONS.items():
        file = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        assert function["Handler"] == f"{file}.handler"


def test_the_notice_is_the_only_open_route():
    routes = [each["Properties"] for _, _, each in EVENTS if each["Type"] == "HttpApi"]
    opened = [route["Path"] for route in routes if route.get("Auth") == {"Authorizer": "NONE"}]
    assert opened == ["/alipay/notify"]
    assert RESOURCES["HttpApi"]["Properties"]["Auth"]["DefaultAuthorizer"] == "MemberToken"


def test_every_route_for_operators_asks_for_their_scope_and_no_other_does():
    for _, _, event in EVENTS:
        if event["Type"] == "HttpApi":
            route = event["Properties"]
            for_operators = {"Authorizer": "MemberToken", "AuthorizationScopes": ["lockstep/ops"]}
            assert (route.get("Auth") == for_operators) == route["Path"].startswith("/ops/")


def test_every_command_queue_has_a_fifo_dead_letter_queue_of_its_own():
    targets = [
        queue["RedrivePolicy"]["deadLetterTargetArn"].removesuffix(".Arn")
        for queue in COMMAND_QUEUES.values()
    ]
    assert len(set(targets)) == len(COMMAND_QUEUES)
    assert all(QUEUES[target]["FifoQueue"] for target in targets)


def test_queues_of_two_stacks_do_not_share_a_name():
    assert all(
        queue["QueueName"].startswith("${AWS::StackName}-")
        and queue["QueueName"].endswith(".fifo") == ("FifoQueue" in queue)
        for queue in QUEUES.values()
    )


def test_a_message_stays_hidden_for_six_times_as_long_as_a_worker_may_take():
    assert default("VisibilityTimeout") >= 6 * default("FunctionTimeout")
    assert {queue["VisibilityTimeout"] for queue in COMMAND_QUEUES.values()} == {
        "VisibilityTimeout"
    }


@pytest.mark.parametrize(
    ("function", "event", "declared"), [each for each in EVENTS if each[2]["Type"] == "SQS"]
)
def test_a_worker_reports_partial_failures_and_hides_no_message(function, event, declared):
    properties = declared["Properties"]
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "ScalingConfig" in properties
    # A message that no filter matches is deleted.
    assert "FilterCriteria" not in properties
    # SAM makes the mapping's logical id of the two names; it must not hit another resource's.
    assert f"{function}{event}" not in RESOURCES


def test_the_key_of_alipay_is_where_it_is_asked_or_tells_and_nowhere_else():
    holders = {
        name
        for name, function in FUNCTIONS.items()
        if "ALIPAY_PUBLIC_KEY" in function.get("Environment", {}).get("Variables", {})
    }
    carriers = {
        name for name, function in FUNCTIONS.items() if "CryptoLayer" in function.get("Layers", [])
    }
    assert holders == carriers == {"AlipayNotify", *CALLERS}


def test_whoever_asks_alipay_has_all_that_it_takes():
    callers = {
        name: {variable for variable in variables if variable.startswith("ALIPAY_")}
        for name, function in FUNCTIONS.items()
        if "ALIPAY_SECRET_ARN"
        in (variables := function.get("Environment", {}).get("Variables", {}))
    }
    assert callers.keys() == CALLERS
    for told in callers.values():
        assert told == {
            *("ALIPAY_APP_ID", "ALIPAY_PUBLIC_KEY", "ALIPAY_SECRET_ARN"),
            *("ALIPAY_GATEWAY_URL", "ALIPAY_NOTIFY_URL", "ALIPAY_RETURN_URL"),
        }
