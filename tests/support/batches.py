"""Batches as a FIFO event source hands them to a consumer, and what it reports of them."""

from typing import Any

from infra.local.lambda_events import a_record, batch, record_of

__all__ = ["a_record", "batch", "failed_ids", "record_of"]


def failed_ids(answer: Any) -> list[str]:
    """The messages that a consumer reports to be delivered again."""
    assert set(answer) == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
