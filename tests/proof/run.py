"""Works off the parts of the sections, on as many processes as there are cores.

Each process has a schema of its own on the proof's own MySQL, which does not flush: only the
section that kills the database needs what is on disk.
"""

import fcntl
import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from infra.local import mysql
from infra.local.paths import PROOF_HOME
from tests.proof.report import Proved
from tests.proof.section import Extent, Form, Section, UnknownCase, proved
from tests.proof.sections import BY_NAME
from tests.support.database import Database


@contextmanager
def server_in_use() -> Iterator[None]:
    """The proof's MySQL is stopped by the last that uses it: several may run beside each other."""
    PROOF_HOME.mkdir(parents=True, exist_ok=True)
    with (PROOF_HOME / "in_use.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                mysql.stop(PROOF_HOME)


def prove(sections: Iterable[Section], extent: Extent, until: float | None) -> Iterator[Proved]:
    """What came of each part, as it comes. After ``until``, by time.monotonic(), none begins, and
    those under way end with the case that they are at."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawned, initializer=_begin) as pool:
        try:
            for done in as_completed(_submit(pool, sections, extent, until)):
                if (one := done.result()) is not None:
                    yield one
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def replay(name: str, part: str, case: str, extent: Extent) -> None:
    """Try one case again, or, where ``case`` is empty, a whole part; raises what it finds."""
    section = BY_NAME.get(name)
    if section is None:
        raise UnknownCase(f"no section {name}: there are {', '.join(BY_NAME)}")
    parts = dict.fromkeys(part for form in Form for part in section.parts(Extent(form)))
    if part not in parts:
        raise UnknownCase(f"no part {part} of {name}: there are {', '.join(parts)}")
    with _in_use() as database:
        if case:
            section.replay(database, part, case)
            return
        faults = proved(section, part, database, extent).faults
        assert not faults, "\n".join(f"{fault.case}\n{fault.why}" for fault in faults)


def _submit(
    pool: ProcessPoolExecutor, sections: Iterable[Section], extent: Extent, until: float | None
) -> list[Future[Proved | None]]:
    """A part of each section, then the next of each: whatever the time, none is left out."""
    named = [[(section.name, part) for part in section.parts(extent)] for section in sections]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*named))
    # A process that is starting knows nothing yet of how it is to be interrupted.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return [
            pool.submit(_prove_part, name, part, extent, until)
            for name, part in filter(None, turns)
        ]
    finally:
        signal.signal(signal.SIGINT, before)


class _Work:
    """Of this process. An interrupt ends the part that is under way, with all that it started, and
    none is begun any more."""

    is_under_way = False
    is_over = False

    @classmethod
    def interrupt(cls, *_: object) -> None:
        was_under_way, cls.is_over = cls.is_under_way and not cls.is_over, True
        if was_under_way:
            raise KeyboardInterrupt


def _begin() -> None:
    """The functions write their log and metrics to where the table goes; some kept the stream from
    when they were imported, so it is turned aside below it."""
    signal.signal(signal.SIGINT, _Work.interrupt)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@cache
def _database() -> Database:
    """This process's own."""
    return Database.create(f"lockstep_proof_{os.getpid()}", PROOF_HOME)


@contextmanager
def _in_use() -> Iterator[Database]:
    database = _database()
    database.empty()
    with pytest.MonkeyPatch.context() as patch, database.in_use(patch):
        yield database


def _prove_part(name: str, part: str, extent: Extent, until: float | None) -> Proved | None:
    if _Work.is_over or (until is not None and time.monotonic() > until):
        return None
    began = time.monotonic()
    _Work.is_under_way = True
    try:
        with _in_use() as database:
            tally = proved(BY_NAME[name], part, database, extent, until)
    except KeyboardInterrupt:
        return None
    finally:
        _Work.is_under_way = False
    return Proved(name, part, extent, tally, time.monotonic() - began)
