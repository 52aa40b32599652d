"""Threads that meet at barriers, each with its own connection, and the engine's word for who waits.

Nothing here sleeps: a thread waits for the others at a barrier, and whether a session stands behind
a lock is read from the engine's own table of lock waits.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import pymysql
import pytest

from lockstep.db import connection, errors
from tests.support.database import Database

# Longer than any operation takes; whoever waits longer has found a hanging test.
PATIENCE_SECONDS: Final = 60

SESSIONS_THAT_WAIT: Final = """
SELECT DISTINCT t.processlist_id
FROM performance_schema.data_lock_waits AS w
JOIN performance_schema.threads AS t ON t.thread_id = w.requesting_thread_id
"""


def at_once[T](*works: Callable[[], T]) -> list[T]:
    """Run each work in a thread; none starts before all are connected. What each came to."""
    [outcomes] = in_rounds([None], *[lambda _, work=work: work() for work in works])
    return outcomes


def in_rounds[I, T](items: Iterable[I], *sides: Callable[[I], T]) -> list[list[T]]:
    """Give every item to all ``sides`` at the same moment, one item after the other.

    What the sides came to, a list for each item. Each side keeps one thread and one connection.
    """
    rounds = list(items)
    barrier = threading.Barrier(len(sides), timeout=PATIENCE_SECONDS)

    def run(side: Callable[[I], T]) -> list[T]:
        outcomes: list[T] = []
        with _own_connection(), _abort_on_failure(barrier):
            for item in rounds:
                barrier.wait()
                outcomes.append(side(item))
        return outcomes

    return [list(outcomes) for outcomes in zip(*_run_all(run, sides), strict=True)]


def crowd[I, T](workers: int, items: Iterable[I], work: Callable[[I], T]) -> list[T]:
    """Work off ``items`` with so many threads, each taking the next as soon as it is free."""
    waiting = deque(items)
    barrier = threading.Barrier(workers, timeout=PATIENCE_SECONDS)

    def run(_: int) -> list[T]:
        outcomes: list[T] = []
        with _own_connection(), _abort_on_failure(barrier):
            barrier.wait()
            while True:
                try:
                    item = waiting.popleft()
                except IndexError:
                    return outcomes
                outcomes.append(work(item))

    return [outcome for outcomes in _run_all(run, range(workers)) for outcome in outcomes]


class Meeting:
    """A step before or after which so many threads wait for each other; each of them once."""

    def __init__(self, parties: int = 2) -> None:
        self._barrier = threading.Barrier(parties, timeout=PATIENCE_SECONDS)
        self._met: set[int] = set()

    def before[**P, R](self, step: Callable[P, R]) -> Callable[P, R]:
        def stepped(*args: P.args, **kwargs: P.kwargs) -> R:
            self._meet()
            return step(*args, **kwargs)

        return stepped

    def after[**P, R](self, step: Callable[P, R]) -> Callable[P, R]:
        def stepped(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return step(*args, **kwargs)
            finally:
                self._meet()

        return stepped

    def _meet(self) -> None:
        if threading.get_ident() not in self._met:
            self._met.add(threading.get_ident())
            self._barrier.wait()


class Meanwhile[T]:
    """Somebody else's whole ``work``, done in the middle of ours, which runs in the test's thread.

    ``after(step)`` is the step that lets it in: once the step has run for the first time, the work
    runs in a thread of its own, until it is done or the engine says that it waits for a lock of
    ours. Then we go on. ``outcome()`` is what it came to.
    """

    def __init__(self, database: Database, work: Callable[[], T]) -> None:
        self.had_to_wait = False
        self._database = database
        self._work = work
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[T] | None = None
        self._was_let_in = False
        self._session_id: int | None = None

    def after[**P, R](self, step: Callable[P, R]) -> Callable[P, R]:
        def stepped(*args: P.args, **kwargs: P.kwargs) -> R:
            result = step(*args, **kwargs)
            if not self._was_let_in:
                self._was_let_in = True  # first: its work may take the same step
                self._future = self._pool.submit(self._run)
                self._wait_until_done_or_blocked(self._future)
            return result

        return stepped

    def outcome(self) -> T:
        assert self._future is not None, "the step that lets the other one in was never taken"
        try:
            return self._future.result(timeout=PATIENCE_SECONDS)
        finally:
            self._pool.shutdown()

    def _run(self) -> T:
        with _own_connection():
            self._session_id = connection.current().thread_id
            return self._work()

    def _wait_until_done_or_blocked(self, future: Future[T]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not future.done():
            if self._session_id in sessions_that_wait(self._database):
                self.had_to_wait = True
                return
            assert time.monotonic() < deadline, "neither done nor waiting"


def sessions_that_wait(database: Database) -> set[int]:
    """The engine's ids of the sessions that stand behind somebody's lock right now."""
    return {row["processlist_id"] for row in database.rows(SESSIONS_THAT_WAIT)}


class Deadlocks:
    """Counts the 1213 that the engine raised to sessions of this process, retried or not.

    The engine's own counter is of the whole server, where other tests may be at work; the one
    that it names the victim always gets the error, so this misses none of ours.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen = 0

        def counted(error: pymysql.MySQLError) -> Exception:
            if error.args and error.args[0] == 1213:
                self.seen += 1
            return errors.translate(error)

        monkeypatch.setattr(connection, "translate", counted)


@contextmanager
def _own_connection() -> Iterator[None]:
    """This thread's connection, open from the start and closed at the end."""
    connection.current()
    try:
        yield
    finally:
        connection.discard()


@contextmanager
def _abort_on_failure(barrier: threading.Barrier) -> Iterator[None]:
    """A thread that fails must not leave the others at the barrier."""
    try:
        yield
    except BaseException:
        barrier.abort()
        raise


def _run_all[A, T](run: Callable[[A], T], arguments: Sequence[A]) -> list[T]:
    with ThreadPoolExecutor(len(arguments)) as pool:
        futures = [pool.submit(run, argument) for argument in arguments]
    faults = [fault for future in futures if (fault := future.exception()) is not None]
    for fault in faults:
        if not isinstance(fault, threading.BrokenBarrierError):
            raise fault
    if faults:
        raise faults[0]
    return [future.result() for future in futures]
