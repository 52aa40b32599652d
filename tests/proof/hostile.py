"""Hostile input: whatever comes in, in whatever shape, size, charset or name, is taken or refused
by name; nothing fails, nothing is half-done, and nobody gets at what is another's.

    hostile_document    requests drawn from the OpenAPI document, fitting and not fitting it
    hostile_links       walks along what the operations answer
    hostile_fuzz        bytes that a fuzzer finds, for every reader of what comes from outside
    hostile_shapes      sizes, charsets and shapes that somebody thought of
    hostile_tokens      claims that name nobody, somebody else, or too little
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Final

from tests.proof import (
    hostile_document,
    hostile_fuzz,
    hostile_links,
    hostile_shapes,
    hostile_tokens,
)
from tests.proof.section import Extent, Section, Tally
from tests.support.database import Database

_JOBS: Final[tuple[ModuleType, ...]] = (
    hostile_document,
    hostile_links,
    hostile_fuzz,
    hostile_shapes,
    hostile_tokens,
)
_JOB_OF: Final = {part: job for job in _JOBS for part in job.PARTS}


def parts(_: Extent) -> Sequence[str]:
    return list(_JOB_OF)


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    _JOB_OF[part].prove(database, part, extent, tally)


def replay(database: Database, part: str, case: str) -> None:
    _JOB_OF[part].replay(database, part, case)


SECTION: Final = Section(
    "hostile", "Hostile input is taken or refused by name, and leaves nothing", parts, prove, replay
)
