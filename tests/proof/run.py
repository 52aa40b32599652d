"""Works off the parts of the sections, on as many processes as there are cores.

Each process has a schema of its own on the proof's own MySQL, which does not flush: only the
section that kills the database needs what is on disk.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from infra.local.paths import PROOF_HOME
from tests.proof.report import Proved
from tests.proof.section import Extent, Form, Section, proved
from tests.proof.sections import BY_NAME
from tests.support.database import Database


def prove(sections: Iterable[Section], extent: Extent, until: float | None) -> Iterator[Proved]:
    """What came of each part, as it comes. After ``until``, by time.monotonic(), none begins."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), spawned, initializer=_hush) as pool:
        under_way = [
            pool.submit(_prove_part, section.name, part, extent, until)
            for section in sections
            for part in section.parts(extent)
        ]
        for done in as_completed(under_way):
            if (one := done.result()) is not None:
                yield one


def replay(name: str, part: str, case: str) -> None:
    """Try one case again, or a whole part where ``case`` is empty; raises what it finds."""
    section = BY_NAME[name]
    with _in_use() as database:
        if case:
            section.replay(database, part, case)
            return
        tally = proved(section, part, database, Extent(Form.BOUNDED))
        assert not tally.faults, tally.faults


def _hush() -> None:
    """The functions write their log and metrics to where the table goes; some kept the stream from
    when they were imported, so it is turned aside below it."""
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
    if until is not None and time.monotonic() > until:
        return None
    began = time.monotonic()
    with _in_use() as database:
        tally = proved(BY_NAME[name], part, database, extent)
    return Proved(name, part, tally, time.monotonic() - began)
