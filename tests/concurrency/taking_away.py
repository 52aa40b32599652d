"""Take a guard away: a clause from a statement, a key or check from a scratch table."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

import pytest

from tests.support.database import Database

type TakenAway = Callable[[Database], AbstractContextManager[None]]


def clause(store: ModuleType, statement: str, text: str, instead: str = "") -> TakenAway:
    """``statement`` of ``store`` with ``instead`` where ``text`` stands, which it does once."""

    @contextmanager
    def away(_: Database) -> Iterator[None]:
        sql = getattr(store, statement)
        assert sql.count(text) == 1, f"{statement} has {text!r} {sql.count(text)} times"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, statement, sql.replace(text, instead))
            yield

    return away


def constraint(table: str, what: str) -> TakenAway:
    """``table`` without e.g. ``CHECK ck_sku_stock``, ``KEY uk_notice`` or ``PRIMARY KEY``."""

    @contextmanager
    def away(database: Database) -> Iterator[None]:
        whole = database.one(f"SHOW CREATE TABLE {table}")["Create Table"]
        database.execute(f"ALTER TABLE {table} DROP {what}")
        try:
            yield
        finally:
            database.execute(f"DROP TABLE {table}")
            database.execute(whole)

    return away


def replaced(module: ModuleType, name: str, instead: object) -> TakenAway:
    """``module.name`` is ``instead``: for what is no SQL."""

    @contextmanager
    def away(_: Database) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, instead, raising=False)
            yield

    return away
