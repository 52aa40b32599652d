"""Hypothesis profiles, and a real MySQL for whoever asks for `database`."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support.database import Database

hypothesis.settings.register_profile("fast", deadline=None, max_examples=60)
hypothesis.settings.register_profile("long", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="session")
def schema_of_this_worker() -> Iterator[Database]:
    """A schema of this process's own, made from infra/schema.sql, on the tests' own server."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    database = Database.create(f"lockstep_test_{worker}")
    yield database
    database.drop()


@pytest.fixture
def database(
    schema_of_this_worker: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """Empty tables, and the product's settings pointed at them."""
    schema_of_this_worker.empty()
    with schema_of_this_worker.in_use(monkeypatch):
        yield schema_of_this_worker
