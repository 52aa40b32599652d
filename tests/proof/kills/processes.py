"""Functions in processes of their own, as Lambda has them: an event at a time, kept warm, and gone
without a word when they are killed.

A process runs the handler that its event is for, so that a few of them serve all functions. They
are forked from one that has everything imported, which takes hundredths of a second; what they know
of the world they learn from the environment that they are given.
"""

import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.http_events import Event, Handler
from tests.support.lambda_context import Context

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

type Environment = Mapping[str, str]
type Heard = Callable[[str, Event, Any], None]
# Run once in each process; what it returns runs after each answer.
type Plant = Callable[[], Callable[[], object]]

_FORKED: Final = get_context("forkserver")
_FORKED.set_forkserver_preload([__name__, "tests.proof.kills.warm"])


class Killed(Exception):
    """The process was killed before it answered."""


class Failed(Exception):
    """The handler raised: a function error."""


@dataclass(eq=False)
class _Running:
    process: "ForkServerProcess"
    pipe: Connection


@dataclass
class Processes:
    """``heard`` is told of every answer, with its function and event. ``started`` and ``killed``
    count processes. Threads may call at once: each finds or starts a process that is idle."""

    environment: Environment
    heard: Heard
    plant: Plant | None = None
    started: int = 0
    killed: int = 0
    _idle: list[_Running] = field(default_factory=list)
    _busy: list[_Running] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        """End every process that was started here."""
        for one in [*self._idle, *self._busy]:
            one.process.kill()
            _bury(one)

    def handler(self, function: str) -> Handler:
        return partial(self.call, function)

    def call(self, function: str, event: Event, context: Any) -> Any:
        """Raises Killed, Failed."""
        one = self._take()
        try:
            one.pipe.send((function, event, context.get_remaining_time_in_millis()))
            is_well, answer = one.pipe.recv()
        except (EOFError, OSError):
            self._lose(one)
            raise Killed(function) from None
        with self._lock:
            self._busy.remove(one)
            self._idle.append(one)
        if not is_well:
            raise Failed(answer)
        self.heard(function, event, answer)
        return answer

    def kill_busy(self) -> None:
        """SIGKILL to whoever has an event. It runs no instruction of its own after that."""
        with self._lock:
            for one in self._busy:
                one.process.kill()

    def _take(self) -> _Running:
        with self._lock:
            while self._idle:
                one = self._idle.pop()
                if one.process.is_alive():
                    self._busy.append(one)
                    return one
                _bury(one)
            one = self._start()
            self._busy.append(one)
            return one

    def _start(self) -> _Running:
        ours, theirs = _FORKED.Pipe()
        process = _FORKED.Process(target=_serve, args=(theirs, dict(self.environment), self.plant))
        process.start()
        # Theirs alone: its end is the end of the process.
        theirs.close()
        self.started += 1
        return _Running(process, ours)

    def _lose(self, one: _Running) -> None:
        with self._lock:
            self._busy.remove(one)
            self.killed += 1
        one.process.kill()
        _bury(one)


def _bury(one: _Running) -> None:
    one.process.join()
    one.process.close()
    one.pipe.close()


def _serve(pipe: Connection, environment: dict[str, str], plant: Plant | None) -> None:
    """Answer events until the parent is gone."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(os.devnull).open("w") as nowhere:
        # The functions write their log and metrics to where the proof writes its table.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    after_answer = plant() if plant else None
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(_answer(*pipe.recv()))
            if after_answer is not None:
                after_answer()


def _answer(function: str, event: Event, milliseconds: int) -> tuple[bool, Any]:
    handler = importlib.import_module(f"functions.{function}").handler
    try:
        return True, handler(event, Context(milliseconds=milliseconds))
    except Exception:
        return False, traceback.format_exc()
