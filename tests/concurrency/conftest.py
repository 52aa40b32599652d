"""A second schema, whose keys and checks a test may take away."""

import os
from collections.abc import Iterator

import pytest

from tests.support.database import Database


@pytest.fixture(scope="session")
def scratch_schema_of_this_worker() -> Iterator[Database]:
    """Kept apart, so that no other test ever meets a schema without its guards."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    database = Database.create(f"lockstep_scratch_{worker}")
    yield database
    database.drop()


@pytest.fixture
def scratch(
    scratch_schema_of_this_worker: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """Empty tables that may be altered; the product's settings point at them."""
    scratch_schema_of_this_worker.empty()
    with scratch_schema_of_this_worker.in_use(monkeypatch):
        yield scratch_schema_of_this_worker
