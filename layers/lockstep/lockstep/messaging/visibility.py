"""Have messages delivered again before their time-out is over."""

from collections.abc import Mapping, Sequence
from itertools import batched
from typing import Any, Final

from lockstep import settings
from lockstep.messaging import sqs
from lockstep.observability import count, logger

# Should whoever is at it die, this is how late it is noticed. Not shorter: a backlog must go down
# before the deliveries that a message has are used up.
SOON_SECONDS: Final = 20
# What SQS takes in one call.
_BATCH_MAX: Final = 10


def look_again_soon(queue: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Shorten the time until ``records``, which failed, are delivered again. Never raises: without
    it they come when the time-out of their queue is over."""
    queue_url = settings.queue_url(queue)
    if queue_url is None:
        return
    try:
        for some in batched(records, _BATCH_MAX, strict=False):
            sqs.client().change_message_visibility_batch(
                QueueUrl=queue_url,
                Entries=[
                    {
                        "Id": str(n),
                        "ReceiptHandle": record["receiptHandle"],
                        "VisibilityTimeout": SOON_SECONDS,
                    }
                    for n, record in enumerate(some)
                ],
            )
    except Exception as fault:
        count("VisibilityNotChanged")
        logger.warning("messages come again after the whole time-out", fault=type(fault).__name__)
