"""Runs single tests of this repository again and again, in this process, each time on a product
that is changed a little.

pytest collects them once and keeps what is made once a session: the schema of the tests. A test
that comes to no end is one that failed.
"""

import contextlib
import io
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

from infra.local.paths import ROOT
from lockstep.db import connection
from tests.support.database import forget_settings

_NOT_WANTED: Final = ("terminal", "cacheprovider", "xdist")
_SECONDS_MAX: Final = 20.0


class Overdue(BaseException):
    """No handler of the product may take it for a fault of its own."""


class Bench:
    """The tests of a session that is under way, by their names."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self.items = {item.nodeid: item for item in session.items}
        self._as_it_is: dict[str, bool] = {}

    def passes_as_it_is(self, name: str) -> bool:
        """Whether the test passes on the product without a change; found out once."""
        if name not in self._as_it_is:
            self._as_it_is[name] = self.passes(name)
        return self._as_it_is[name]

    def passes(self, name: str) -> bool:
        item = self.items[name]
        assert isinstance(item, pytest.Function)
        item._initrequest()
        with _in_time():
            # What outlives a test is what belongs to the session.
            reports = runtestprotocol(item, log=False, nextitem=self._session)  # type: ignore[arg-type]
        return not any(report.failed for report in reports)


def at_the_bench(tests: Sequence[str], work: Callable[[Bench], None]) -> None:
    """Collect ``tests``, as the command line of pytest takes them, and do ``work`` with them."""
    loop = _Loop(work)
    quiet = [word for plugin in _NOT_WANTED for word in ("-p", f"no:{plugin}")]
    # This process has imported what pytest would like to be the first to import.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with _a_worker_of_its_own(), contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main([*quiet, f"--rootdir={ROOT}", *tests], plugins=[loop])
    if loop.raised is not None:
        raise loop.raised
    assert loop.was_here, f"pytest ended with {code}: {said.getvalue()}"


class _Loop:
    def __init__(self, work: Callable[[Bench], None]) -> None:
        self._work = work
        self.raised: BaseException | None = None
        self.was_here = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.was_here = True
        try:
            self._work(Bench(session))
        except Exception as raised:
            self.raised = raised
        return True


@contextmanager
def _a_worker_of_its_own() -> Iterator[None]:
    """The tests name their schemas after their worker; this process may be one already, and may
    have a schema in use. Those that want none must find none."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DATABASE_")]:
            patch.delenv(name)
        connection.discard()
        forget_settings()
        patch.setenv("PYTEST_XDIST_WORKER", f"proof{os.getpid()}")
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        # Hypothesis would take what this process drew before for a plugin's work at import.
        patch.setenv("HYPOTHESIS_EXTEND_INITIALIZATION", "1")
        yield
    forget_settings()


@contextmanager
def _in_time() -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise Overdue

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
