"""Migrations: they replay to the checked-in schema, apply once, and refuse any drift by name."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from infra import migrate
from infra.local import mysql
from infra.local.paths import LOCAL
from infra.migrate import MigrationRefused
from tests.support.waiting import wait_until

FIRST = "0001-pre-make-a.sql"
SECOND = "0002-post-make-b.sql"
MAKE_A = "-- why\nCREATE TABLE a (id INT PRIMARY KEY);\nINSERT INTO a VALUES (1);\n"
MAKE_B = "CREATE TABLE b (\n    id INT PRIMARY KEY, -- a note; with a semicolon\n    t TEXT\n);\n"

# Patient: on a shared server another worker's migration may hold it for a moment.
TAKE_LOCK = "SELECT GET_LOCK('lockstep.migrate', 10)"
IS_AWAITED = """
SELECT COUNT(*)
FROM performance_schema.metadata_locks AS l
JOIN performance_schema.threads AS t ON t.thread_id = l.owner_thread_id
WHERE l.object_type = 'USER LEVEL LOCK'
  AND l.lock_status = 'PENDING'
  AND t.processlist_id = %s
"""


@contextmanager
def empty_schema(name: str) -> Iterator["pymysql.Connection[Any]"]:
    """A session in a schema of its own, as a deployment has it: tuples, no autocommit."""
    session = mysql.connect(mysql.ensure(LOCAL / "test", durable=False))
    with session.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}")
        session.select_db(name)
        try:
            yield session
        finally:
            cursor.execute(f"DROP DATABASE {name}")
            session.close()


@pytest.fixture
def session(worker_name: str) -> Iterator["pymysql.Connection[Any]"]:
    with empty_schema(f"lockstep_migrate_{worker_name}") as session:
        yield session


@pytest.fixture
def worker_name() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "gw0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / FIRST).write_text(MAKE_A)
    (tmp_path / SECOND).write_text(MAKE_B)
    return tmp_path


def rows(session: "pymysql.Connection[Any]", sql: str, *arguments: object) -> list[tuple[Any, ...]]:
    with session.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())


def tables(session: "pymysql.Connection[Any]") -> dict[str, str]:
    """Each table's name and its CREATE statement; the record of migrations aside."""
    names = {name for (name,) in rows(session, "SHOW TABLES")} - {"schema_migration"}
    return {name: rows(session, f"SHOW CREATE TABLE {name}")[0][1] for name in sorted(names)}


def test_the_migrations_replay_to_the_checked_in_schema(session, worker_name):
    assert migrate.apply(session) == sorted(file.name for file in migrate.MIGRATIONS.glob("*.sql"))
    schema = migrate.SCHEMA.read_text(encoding="utf-8")
    with empty_schema(f"lockstep_loaded_{worker_name}") as loaded:
        migrate.load(loaded, schema)
        assert tables(loaded) == tables(session)
        assert len(tables(session)) == 18
        pairs = rows(session, migrate.READ_LEGAL_PAIRS)
        assert rows(loaded, migrate.READ_LEGAL_PAIRS) == pairs
        assert len(pairs) == 20
    assert migrate.dump(session) == schema


def test_a_second_apply_does_nothing(session, folder):
    assert migrate.apply(session, folder) == [FIRST, SECOND]
    before = rows(session, "SELECT * FROM schema_migration ORDER BY name")
    assert migrate.apply(session, folder) == []
    assert rows(session, "SELECT * FROM schema_migration ORDER BY name") == before
    assert rows(session, "SELECT id FROM a") == [(1,)]


def test_a_new_file_is_applied_alone_after_the_others(session, folder):
    migrate.apply(session, folder)
    (folder / "0003-pre-more.sql").write_text("INSERT INTO a VALUES (2);\n")
    assert migrate.apply(session, folder) == ["0003-pre-more.sql"]
    assert rows(session, "SELECT id FROM a ORDER BY id") == [(1,), (2,)]


def test_a_file_that_changed_after_it_was_applied_is_refused(session, folder):
    migrate.apply(session, folder)
    (folder / FIRST).write_text(MAKE_A + "-- one more word\n")
    (folder / "0003-pre-more.sql").write_text("INSERT INTO a VALUES (2);\n")
    with pytest.raises(MigrationRefused, match=f"{FIRST} changed"):
        migrate.apply(session, folder)
    assert rows(session, "SELECT id FROM a") == [(1,)]


def test_a_file_that_is_gone_is_refused(session, folder):
    migrate.apply(session, folder)
    (folder / FIRST).unlink()
    with pytest.raises(MigrationRefused, match=f"{FIRST} was applied, but its file is gone"):
        migrate.apply(session, folder)


def test_a_file_that_was_begun_and_not_finished_is_refused(session, folder):
    (folder / SECOND).write_text(MAKE_B + "THIS IS NOT SQL;\n")
    with pytest.raises(pymysql.err.ProgrammingError):
        migrate.apply(session, folder)
    assert rows(session, "SELECT name FROM schema_migration WHERE finished_at IS NULL") == [
        (SECOND,)
    ]
    (folder / SECOND).write_text(MAKE_B)
    with pytest.raises(MigrationRefused, match=f"{SECOND} was begun and not finished"):
        migrate.apply(session, folder)


def test_a_new_file_that_sorts_before_an_applied_one_is_refused(session, folder):
    (folder / FIRST).unlink()
    migrate.apply(session, folder)
    (folder / FIRST).write_text(MAKE_A)
    with pytest.raises(MigrationRefused, match=f"{FIRST} sorts before {SECOND}"):
        migrate.apply(session, folder)
    assert set(tables(session)) == {"b"}


@pytest.mark.parametrize(
    "name", ["1-pre-a.sql", "0003-a.sql", "0003-before-a.sql", "0003-pre-A.sql", "0003_pre_a.sql"]
)
def test_a_file_with_another_kind_of_name_is_refused(session, folder, name):
    (folder / name).write_text("CREATE TABLE c (id INT PRIMARY KEY);\n")
    with pytest.raises(MigrationRefused, match=f"{name} is not named"):
        migrate.apply(session, folder)
    assert tables(session) == {}


def test_a_deployment_that_never_gets_its_turn_is_refused(
    session, folder, worker_name, monkeypatch
):
    with empty_schema(f"lockstep_loaded_{worker_name}") as other:
        assert rows(other, TAKE_LOCK) == [(1,)]
        monkeypatch.setattr(migrate, "_LOCK_SECONDS", 0)
        with pytest.raises(MigrationRefused, match="another migration is running"):
            migrate.apply(session, folder)
        assert tables(session) == {}


def test_a_deployment_waits_for_the_one_before_it(session, folder, worker_name):
    with (
        empty_schema(f"lockstep_loaded_{worker_name}") as other,
        ThreadPoolExecutor(1) as deployment,
    ):
        assert rows(other, TAKE_LOCK) == [(1,)]
        applied = deployment.submit(migrate.apply, session, folder)
        wait_until(lambda: rows(other, IS_AWAITED, session.thread_id()) == [(1,)])
        assert not applied.done()
        rows(other, "SELECT RELEASE_LOCK('lockstep.migrate')")
        assert applied.result(10) == [FIRST, SECOND]


def test_the_lock_is_given_back_also_after_a_failure(session, folder, worker_name):
    (folder / SECOND).write_text("THIS IS NOT SQL;\n")
    with pytest.raises(pymysql.err.ProgrammingError):
        migrate.apply(session, folder)
    with empty_schema(f"lockstep_loaded_{worker_name}") as other:
        assert rows(other, TAKE_LOCK) == [(1,)]


def test_a_statement_ends_with_a_semicolon_at_the_end_of_a_line():
    migration = migrate.Migration("x", "-- a;\nSELECT ';';\n\n  -- b\nSELECT\n  2;  \n;\nSELECT 3")
    assert migration.statements == ["SELECT ';'", "SELECT\n  2", "SELECT 3"]
