"""The tests' own stack: the real template, deployed beside the one that `make up` may have up."""

import pytest

from infra.local import stack
from infra.local.paths import TEST_HOME
from infra.local.shop import Shop


@pytest.fixture(scope="session")
def deployed():
    """What stack.json says of it."""
    yield stack.up(TEST_HOME, {}, durable=False)
    stack.down(TEST_HOME)


@pytest.fixture(scope="session")
def shop(deployed):
    with Shop(TEST_HOME, deployed) as shop:
        yield shop
