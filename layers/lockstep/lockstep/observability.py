"""One logger and one metrics namespace. No payloads, no personal data: ids and outcomes only."""

from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger: Final = Logger(service="lockstep")
metrics: Final = Metrics(namespace="Lockstep", service="lockstep")


def count(outcome: str) -> None:
    """Count one outcome, by name. Ids never become dimensions: each distinct one would be
    billed."""
    metrics.add_metric(name=outcome, unit=MetricUnit.Count, value=1)


def correlation_id() -> str:
    """The id that ties a request to every message that follows from it."""
    return logger.get_correlation_id() or ""
