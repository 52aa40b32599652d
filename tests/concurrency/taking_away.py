"""Take a guard away: a clause from a statement, a key or check from a scratch table."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType

import pytest

from tests.support.database import Database

type TakenAway = Callable[[Database], AbstractContextManager[None]]


@dataclass(frozen=True)
class Clause:
    """``statement`` of ``store`` with ``instead`` where ``text`` stands, which it does once."""

    store: ModuleType
    statement: str
    text: str
    instead: str = ""

    @contextmanager
    def __call__(self, _: Database) -> Iterator[None]:
        sql = getattr(self.store, self.statement)
        times = sql.count(self.text)
        assert times == 1, f"{self.statement} has {self.text!r} {times} times"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.store, self.statement, sql.replace(self.text, self.instead))
            yield


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
