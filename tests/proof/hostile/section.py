"""Hostile input: whatever comes in, in whatever shape, size, charset or name, is taken or refused
by name; nothing fails, nothing is half-done, and nobody gets at what is another's.

    document    requests drawn from the OpenAPI document, fitting and not fitting it
    links       walks along what the operations answer
    fuzz        bytes that a fuzzer finds, for every reader of what comes from outside
    shapes      sizes, charsets and shapes that somebody thought of
    tokens      claims that name nobody, somebody else, or too little
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Final

from tests.proof.hostile import document, fuzz, links, shapes, tokens
from tests.proof.section import Extent, Form, Section, Tally
from tests.support.database import Database

_JOBS: Final[tuple[ModuleType, ...]] = (
    document,
    links,
    fuzz,
    shapes,
    tokens,
)
_JOB_OF: Final = {part: job for job in _JOBS for part in job.PARTS}


def parts(_: Extent) -> Sequence[str]:
    return list(_JOB_OF)


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    _JOB_OF[part].prove(database, part, extent, tally)


def replay(database: Database, part: str, case: str) -> None:
    _JOB_OF[part].replay(database, part, case)


def _budget(form: Form) -> str:
    runs, requests, walks = fuzz.RUNS[form], document.COUNT[form], links.WALKS[form]
    return f"{runs:,} inputs a reader, {requests} requests of a kind, {walks} walks"


SECTION: Final = Section(
    "hostile",
    "hostile input is taken or refused by name, and leaves nothing",
    _budget,
    parts,
    prove,
    replay,
)
