"""The section that kills for real: the function's process, and the database.

Processes and servers are not deterministic, so a case that is replayed lives the same life and
kills at the same requests, or after the same count of answers, but may meet another moment there.
What a fault says names who was killed, and when.
"""

from collections.abc import Sequence
from typing import Final

from infra.local.steps import note
from tests.proof.kills import lives, outages
from tests.proof.kills import mysqld as kill_mysqld
from tests.proof.section import Extent, Form, Section, Tally, naming
from tests.support.database import Database

FUNCTIONS: Final = "functions"
DATABASE: Final = "database"
_LIVES: Final = {Form.BOUNDED: 4, Form.LONG: 12}
_OUTAGES: Final = {Form.BOUNDED: 1, Form.LONG: 3}


def _parts(extent: Extent) -> Sequence[str]:
    if extent.form is Form.FIXED:
        return ()
    if isinstance(why := kill_mysqld.a_binary(), str):
        note(f"The database is not killed: of a mysqld to start {why}")
        return (FUNCTIONS,)
    return (DATABASE, FUNCTIONS)


def _prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    """Counts kills: a life, or an outage's run, is a case with several."""
    tally.possible = None
    cases = _LIVES[extent.form] if part == FUNCTIONS else 1
    for nth in range(cases):
        case = f"{extent.seed}.{nth if part == FUNCTIONS else _OUTAGES[extent.form]}"

        def trial(case: str = case) -> None:
            tally.tried += _kill(database, part, case) - 1

        tally.attempt(case, trial)


def _kill(database: Database, part: str, case: str) -> int:
    """How often; a case is a seed and its life's number, or the count of its outages."""
    with naming(case):
        _, nth = map(int, case.split("."))
    return lives.live(database, case) if part == FUNCTIONS else outages.survive(case, nth)


def _budget(form: Form) -> str:
    return f"{_LIVES.get(form, 0)} lives, {_OUTAGES.get(form, 0)} kills of the database"


SECTION: Final = Section(
    "kills",
    "nothing acknowledged is lost when a process or the database is killed",
    _budget,
    _parts,
    _prove,
    _kill,
)
