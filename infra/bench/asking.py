"""Ask a deployed stack as an app does: until there is an answer, with the same key."""

import time
import urllib.error
from collections.abc import Callable
from typing import Final

from infra.bench.way import WentWrong
from infra.local.shop import Reply

ASKS_MOST: Final = 20
# Not decided yet, too many at a time, or nobody there: it may be asked again.
AGAIN: Final = frozenset({202, 429, 500, 502, 503, 504})


def answered(ask: Callable[[], Reply]) -> tuple[Reply, int]:
    """The answer, and how many asks it took. Raises WentWrong where none comes."""
    for asks in range(1, ASKS_MOST + 1):
        try:
            reply = ask()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            continue
        if reply.status not in AGAIN:
            return reply, asks
        time.sleep(min(0.1 * asks, 1))
    raise WentWrong(f"asked {ASKS_MOST} times, and there was no answer")
