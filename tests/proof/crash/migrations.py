"""Break a deployment's migrations at any trip, and call the function again.

MySQL commits each DDL statement by itself, so no program can tell how far a broken file came. What
is promised instead (infra/decisions/0008): the file is refused by name until a person has mended
it, nothing is done twice, and nothing after it is begun. Where no file was under way, the next call
applies what is left by itself.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from functions import migrate as function
from infra import migrate
from tests.proof.crash.trips import Mode, Strike, Trip, Trips
from tests.proof.section import Extent, Form, Tally, naming
from tests.support.database import Database, forget_settings
from tests.support.dying import outlive
from tests.support.lambda_context import Context

# Where not all are tried.
SOME: Final = 12
# The second one done twice would show.
_FILES: Final = {
    "0001-pre-one.sql": "CREATE TABLE one (id INT PRIMARY KEY, n INT NOT NULL);\n"
    "INSERT INTO one VALUES (1, 10), (2, 20);\n",
    "0002-pre-two.sql": "ALTER TABLE one ADD COLUMN more INT NOT NULL DEFAULT 1;\n"
    "UPDATE one SET n = n + id;\nCREATE TABLE two (id INT PRIMARY KEY, n INT);\n",
    "0003-post-three.sql": "ALTER TABLE one DROP COLUMN more;\n",
}
_BEGUN: Final = "INSERT INTO schema_migration"
_FINISHED: Final = "UPDATE schema_migration"
_MEND: Final = "UPDATE schema_migration SET finished_at = NOW(3) WHERE name = %s"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the migrations go, and their files."""

    database: Database
    folder: Path

    def state(self) -> dict[str, Any]:
        """Every table, its rows, and which files are begun and finished."""
        tables = [next(iter(row.values())) for row in self.database.rows("SHOW TABLES")]
        records = (
            self.database.rows(
                "SELECT name, finished_at IS NOT NULL AS done FROM schema_migration ORDER BY name"
            )
            if "schema_migration" in tables
            else []
        )
        own = [table for table in tables if table != "schema_migration"]
        shapes = [self.database.one(f"SHOW CREATE TABLE {table}") for table in own]
        return {"shapes": shapes, "rows": self.database.dump(own), "records": records}

    def unfinished(self) -> str | None:
        found = [row["name"] for row in self.state()["records"] if not row["done"]]
        assert len(found) <= 1
        return found[0] if found else None


def prove(database: Database, extent: Extent, tally: Tally) -> None:
    trips, expected = _undisturbed(database)
    cases = [Strike(nth, mode) for nth, trip in enumerate(trips) for mode in trip.modes]
    tally.possible = len(cases)
    if extent.form is not Form.BOUNDED:
        cases = random.Random(extent.seed).sample(cases, SOME)
    for strike in cases:
        tally.attempt(str(strike), partial(_broken, database, strike, expected))


def replay(database: Database, case: str) -> None:
    with naming(case):
        strike = Strike.read(case)
    _broken(database, strike, _undisturbed(database)[1])


def _undisturbed(database: Database) -> tuple[Sequence[Trip], dict[str, Any]]:
    with _a_place(database) as place, Trips().watched() as trips:
        assert _migrate()
        return trips.taken, place.state()


def _broken(database: Database, strike: Strike, expected: dict[str, Any]) -> None:
    with _a_place(database) as place:
        with Trips([strike]).watched() as trips:
            outlive(_migrate, otherwise=False)
        assert len(trips.struck) == 1
        stuck = place.unfinished()
        assert (stuck is not None) == _is_under_way(trips.taken, strike), (trips.struck, stuck)
        if stuck is not None:
            _refused(place, stuck)
            _mend(place, stuck, trips.taken, strike)
        assert _migrate()
        assert place.state() == expected, trips.struck


def _migrate() -> bool:
    """False where the function failed."""
    try:
        function.handler({}, Context())
    except Exception:
        return False
    return True


def _is_under_way(taken: Sequence[Trip], strike: Strike) -> bool:
    """Whether a file was begun, for good, and not finished."""
    is_done = strike.mode in {Mode.DIES_AFTER, Mode.ANSWER_LOST}
    done = [trip.what for trip in taken[: strike.trip + is_done]]
    return sum(_is(_BEGUN, what) for what in done) > sum(_is(_FINISHED, what) for what in done)


def _is(beginning: str, what: str) -> bool:
    return what.startswith(beginning)


def _refused(place: Place, name: str) -> None:
    """By its name, and nothing is changed."""
    before = place.state()
    assert f"{name} was begun and not finished" in _refusal()
    assert place.state() == before
    assert [row["name"] for row in before["records"]] == [one for one in _FILES if one <= name]


def _refusal() -> str:
    try:
        return f"applied: {function.handler({}, Context())}"
    except migrate.MigrationRefused as refused:
        return str(refused)


def _mend(place: Place, name: str, taken: Sequence[Trip], strike: Strike) -> None:
    """As a person does who looks how far it came."""
    begun = max(nth for nth, trip in enumerate(taken) if _is(_BEGUN, trip.what))
    is_done = strike.mode in {Mode.DIES_AFTER, Mode.ANSWER_LOST}
    # The first trip after the record is its commit.
    came_to = max(0, strike.trip + is_done - begun - 2)
    for statement in migrate.Migration(name, _FILES[name]).statements[came_to:]:
        place.database.execute(statement)
    place.database.execute(_MEND, (name,))


@contextmanager
def _a_place(database: Database) -> Iterator[Place]:
    """An empty schema beside the tests' own, and the product's settings pointed at it."""
    name = f"{database.name}_migrated"
    database.execute(f"DROP DATABASE IF EXISTS {name}")
    database.execute(f"CREATE DATABASE {name}")
    database.session.select_db(name)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for file, text in _FILES.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        patch.setattr(migrate, "apply", partial(migrate.apply, folder=Path(folder)))
        patch.setenv("DATABASE_NAME", name)
        forget_settings()
        try:
            yield Place(replace(database, name=name), Path(folder))
        finally:
            database.session.select_db(database.name)
            database.execute(f"DROP DATABASE {name}")
    forget_settings()
