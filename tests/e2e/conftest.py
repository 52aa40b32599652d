"""The tests' own stack: the real template, deployed beside the one that `make up` may have up."""

import os

import pytest

from infra.local import browser, cloud, stack
from infra.local.paths import TEST_HOME
from infra.local.shop import Shop
from tests.support import chromium

# As short as the template lets them be.
SHORT = {"FunctionTimeout": "10", "VisibilityTimeout": "60", "ReceiveCountMax": "3"}


@pytest.fixture(scope="session")
def deployed():
    """What stack.json says of it."""
    yield stack.up(TEST_HOME, SHORT, durable=False)
    stack.down(TEST_HOME)


@pytest.fixture
def sqs(deployed):
    return cloud.session().client("sqs", endpoint_url=deployed["aws_endpoint_url"])


@pytest.fixture(scope="session")
def shop(deployed):
    with Shop(deployed, home=TEST_HOME) as shop:
        yield shop


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    found = browser.ensure()
    if isinstance(found, str):
        if os.environ.get("CI"):
            pytest.fail(f"no browser here: {found}")
        pytest.skip(f"no browser here: {found}")
    with chromium.started(found, tmp_path_factory.mktemp("profile")) as driver:
        yield driver
