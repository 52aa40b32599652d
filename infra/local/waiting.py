"""Look until something is so: the local cloud's queues and schedules take their time."""

import time
from collections.abc import Callable

# A queue's way through the local cloud takes a second or two.
PATIENCE_SECONDS = 30


def wait_until(is_so: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> float:
    """Look until ``is_so``; the seconds that took. Raises TimeoutError naming ``what``."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.05)
    return time.monotonic() - began
