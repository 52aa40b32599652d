"""A second stack beside the first one in the same account: nothing of theirs meets."""

from dataclasses import replace

import pytest

from infra.local import cloud, deploy, mysql, seed, stories
from infra.local.paths import TEST_HOME
from infra.local.shop import Shop
from infra.local.steps import SetupError

TWIN, DATABASE, PASSWORD = "lockstep-twin", "lockstep_twin", "only-for-this-test"


def client(deployed, service):
    return cloud.session().client(service, endpoint_url=deployed["aws_endpoint_url"])


@pytest.fixture(scope="module")
def parameters(deployed):
    """Those of the first stack, with a database and shorter queues of its own."""
    [stack] = client(deployed, "cloudformation").describe_stacks(StackName=deployed["stack_name"])[
        "Stacks"
    ]
    login = {"username": DATABASE, "password": PASSWORD}
    endpoint = deployed["aws_endpoint_url"]
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]} | {
        "DatabaseName": DATABASE,
        "DatabaseSecretArn": cloud.keep_secret(endpoint, "lockstep/twin", login),
        "FunctionTimeout": "10",
        "VisibilityTimeout": "60",
        "ReceiveCountMax": "2",
        "QueueRetention": "300",
        "LatePaymentPolicy": "REINSTATE",
    }


@pytest.fixture(scope="module")
def twin(deployed, parameters):
    """Its database is empty: what is in it afterwards, the deployment has put there."""
    server = mysql.ensure(TEST_HOME, durable=False)
    with mysql.connect(server) as connection:
        connection.cursor().execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        seed.create_database(connection, DATABASE, PASSWORD)
    found = deploy.under(TEST_HOME, deployed["aws_endpoint_url"], TWIN, parameters)
    account = replace(server, user=DATABASE, password=PASSWORD)
    at = {"host": account.host, "port": account.port, "user": DATABASE, "password": PASSWORD}
    stack = deployed | {
        "stack_name": TWIN,
        "api_url": found.api_url,
        "functions": found.functions,
        "queues": found.queues,
        "mysql": at | {"database": DATABASE},
    }
    yield stack
    client(deployed, "cloudformation").delete_stack(StackName=TWIN)


def test_no_queue_function_or_schedule_is_shared(deployed, twin):
    assert twin["queues"].keys() == deployed["queues"].keys()
    for kind in ("queues", "functions"):
        assert not set(twin[kind].values()) & set(deployed[kind].values())
    names = [each["Name"] for each in client(deployed, "scheduler").list_schedules()["Schedules"]]
    assert len(names) == len(set(names)) == 4


def test_each_takes_orders_of_its_own(shop, twin):
    with Shop(twin, home=TEST_HOME) as other:
        for one, elsewhere in ((shop, other), (other, shop)):
            sku_id = one.new_sku("Twin paper", "1.00", 3)
            order = stories.ordered(one, 42, sku_id)
            one.notify(one.notice(order["order_no"], "1.00"))
            one.wait_for_hold(order["order_no"], "CONFIRMED")
            found = "SELECT 1 FROM oms_order WHERE order_no = %s"
            assert elsewhere.rows(found, (order["order_no"],)) == []


def test_a_stack_that_reinstates_sells_to_who_paid_in_time(twin):
    """The order expires before the notice comes, and its stock is still there."""
    with Shop(twin, home=TEST_HOME) as shop:
        sku_id = shop.new_sku("Late paper", "1.00", 3)
        order = stories.ordered(shop, 42, sku_id)
        notice = shop.notice(order["order_no"], "1.00")
        shop.rows(
            "UPDATE oms_order SET expires_at = NOW(3) WHERE order_no = %s", (order["order_no"],)
        )
        shop.invoke("sweep_expired")
        assert shop.status(order["order_no"]) == "CLOSED"
        shop.wait_for_hold(order["order_no"], "RELEASED")
        assert shop.notify(notice) == "success"
        shop.wait_for_status(order["order_no"], "PAID")
        shop.wait_for_hold(order["order_no"], "CONFIRMED")
        assert shop.payment_states(order["order_no"]) == ["APPLIED"]
        assert shop.stock(sku_id) == (2, 0)


def test_queues_are_as_the_parameters_say(deployed, twin):
    attributes = client(deployed, "sqs").get_queue_attributes(
        QueueUrl=twin["queues"]["confirm"], AttributeNames=["All"]
    )["Attributes"]
    assert attributes["VisibilityTimeout"] == "60"
    assert attributes["MessageRetentionPeriod"] == "300"
    assert '"2"' in attributes["RedrivePolicy"].replace("2}", '"2"}')


def test_a_message_that_would_come_back_too_early_is_refused(deployed, parameters):
    too_short = parameters | {"FunctionTimeout": "25", "VisibilityTimeout": "120"}
    with pytest.raises(SetupError, match="150 or more"):
        deploy.under(TEST_HOME, deployed["aws_endpoint_url"], "lockstep-hasty", too_short)


def live(deployed, twin):
    """What events reach of each function that they can reach."""
    lambdas = client(deployed, "lambda")
    return {
        name: lambdas.get_function_configuration(FunctionName=function, Qualifier="live")
        for name, function in twin["functions"].items()
        if name != "migrate"
    }


def test_a_changed_parameter_reaches_what_events_reach_and_so_do_snapshots(
    deployed, twin, parameters
):
    before = live(deployed, twin)
    assert {each["SnapStart"]["ApplyOn"] for each in before.values()} == {"None"}
    changed = parameters | {"OrderTtlSeconds": "77", "SnapStart": "on"}
    deploy.under(TEST_HOME, deployed["aws_endpoint_url"], TWIN, changed)
    after = live(deployed, twin)
    for name, function in after.items():
        assert int(function["Version"]) > int(before[name]["Version"])
        assert function["Environment"]["Variables"]["ORDER_TTL_SECONDS"] == "77"
        assert function["SnapStart"] == {
            "ApplyOn": "PublishedVersions",
            "OptimizationStatus": "On",
        }


def test_a_deployment_that_changes_nothing_publishes_nothing(deployed, twin, parameters):
    before = live(deployed, twin)
    changed = parameters | {"OrderTtlSeconds": "77", "SnapStart": "on"}
    deploy.under(TEST_HOME, deployed["aws_endpoint_url"], TWIN, changed)
    after = live(deployed, twin)
    assert [each["Version"] for each in after.values()] == [
        each["Version"] for each in before.values()
    ]
