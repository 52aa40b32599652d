"""Say what is being done, and how long it took, as it happens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """One line a step; the time follows when it is done. Steps do not nest."""
    started = time.monotonic()
    print(f"  {text} … ", end="", flush=True)
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - started:.1f} s", flush=True)


def note(text: str) -> None:
    print(f"  {text}", flush=True)


class SetupError(Exception):
    """Something that a person has to see to; the text says what."""
