"""What template.yaml must be once SAM has processed it, in an AWS region and in one of China."""

import json
import re
import tomllib

import pytest

from infra.local.paths import ROOT
from infra.local.transform import processed
from lockstep.messaging.consumer import MESSAGE_SECONDS
from tests.support import template as template_support

REGIONS = ["ap-southeast-1", "cn-north-1"]
# Lambda checks that a role may manage interfaces anywhere; no other permission is for everything.
FOR_EVERYTHING = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}
WORKERS = {"ReserveStock", "ConfirmStock", "ReleaseStock", "RefundPayment"}
SCHEDULED = {"RelayOutbox", "SweepExpired"}
PART_OF_A_FUNCTION = {"AWS::Lambda::EventSourceMapping", "AWS::Lambda::Alias"}
# What SAM adds to a function's logical id.
ALIAS = "Aliaslive"


@pytest.fixture(params=REGIONS)
def template(request):
    return processed(region=request.param)


def of_type(template, kind):
    return {
        name: each["Properties"]
        for name, each in template["Resources"].items()
        if each["Type"] == f"AWS::{kind}"
    }


def statements(template):
    """Each statement of each role and policy; those under a condition as well."""
    for kind in ("IAM::Role", "IAM::ManagedPolicy"):
        for name, properties in of_type(template, kind).items():
            yield from ((name, each) for each in _statements(properties))


def _statements(value):
    match value:
        case {"Effect": _, "Action": _, "Resource": _}:
            yield value
        case dict():
            for inner in value.values():
                yield from _statements(inner)
        case list():
            for inner in value:
                yield from _statements(inner)


def listed(value):
    return value if isinstance(value, list) else [value]


def target(reference):
    """The logical id that a Ref or a GetAtt leads to; a function's, where it is its alias."""
    match reference:
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return name.removesuffix(ALIAS)
    raise AssertionError(reference)


def test_only_network_interfaces_may_be_managed_everywhere(template):
    for name, statement in statements(template):
        if statement["Effect"] == "Deny":
            continue
        for resource in listed(statement["Resource"]):
            if "*" in json.dumps(resource):
                assert name == "EveryFunction"
                assert set(listed(statement["Action"])) == FOR_EVERYTHING


def test_what_lambda_may_do_to_network_interfaces_our_code_may_not(template):
    [(_, denied)] = [named for named in statements(template) if named[1]["Effect"] == "Deny"]
    changes = {action for action in FOR_EVERYTHING if not action.startswith("ec2:Describe")}
    assert set(denied["Action"]) == changes
    assert "lambda:SourceFunctionArn" in denied["Condition"]["ArnLike"]


def test_no_permission_is_for_a_whole_service(template):
    for _, statement in statements(template):
        assert all("*" not in action for action in listed(statement["Action"]))


def test_each_function_has_a_role_of_its_own_and_no_policy_of_amazons(template):
    roles = {name: target(f["Role"]) for name, f in of_type(template, "Lambda::Function").items()}
    assert roles == {name: f"{name}Role" for name in roles}
    for name in roles.values():
        attached = of_type(template, "IAM::Role")[name]["ManagedPolicyArns"]
        assert attached == [{"Ref": "EveryFunction"}]


def test_a_worker_takes_from_its_own_queue_and_from_no_other(template):
    sources = {
        target(each["FunctionName"]): target(each["EventSourceArn"])
        for each in of_type(template, "Lambda::EventSourceMapping").values()
    }
    assert sources.keys() == WORKERS
    taking = {
        name: [target(queue) for queue in listed(statement["Resource"])]
        for name, statement in statements(template)
        if "sqs:ReceiveMessage" in listed(statement["Action"])
    }
    assert taking == {f"{worker}Role": [queue] for worker, queue in sources.items()}


def test_a_function_writes_to_the_queues_it_is_told_of_and_to_no_other(template):
    allowed: dict[str, set[str]] = {}
    for name, statement in statements(template):
        # The worker of holds changes when a message of its own queue comes again.
        if {"sqs:SendMessage", "sqs:ChangeMessageVisibility"} & set(listed(statement["Action"])):
            queues = {target(queue) for queue in listed(statement["Resource"])}
            allowed.setdefault(name, set()).update(queues)
    for name, function in of_type(template, "Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        told = {target(v) for k, v in variables.items() if k.endswith("_QUEUE_URL")}
        assert allowed.get(f"{name}Role", set()) == told


def test_a_secret_is_read_by_whoever_is_told_of_it_and_by_no_other(template):
    reading = {
        (name, statement["Resource"]["Ref"])
        for name, statement in statements(template)
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
    }
    told = {
        (f"{name}Role", variables["ALIPAY_SECRET_ARN"]["Ref"])
        for name, function in of_type(template, "Lambda::Function").items()
        if "ALIPAY_SECRET_ARN" in (variables := function["Environment"]["Variables"])
    }
    assert len(told) > 1
    assert reading == told | {
        ("EveryFunction", "DatabaseSecretArn"),
        ("MigrateRole", "DatabaseOwnerSecretArn"),
    }


def test_every_worker_is_held_back_by_its_event_source(template):
    for mapping in of_type(template, "Lambda::EventSourceMapping").values():
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": {"Ref": "WorkerConcurrencyMax"}}
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert "FilterCriteria" not in mapping


def test_every_http_function_can_be_held_back(template):
    capped = {
        name: function["ReservedConcurrentExecutions"]
        for name, function in of_type(template, "Lambda::Function").items()
        if "ReservedConcurrentExecutions" in function
    }
    cap = {"Fn::If": ["CapsHttp", {"Ref": "HttpConcurrencyMax"}, {"Ref": "AWS::NoValue"}]}
    permitted = of_type(template, "Lambda::Permission").values()
    http = {target(each["FunctionName"]) for each in permitted}
    assert capped == dict.fromkeys(http, cap)
    assert len(http) == 6


def test_a_schedule_is_retried_within_its_minute_and_then_dead_lettered(template):
    schedules = of_type(template, "Scheduler::Schedule")
    assert {target(each["Target"]["Arn"]) for each in schedules.values()} == SCHEDULED
    for each in schedules.values():
        # The name would be the same in every stack of the account.
        assert "Name" not in each
        assert each["Target"]["RetryPolicy"]["MaximumRetryAttempts"] > 0
        assert each["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] == 60
        assert target(each["Target"]["DeadLetterConfig"]["Arn"]) == "ScheduleDeadLetterQueue"
    # Scheduler sends to standard queues only.
    assert "FifoQueue" not in of_type(template, "SQS::Queue")["ScheduleDeadLetterQueue"]


def test_a_run_that_failed_is_not_repeated_beside_the_next_one(template):
    configured = {
        target(each["FunctionName"]): each["MaximumRetryAttempts"]
        for each in of_type(template, "Lambda::EventInvokeConfig").values()
    }
    assert configured == dict.fromkeys({*SCHEDULED, "Migrate"}, 0)


def test_logs_go_to_one_group_and_end(template):
    [(name, group)] = of_type(template, "Logs::LogGroup").items()
    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    for function in of_type(template, "Lambda::Function").values():
        assert function["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": {"Ref": name}}


def test_queues_are_encrypted_kept_and_redriven_by_parameter(template):
    queues = of_type(template, "SQS::Queue")
    for name, queue in queues.items():
        assert queue["SqsManagedSseEnabled"] is True
        dead = "DeadLetter" in name
        kept = "DeadLetterRetention" if dead else "QueueRetention"
        assert queue["MessageRetentionPeriod"] == {"Ref": kept}
        if not dead:
            assert queue["VisibilityTimeout"] == {"Ref": "VisibilityTimeout"}
            assert queue["RedrivePolicy"]["maxReceiveCount"] == {"Ref": "ReceiveCountMax"}
            assert queues[target(queue["RedrivePolicy"]["deadLetterTargetArn"])]["FifoQueue"]


def test_a_name_is_the_stacks_or_is_left_to_aws(template):
    named = re.compile(r"(Name|QueueName|FunctionName|LogGroupName|RoleName|ManagedPolicyName)")
    for resource in template["Resources"].values():
        for key, value in resource["Properties"].items():
            # An alias is named within its function.
            if named.fullmatch(key) and resource["Type"] not in PART_OF_A_FUNCTION:
                assert isinstance(value, dict)
                assert "Ref" in value or "${AWS::StackName}" in value["Fn::Sub"]


def test_the_rules_refuse_every_visibility_that_is_too_short(template):
    declared = template["Parameters"]
    refused = {}
    for rule in template["Rules"].values():
        match rule.get("RuleCondition"):
            case {"Fn::Equals": [{"Ref": "FunctionTimeout"}, timeout]}:
                refused[int(timeout)] = set(re.findall(r'"(\d+)"', json.dumps(rule["Assertions"])))
    for timeout in declared["FunctionTimeout"]["AllowedValues"]:
        short = {
            str(value)
            for value in declared["VisibilityTimeout"]["AllowedValues"]
            if value < 6 * timeout
        }
        assert refused.get(timeout, set()) == short


def test_the_shortest_time_out_leaves_a_worker_time_for_a_message(template):
    assert min(template["Parameters"]["FunctionTimeout"]["AllowedValues"]) > MESSAGE_SECONDS


def test_functions_run_in_the_vpc_only_where_one_is_given(template):
    inside = {"SubnetIds": {"Ref": "SubnetIds"}, "SecurityGroupIds": {"Ref": "SecurityGroupIds"}}
    for function in of_type(template, "Lambda::Function").values():
        assert function["VpcConfig"] == {"Fn::If": ["InVpc", inside, {"Ref": "AWS::NoValue"}]}


def test_a_proxys_lock_wait_is_left_alone(template):
    for function in of_type(template, "Lambda::Function").values():
        waits = function["Environment"]["Variables"]["DATABASE_LOCK_WAIT_SECONDS"]
        assert waits["Fn::If"][:2] == ["ThroughProxy", "0"]


def test_the_database_is_brought_up_to_date_before_any_other_function_changes(template):
    migrated = template["Resources"]["Migrated"]
    assert target(migrated["Properties"]["ServiceToken"]) == "Migrate"
    assert target(migrated["Properties"]["Layer"]).startswith("MigrationsLayer")
    # The answer must come before CloudFormation gives up, and the driver before the function does.
    function = template["Resources"]["Migrate"]["Properties"]
    patience = int(function["Environment"]["Variables"]["DATABASE_TIMEOUT_SECONDS"])
    assert patience < function["Timeout"] < migrated["Properties"]["ServiceTimeout"]
    for name, each in of_type(template, "Lambda::Function").items():
        if name != "Migrate":
            assert each["Environment"]["Variables"]["RELEASE"] == RELEASE


RELEASE = {"Fn::GetAtt": ["Migrated", "Release"]}


def test_every_function_that_an_event_reaches_is_a_published_version_of_this_release(template):
    functions = of_type(template, "Lambda::Function").keys() - {"Migrate"}
    versions = of_type(template, "Lambda::Version")
    aliases = of_type(template, "Lambda::Alias")
    assert aliases.keys() == {f"{name}{ALIAS}" for name in functions}
    for name in functions:
        version = target(aliases[f"{name}{ALIAS}"]["FunctionVersion"])
        # A new description replaces the version, and the variable is a change that it needs.
        assert versions[version] == {"FunctionName": {"Ref": name}, "Description": RELEASE}
    assert len(versions) == len(functions)


def test_every_event_goes_to_an_alias(template):
    events = [
        *(
            each["FunctionName"]
            for each in of_type(template, "Lambda::EventSourceMapping").values()
        ),
        *(each["FunctionName"] for each in of_type(template, "Lambda::Permission").values()),
        *(each["Target"]["Arn"] for each in of_type(template, "Scheduler::Schedule").values()),
    ]
    assert events
    assert all(each["Ref"].endswith(ALIAS) for each in events)
    api = json.dumps(of_type(template, "ApiGatewayV2::Api"))
    called = re.findall(r"functions/\$\{([\w.]+)\}/invocations", api)
    assert called
    assert all(each.endswith(ALIAS) for each in called)


def references(value):
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::FindInMap": [_, *keys]}:
            yield from references(keys)
        case {"Fn::If": [condition, *branches]}:
            yield condition
            yield from references(branches)
        case dict():
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def test_every_layer_and_parameter_that_a_function_has_makes_another_release(template):
    released = set(references(template["Resources"]["Migrated"]["Properties"]))
    behind = {
        name: set(references(condition)) for name, condition in template["Conditions"].items()
    }
    # How many copies may run is the function's, and not a version's.
    outside = {"HttpConcurrencyMax", "CapsHttp"}
    changing = {
        *template["Parameters"],
        *of_type(template, "Lambda::LayerVersion"),
    }
    for name, each in of_type(template, "Lambda::Function").items():
        named = set(references(each)) - outside
        named = named.union(*(behind.get(condition, set()) for condition in named))
        assert named & changing <= released, name


def test_snapshots_are_taken_where_there_are_any_and_asked_for(template):
    [mapping] = template["Mappings"].values()
    assert template["Parameters"]["SnapStart"]["Default"] == "off"
    asked = set(template["Parameters"]["SnapStart"]["AllowedValues"])
    for partition, answers in mapping.items():
        assert answers.keys() == asked
        assert answers["off"] == "None"
        assert (answers["on"] == "PublishedVersions") == (partition == "aws")
    assert {"aws", "aws-cn", "aws-us-gov"} <= mapping.keys()
    wish = {"Fn::FindInMap": ["SnapStart", {"Ref": "AWS::Partition"}, {"Ref": "SnapStart"}]}
    for name, each in of_type(template, "Lambda::Function").items():
        assert each.get("SnapStart") == (None if name == "Migrate" else {"ApplyOn": wish})


@pytest.mark.parametrize("region", REGIONS)
def test_nothing_names_a_partition_or_a_region(region):
    text = json.dumps(processed(region=region))
    assert "arn:aws" not in text
    assert "amazonaws.com/" not in text
    assert not re.search(r"\b(us|ap|eu|cn)-\w+-\d\b", text)


def capped(environment, functions_of):
    """The connections that an environment of samconfig.toml may open at once."""
    given = dict(
        each.split("=", 1) for each in environment["deploy"]["parameters"]["parameter_overrides"]
    )
    http, workers, scheduled = functions_of
    return (
        http * int(given["HttpConcurrencyMax"])
        + workers * int(given["WorkerConcurrencyMax"])
        + 2 * scheduled
        + 1
    )


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_connections_that_are_promised_are_those_of_the_template(template, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    capable = of_type(template, "Lambda::Function").values()
    http = sum("ReservedConcurrentExecutions" in each for each in capable)
    counted = http, len(WORKERS), len(SCHEDULED)
    said = re.search(r"(\d) \S `HttpConcurrencyMax` \+ (\d) \S `WorkerConcurrencyMax` \+ 5", text)
    assert said
    assert said.groups() == (str(http), str(len(WORKERS)))
    environments = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    for environment in ("staging", "prod"):
        assert re.search(rf"{environment}\D*{capped(environments[environment], counted)}\b", text)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_parameter_is_explained(template, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert set(template["Parameters"]) <= set(re.findall(r"`(\w+)`", rows))


@pytest.mark.parametrize("environment", ["local", "staging", "prod"])
def test_samconfig_names_parameters_that_there_are(template, environment):
    environments = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    overrides = environments[environment]["deploy"]["parameters"].get("parameter_overrides", [])
    assert {each.split("=", 1)[0] for each in overrides} <= set(template["Parameters"])


DATABASE = template_support.read("infra/database.yaml")["Resources"]


def test_deleting_or_replacing_the_cluster_keeps_what_is_in_it():
    for name, kept in (("Cluster", "Snapshot"), ("AccountSecret", "Retain")):
        assert DATABASE[name]["DeletionPolicy"] == kept
        assert DATABASE[name]["UpdateReplacePolicy"] == kept
    assert DATABASE["Cluster"]["Properties"]["DeletionProtection"] == "DeletionProtection"


def test_the_cluster_is_set_as_the_code_relies_on():
    assert DATABASE["ClusterParameters"]["Properties"]["Parameters"] == {
        "character_set_server": "utf8mb4",
        "time_zone": "UTC",
        "require_secure_transport": "ON",
    }


def test_the_proxy_sets_what_the_functions_may_not_and_gives_up_in_time():
    pool = DATABASE["ProxyTargets"]["Properties"]["ConnectionPoolConfigurationInfo"]
    assert pool["ConnectionBorrowTimeout"] == 5
    assert pool["InitQuery"] == "SET SESSION innodb_lock_wait_timeout = 3"
    assert DATABASE["Proxy"]["Properties"]["RequireTLS"] is True


def test_what_the_stacks_put_out_are_parameters_of_the_next(template):
    for name in ("network", "database"):
        outputs = template_support.read(f"infra/{name}.yaml")["Outputs"].keys()
        elsewhere = {"DatabaseSecurityGroupId", "AlipaySeesAddress"}
        assert outputs - elsewhere <= template["Parameters"].keys()
