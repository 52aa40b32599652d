"""The guards that stand in models: what bodies and messages may say, limit by limit, and the models
without one of them.

They are read from the schemas that pydantic validates by. A limit that a base class sets is one
guard of all that inherit it; a limit of a model that stands in others is gone from these as well.
"""

import ast
import copy
import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final

import pytest
from pydantic import BaseModel
from pydantic_core import SchemaValidator

from tests.proof.guards import in_code

type Schema = Any
type Model = type[BaseModel]

_LIMITS: Final = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
_INNER: Final = ("schema", "items_schema")
_OF_ALL: Final = ("strict", "extra_fields_behavior")
_LITERAL: Final = "literal"


@dataclass(frozen=True, slots=True)
class ModelGuard:
    """``limit`` of what stands at ``place`` of ``model``, or of all of it."""

    model: Model
    place: str
    limit: str
    value: str

    @property
    def module(self) -> str:
        return self.model.__module__

    @property
    def area(self) -> str:
        return self.module.split(".")[1]

    @property
    def key(self) -> str:
        where = ".".join(filter(None, (self.model.__name__, self.place)))
        return f"{self.module} {where}: {self.limit} {self.value}"

    @property
    def lines(self) -> frozenset[int]:
        """Of the functions that read by the module's models."""
        return _readers(importlib.import_module(self.module))

    @contextmanager
    def without(self) -> Iterator[None]:
        """The product while nobody is held to it."""
        with pytest.MonkeyPatch.context() as patch:
            for model in _models():
                schema = copy.deepcopy(model.__pydantic_core_schema__)
                there = [node for guard, node in _limits(schema) if guard == self]
                for node in there:
                    _lift(node, self.limit)
                if there:
                    # Built anew, with the models that stand in it.
                    changed = SchemaValidator(schema, _use_prebuilt=False)
                    patch.setattr(model, "__pydantic_validator__", changed)
            yield


@cache
def all_guards() -> tuple[ModelGuard, ...]:
    found = (guard for model in _models() for guard, _ in _limits(model.__pydantic_core_schema__))
    return tuple(dict.fromkeys(found))


@cache
def _models() -> tuple[Model, ...]:
    return tuple(
        found
        for module in in_code.modules()
        for found in vars(module).values()
        if inspect.isclass(found)
        and issubclass(found, BaseModel)
        and found.__module__ == module.__name__
    )


def _limits(
    node: Schema, model: Model = BaseModel, place: str = ""
) -> Iterator[tuple[ModelGuard, Schema]]:
    """Each limit in a schema, with the node that sets it."""
    if "cls" in node:
        model, place = node["cls"], ""
    for limit, value, where in _own_limits(node):
        yield ModelGuard(_origin(model, place), place, limit, value), where
    for name, field in node.get("fields", {}).items():
        yield from _limits(field["schema"], model, name)
    for inner in _INNER:
        if inner in node:
            part = "[]" if inner == "items_schema" else ""
            yield from _limits(node[inner], model, place + part)


def _own_limits(node: Schema) -> Iterator[tuple[str, str, Schema]]:
    match node:
        case {"type": "model", "config": config}:
            said = {name: config.get(name) for name in _OF_ALL}
            yield from ((n, f"{v}", config) for n, v in said.items() if v in {True, "forbid"})
        case {"type": "literal", "expected": expected}:
            yield _LITERAL, f"{expected}", node
        case _:
            yield from ((name, f"{node[name]}", node) for name in _LIMITS if name in node)


def _lift(node: Schema, limit: str) -> None:
    if limit == _LITERAL:
        node.clear()
        node["type"] = "any"
    else:
        del node[limit]


def _origin(model: Model, place: str = "") -> Model:
    """The class that sets it, from which ``model`` may have it."""
    name = place.removesuffix("[]")
    family = [one for one in model.__mro__ if issubclass(one, BaseModel) and one is not BaseModel]
    return [one for one in family if not name or name in inspect.get_annotations(one)][-1]


@cache
def _readers(module: ModuleType) -> frozenset[int]:
    names = {model.__name__ for model in _models()}
    lines: set[int] = set()
    for top in ast.parse(inspect.getsource(module)).body:
        is_model = isinstance(top, ast.ClassDef) and top.name in names
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef) and (is_model or names & _named_in(node)):
                lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _named_in(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
