"""Clients that all act at once, spread over two processes, for a time or until there is no work.

Two, because PyMySQL keeps a core busy long before the server does: one process would measure
Python's lock, and more than two share two cores no better. Each client is a thread with a session
of its own. Everything is prepared and connected before the clock starts.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from infra.bench import wire

PROCESSES: Final = 2
PATIENCE_SECONDS: Final = 120


@dataclass(slots=True)
class Client:
    """``act`` does the next piece of work and says how many orders it was; None: there is no more.

    ``took`` holds what each act took, in seconds, where the client knows better than the crowd.
    """

    act: Callable[[], int | None]
    took: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """Which client of how many; how long it acts at most."""

    number: int
    clients: int
    seconds: float


class Acting(Protocol):
    """What a crowd can do. It is sent to the processes, so it holds plain values only."""

    def client(self, seat: Seat) -> AbstractContextManager[Client]: ...


@dataclass(frozen=True, slots=True)
class Trace:
    """What one client did, by the machine's monotonic clock."""

    began: float
    ended: float
    done: int
    took: Sequence[float]


@dataclass(frozen=True, slots=True)
class Outcome:
    done: int
    seconds: float
    trips: int
    took: Sequence[float] = field(repr=False)
    """Ascending."""

    @property
    def per_second(self) -> float:
        return self.done / self.seconds if self.seconds else 0.0

    def millis(self, share: float) -> float:
        """The latency that this share of the calls stayed within."""
        if not self.took:
            return float("nan")
        return self.took[min(len(self.took) - 1, int(len(self.took) * share))] * 1000


class Crowd:
    """The processes, kept for many runs."""

    def __enter__(self) -> Self:
        # A fresh interpreter each: a fork would share the parent's sessions.
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(PROCESSES)
        self._pool = ProcessPoolExecutor(PROCESSES, context, _begin, (barrier,))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def run(self, acting: Acting, clients: int, wait_ms: float, seconds: float) -> Outcome:
        """Raises what a client raised."""
        seats = [Seat(number, clients, seconds) for number in range(clients)]
        shares = [seats[first::PROCESSES] for first in range(PROCESSES)]
        parts = [self._pool.submit(_serve, acting, share, wait_ms) for share in shares]
        results = _results(parts)
        traces = [trace for some, _ in results for trace in some]
        began, ended = min(t.began for t in traces), max(t.ended for t in traces)
        took = sorted(seconds for trace in traces for seconds in trace.took)
        trips = sum(made for _, made in results)
        return Outcome(sum(t.done for t in traces), ended - began, trips, took)


def _results[T](futures: Sequence[Future[T]]) -> list[T]:
    """Raises the fault that was first, not that others waited for it in vain."""
    faults = [fault for future in futures if (fault := future.exception()) is not None]
    for fault in sorted(faults, key=lambda fault: isinstance(fault, threading.BrokenBarrierError)):
        raise fault
    return [future.result() for future in futures]


_together: threading.Barrier


def _begin(barrier: threading.Barrier) -> None:
    global _together  # noqa: PLW0603 - a process of the pool has no other way to be given one
    _together = barrier
    # Logs and metrics are written, as Lambda writes them, but to nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _serve(acting: Acting, seats: Sequence[Seat], wait_ms: float) -> tuple[list[Trace], int]:
    """What this process's clients did, and in how many round trips."""
    wire.take(wait_ms)
    ready, go = threading.Barrier(len(seats) + 1), threading.Event()

    def run(seat: Seat) -> Trace:
        try:
            with acting.client(seat) as client:
                ready.wait(PATIENCE_SECONDS)
                go.wait(PATIENCE_SECONDS)
                return _act(client, seat.seconds)
        except BaseException:
            ready.abort()  # nobody waits for a client that will not come
            raise

    with ThreadPoolExecutor(len(seats) + 1) as pool:
        running = [pool.submit(run, seat) for seat in seats]
        try:
            ready.wait(PATIENCE_SECONDS)
            _together.wait(PATIENCE_SECONDS)
        except threading.BrokenBarrierError:
            _together.abort()
        before = wire.trips()
        go.set()
        traces = _results(running)
    return traces, wire.trips() - before


def _act(client: Client, seconds: float) -> Trace:
    began = ended = time.monotonic()
    until, done, took = began + seconds, 0, []
    while ended < until:
        last = time.monotonic()
        orders = client.act()
        if orders is None:
            break
        ended = time.monotonic()
        done += orders
        took.append(ended - last)
    return Trace(began, ended, done, took if client.took is None else client.took)
