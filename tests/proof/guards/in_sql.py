"""The guards that stand in SQL: the conditions and locks of every statement that decides a race,
and the statement without one of them.

A statement decides where it writes to rows that are there (UPDATE, DELETE, INSERT … SELECT), where
it locks rows, and where it finds what is deleted afterwards. Each conjunct of each of its WHEREs
is a guard, inside a subquery too, except those that say which row it is; so is each lock.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Final

import pytest

import lockstep
from tests.proof.guards.conjuncts import conjuncts

_DECIDES: Final = re.compile(
    r"\s*(UPDATE|DELETE)\b|\bFOR (UPDATE|SHARE)\b|\s*INSERT\b.*\bSELECT\b", re.DOTALL
)
_LOCK: Final = re.compile(r"\bFOR (?:UPDATE|SHARE)(?: OF \w+)?(?: NOWAIT| SKIP LOCKED)?")
_WHERE: Final = re.compile(r"\bWHERE\b")
_PLACE: Final = re.compile(r"%s|%\(\w+\)s")
# Which row it is: a row's own key, or what joins a subquery to the row outside.
_KEY: Final = re.compile(
    r"(?:\w+\.)?(?:id|sku_id|order_no|reservation_id|out_trade_no|message_id|trade_no|provider"
    r"|idempotency_key|notify_id|content_hash) (?:=|IN) (?:%s|%\(\w+\)s)"
)


@dataclass(frozen=True, slots=True)
class SqlGuard:
    module: str
    statement: str
    text: str
    start: int
    """Where ``text`` stands in the statement."""
    lines: frozenset[int]
    """Of the functions that send the statement."""

    @property
    def name(self) -> str:
        return f"{self.statement}: {' '.join(self.text.split())}"

    @property
    def key(self) -> str:
        return f"{self.module} {self.name}"

    @property
    def area(self) -> str:
        return self.module.split(".")[1]

    @property
    def is_lock(self) -> bool:
        return _LOCK.fullmatch(self.text) is not None

    def is_gone_from(self, sql: str) -> bool:
        """Whether a statement that was changed somehow has it no longer, or not as it was."""
        whole: str = getattr(importlib.import_module(self.module), self.statement)
        return sql.count(self.text) < whole.count(self.text)

    @contextmanager
    def without(self) -> Iterator[None]:
        """The product while the statement lacks it; the statement's arguments stay."""
        store = importlib.import_module(self.module)
        sql: str = getattr(store, self.statement)
        places = "".join(f" OR {place} IS NULL" for place in _PLACE.findall(self.text))
        instead = "" if self.is_lock else f"(TRUE{places})"
        end = self.start + len(self.text)
        assert sql[self.start : end] == self.text
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, self.statement, sql[: self.start] + instead + sql[end:])
            yield


@cache
def all_guards() -> tuple[SqlGuard, ...]:
    return tuple(guard for module in _stores() for guard in guards_of(module))


def guards_of(store: ModuleType) -> Iterator[SqlGuard]:
    users = _users(store)
    for name, sql in vars(store).items():
        if name not in users or not isinstance(sql, str):
            continue
        if _DECIDES.search(sql) or name.startswith("FIND_"):
            for start, text in _conditions_and_locks(sql):
                yield SqlGuard(store.__name__, name, text, start, users[name])


def _conditions_and_locks(sql: str) -> Iterator[tuple[int, str]]:
    for where in _WHERE.finditer(sql):
        for start, text in conjuncts(sql, where.end()):
            if not _KEY.fullmatch(" ".join(text.split())):
                yield start, text
    for lock in _LOCK.finditer(sql):
        yield lock.start(), lock[0]


def _users(store: ModuleType) -> dict[str, frozenset[int]]:
    """The constants that ``store`` itself defines, and the lines of the functions that use each."""
    tree = ast.parse(inspect.getsource(store))
    lines: dict[str, set[int]] = {
        node.target.id: set()
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in lines:
                    lines[node.id] |= set(range(function.lineno, (function.end_lineno or 0) + 1))
    return {name: frozenset(where) for name, where in lines.items()}


def _stores() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(lockstep.__path__, "lockstep."):
        yield importlib.import_module(found.name)
