"""The section that kills for real: the function's process, and the database.

Processes and servers are not deterministic, so a case that is replayed lives the same life and
kills at the same requests, or at the same count of answers, but may meet another moment inside
them. What a fault says names who was killed when.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.proof import kill_lives
from tests.proof.section import Extent, Form, Section, Tally
from tests.support.database import Database

_LIVES: Final = {Form.BOUNDED: 3, Form.LONG: 12}


def _parts(extent: Extent) -> Sequence[str]:
    return () if extent.form is Form.FIXED else ("functions",)


def _prove(database: Database, _: str, extent: Extent, tally: Tally) -> None:
    tally.possible = None
    for nth in range(_LIVES[extent.form]):
        case = f"{extent.seed}.{nth}"
        tally.attempt(case, partial(kill_lives.live, database, case))


def _replay(database: Database, _: str, case: str) -> object:
    return kill_lives.live(database, case)


KILLS: Final = Section(
    "kills",
    "nothing acknowledged is lost when a process or the database is killed",
    _parts,
    _prove,
    _replay,
)
