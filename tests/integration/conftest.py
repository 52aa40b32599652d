"""Queues for whoever asks for `sqs`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import queues
from tests.support.database import Database

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


@pytest.fixture
def sqs(database: Database, monkeypatch: pytest.MonkeyPatch) -> "Iterator[SQSClient]":
    """FIFO queues that exist only in this test."""
    with queues.of_an_account(monkeypatch) as client:
        yield client
