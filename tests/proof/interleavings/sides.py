"""Operations that stop before each of their steps and go on when they are told to.

A side is an operation in a thread of its own, with a connection of its own. It stands still before
each round trip to the database, and wherever its case says so (before a call of the channel, say),
until the stage tells it to go.

Not every round trip is a step. Some statements neither wait for another side, nor keep one waiting,
nor show it anything before the commit, so that it makes no difference when they run. They run with
the step before them; should one have to wait all the same, the case fails.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest

from lockstep.db import connection, transaction
from lockstep.db.connection import Connection
from lockstep.orders import place
from lockstep.payments import accept, cancel, conversation
from tests.support.database import forget_settings
from tests.support.packets import take_apart

# Whoever waits longer has found a hanging case.
PATIENCE_SECONDS: Final = 60
_OPEN: Final = re.compile(r"\s*BEGIN\b")
# Children of a row that the same transaction has just written, or lines with no key but their own
# number. The stores lock none of them.
_CHILDREN: Final = re.compile(
    r"\s*INSERT INTO (oms_order_event|oms_order_item|ims_reservation_item)\b"
)
# The same of a message. But where a range is locked with its gaps, as relays do under REPEATABLE
# READ, it may have to wait.
_MESSAGE: Final = re.compile(r"\s*INSERT INTO outbox\b")

type Work = Callable[["Side"], object]


class Abandoned(BaseException):
    """The case is over for another reason. No Exception: the product must not go on after it."""


class Side:
    """``outcome`` is what its operation returned, or the exception that it raised."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome: object = None
        self.is_over = True
        self.step = ""
        self.runs_along: str | None = None
        self._is_abandoned = False
        self._go = threading.Semaphore(0)
        self._still = threading.Event()
        self._thread = ThreadPoolExecutor(1, f"side {name}")

    # --- what its own thread does --------------------------------------------------------------

    def stop(self, step: str) -> None:
        """Stand still before ``step``, until it is this side's turn."""
        if not self._is_abandoned:
            self.step = step
            self._still.set()
            self._go.acquire()
        if self._is_abandoned and step != "ROLLBACK":
            raise Abandoned

    def _run(self, work: Work) -> None:
        _here.side = self
        try:
            connection.current()
            self.outcome = work(self)
        except (Exception, Abandoned) as fault:
            self.outcome = fault
        finally:
            _here.side = None
            self.is_over = True
            self._still.set()

    # --- what the stage does with it -----------------------------------------------------------

    @property
    def is_still(self) -> bool:
        return self._still.is_set()

    @property
    def is_ready(self) -> bool:
        return self.is_still and not self.is_over

    def begin(self, work: Work) -> None:
        self.is_over = self._is_abandoned = False
        self._go = threading.Semaphore(0)  # who was abandoned behind a lock never took its turn
        self._still.clear()
        self._thread.submit(self._run, work)

    def go(self) -> None:
        self._still.clear()
        self._go.release()

    def wait(self, seconds: float) -> bool:
        """Until it stands still; whether it does."""
        return self._still.wait(seconds)

    def abandon(self) -> None:
        """Let it roll back and end; it may stand behind a lock of another that does the same."""
        self._is_abandoned = True
        self._go.release()

    def close(self) -> None:
        self._thread.submit(connection.discard).result(PATIENCE_SECONDS)
        self._thread.shutdown()


class _Here(threading.local):
    """The side that this thread runs, if it is one's."""

    side: Side | None = None


_here = _Here()


def stop_here(step: str) -> None:
    """Stand still before ``step``, where a side runs in this thread."""
    if _here.side is not None:
        _here.side.stop(step)


@contextmanager
def stepping(*, repeatable_read: bool = False) -> Iterator[None]:
    """Let sides stop at their steps, and let no operation run out of time: for the product, it
    stands still, so that it retries without a pause and without an end."""
    runs_along = [_OPEN, _CHILDREN, *([] if repeatable_read else [_MESSAGE])]
    with pytest.MonkeyPatch.context() as patch:
        take_apart(patch)
        patch.setattr(Connection, "_run", _stopping(Connection._run, runs_along))
        standing = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda seconds: None)
        for module in (transaction, place, accept, cancel, conversation):
            patch.setattr(module, "time", standing)
        patch.setenv("DATABASE_LOCK_WAIT_SECONDS", str(2 * PATIENCE_SECONDS))
        patch.setenv("DATABASE_TIMEOUT_SECONDS", str(2 * PATIENCE_SECONDS))
        if repeatable_read:
            variables = connection._session_variables

            def repeating(seconds: int | None) -> str:
                return variables(seconds).replace("READ-COMMITTED", "REPEATABLE-READ")

            patch.setattr(connection, "_session_variables", repeating)
        forget_settings()
        connection.discard()
        yield
    connection.discard()
    forget_settings()


def _stopping(real: Callable[..., Any], runs_along: Sequence[re.Pattern[str]]) -> Any:
    def run(session: Connection, text: str) -> Any:
        side = _here.side
        if side is None:
            return real(session, text)
        if not any(each.match(text) for each in runs_along):
            side.stop(_in_brief(text))
            return real(session, text)
        side.runs_along = _in_brief(text)
        try:
            return real(session, text)
        finally:
            side.runs_along = None

    return run


def _in_brief(sql: str) -> str:
    """``SELECT oms_order FOR UPDATE``, say."""
    words = " ".join(sql.split())
    verb, _, rest = words.partition(" ")
    tables = re.findall(r"(?:FROM|INTO|UPDATE) ((?:oms|ims)_\w+|outbox|message_refusal)", words)
    lock = re.findall(r"FOR (?:UPDATE|SHARE)[\w ]*$", rest)
    return " ".join([verb, *tables[-1:], *lock])
