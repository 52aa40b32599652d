"""Threads that meet, each with a session of its own and the product's."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from itertools import count
from pathlib import Path
from typing import Final

from infra.measuring.ground import Ground, Session
from lockstep.db import connection

PATIENCE_SECONDS: Final = 60


def in_rounds[T](
    ground: Ground, rounds: Sequence[T], *sides: Callable[[Session, T], bool]
) -> list[list[bool]]:
    """Give each of ``rounds`` to all ``sides`` at the same moment; what each side came to."""
    barrier = threading.Barrier(len(sides), timeout=PATIENCE_SECONDS)

    def run(side: Callable[[Session, T], bool]) -> list[bool]:
        with _own_session(ground) as session:
            return [(barrier.wait(), side(session, one))[1] for one in rounds]

    with ThreadPoolExecutor(len(sides)) as pool, _hushed():
        return [list(outcomes) for outcomes in pool.map(run, sides)]


def crowd(
    ground: Ground,
    threads: int,
    act: Callable[[Session, int], bool],
    begun: Callable[[], None] = lambda: None,
) -> int:
    """Let so many threads act, each again and again, until one of its acts says that it is over;
    how often it was not. ``begun`` is told when all are connected."""
    serial = count(1)
    barrier = threading.Barrier(threads, begun, timeout=PATIENCE_SECONDS)

    def run(_: int) -> int:
        done = 0
        with _own_session(ground) as session:
            barrier.wait()
            while act(session, next(serial)):
                done += 1
        return done

    with ThreadPoolExecutor(threads) as pool, _hushed():
        return sum(pool.map(run, range(threads)))


def a_second(
    ground: Ground, threads: int, seconds: float, act: Callable[[Session, int], None]
) -> int:
    """How often a second so many threads can act."""
    until = float("inf")

    def begin() -> None:
        nonlocal until
        until = time.monotonic() + seconds

    def acted(session: Session, n: int) -> bool:
        act(session, n)
        return time.monotonic() < until

    return int(crowd(ground, threads, acted, begin) / seconds)


@contextmanager
def _own_session(ground: Ground) -> Iterator[Session]:
    """A thread's, and the product's own."""
    try:
        with ground.session() as session:
            connection.current()
            yield session
    finally:
        connection.discard()


@contextmanager
def _hushed() -> Iterator[None]:
    """The product writes its metrics to where the tables go."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield
