"""One logger and one metrics namespace. No payloads, no personal data: ids and outcomes only."""

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.errors import InvariantBroken

logger: Final = Logger(service="lockstep")
metrics: Final = Metrics(namespace="Lockstep", service="lockstep")

type Event = dict[str, Any]

# Metrics are one dict a process, and writing it out clears it: two threads at once lose counts, or
# step past the one length at which it is written and let it grow for ever.
_counting: Final = threading.Lock()


def count(*words: str, times: int = 1) -> None:
    """Count an outcome under the name that its words make: ("Notice", "REFUND_PENDING") is
    NoticeRefundPending. Ids never become dimensions: each would be a metric of its own."""
    name = "".join(_capitals(word) for word in words)
    with _counting:
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=times)


def _capitals(word: str) -> str:
    """OUT_OF_STOCK as OutOfStock; a name that is no code stays as it is."""
    return word.title().replace("_", "") if word.isupper() else word


def count_fault(outcome: str, fault: Exception) -> None:
    """Count a fault that goes no further; a broken invariant by its own name as well."""
    count(outcome)
    if isinstance(fault, InvariantBroken):
        count("InvariantBroken")


def correlation_id() -> str:
    """The id that ties a request to every message that follows from it."""
    return logger.get_correlation_id() or ""


def time_left(context: LambdaContext, reserve_seconds: int = 15) -> Callable[[], bool]:
    """Whether a scheduled function may begin another piece of work."""
    return lambda: context.get_remaining_time_in_millis() > reserve_seconds * 1000


def observed[R](
    handler: Callable[[Event, LambdaContext], R],
) -> Callable[[Event, LambdaContext], R]:
    """Give a handler its correlation id, count a broken invariant, and write its metrics out."""

    @wraps(handler)
    def run(event: Event, context: LambdaContext) -> R:
        request: Mapping[str, Any] = event.get("requestContext", {})
        logger.set_correlation_id(request.get("requestId") or context.aws_request_id)
        try:
            return handler(event, context)
        except InvariantBroken:
            count("InvariantBroken")
            raise
        finally:
            if metrics.metric_set:
                metrics.flush_metrics()

    return run
