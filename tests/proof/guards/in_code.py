"""The guards that stand in code: where they are, and the code without one of them.

A guard is found by its form, so that none comes into the product unseen:

    leave      `if …: raise | return | break | continue`, each operand of an `or` by itself
    turn       `except …: raise another | return | …`, which turns a fault into what is answered
    answer     `return … and …`, each operand by itself; `or` as well, but not before a default
    either     `return … if … else None`, or another constant: what is answered instead
    compare    a comparison of two fingerprints, wherever it stands

One is taken away by compiling its function anew without it and giving that code to the function
which everybody holds already. What its condition does is still done; only nobody heeds it.
"""

import ast
import copy
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import functions
import lockstep

_LEAVES: Final = (ast.Raise, ast.Return, ast.Break, ast.Continue)
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class CodeGuard:
    """``text`` is the condition as it stands, so that the name outlives a move to another line.
    ``place`` is the node's among all nodes of the module, ``operand`` its part of an `or`."""

    module: str
    function: str
    text: str
    place: int
    operand: int | None
    lines: frozenset[int]
    """Of the condition and of what follows from it."""

    @property
    def name(self) -> str:
        return f"{self.function}: {self.text}"

    @property
    def key(self) -> str:
        return f"{self.module} {self.name}"

    @property
    def area(self) -> str:
        """The folder, as design and tests are cut."""
        parts = self.module.split(".")
        return parts[1] if parts[0] == "lockstep" and len(parts) > 2 else parts[0]

    @contextmanager
    def without(self) -> Iterator[None]:
        """The product while nobody heeds it."""
        module = importlib.import_module(self.module)
        tree = copy.deepcopy(_tree(module))
        _take_away(list(ast.walk(tree))[self.place], self.operand)
        ast.fix_missing_locations(tree)
        function = _function(module, self.function)
        whole = function.__code__
        assert module.__file__ is not None
        changed = compile(tree, module.__file__, "exec", dont_inherit=True)
        function.__code__ = _code_of(changed, self.function, whole.co_firstlineno)
        try:
            yield
        finally:
            function.__code__ = whole


def guards_of(module: ModuleType) -> list[CodeGuard]:
    """All of them, in the order in which they stand; equal ones of a function are numbered."""
    found: list[CodeGuard] = []
    tree = _tree(module)
    owners = dict(_owners(tree))
    heeded = {node.test for node in ast.walk(tree) if isinstance(node, ast.If)}
    for place, node in enumerate(ast.walk(tree)):
        if node in owners and isinstance(node, (ast.stmt, ast.expr, ast.ExceptHandler)):
            lines = frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            found += [
                CodeGuard(module.__name__, owners[node], text, place, operand, lines)
                for text, operand in _guards_at(node)
                if node not in heeded
            ]
    seen: dict[str, int] = {}
    numbered = []
    for guard in sorted(found, key=lambda one: (min(one.lines), one.operand or 0)):
        nth = seen[guard.name] = seen.get(guard.name, 0) + 1
        text = guard.text if nth == 1 else f"{guard.text} ({nth})"
        numbered.append(
            CodeGuard(guard.module, guard.function, text, guard.place, guard.operand, guard.lines)
        )
    return numbered


@cache
def all_guards() -> tuple[CodeGuard, ...]:
    return tuple(guard for module in modules() for guard in guards_of(module))


def _guards_at(node: ast.AST) -> Iterator[tuple[str, int | None]]:
    """The text of each guard that ``node`` is, and which operand it is."""
    match node:
        case ast.If(test=test, body=[*_, last]) if isinstance(last, _LEAVES):
            if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
                yield from ((f"{ast.unparse(one)} | …", n) for n, one in enumerate(test.values))
            else:
                yield ast.unparse(test), None
        case ast.ExceptHandler(body=[*_, last]) if _turns(last):
            yield f"except {'' if node.type is None else ast.unparse(node.type)}", None
        case ast.Return(value=ast.BoolOp(values=values)) if not _is_constant(values[-1]):
            yield from ((f"answer {ast.unparse(one)} | …", n) for n, one in enumerate(values))
        case ast.Return(value=ast.IfExp(test=test, body=this, orelse=that)) if _is_constant(
            this
        ) or _is_constant(that):
            yield f"either {ast.unparse(test)}", None
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]) if _is_fingerprint(node):
            yield f"compare {ast.unparse(node)}", None


def _turns(last: ast.stmt) -> bool:
    return isinstance(last, _LEAVES) and not (isinstance(last, ast.Raise) and last.exc is None)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _is_fingerprint(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    return any(ast.unparse(side).endswith(("_hash", "fingerprint")) for side in sides)


def _take_away(node: ast.AST, operand: int | None) -> None:
    match node:
        case ast.If(test=ast.BoolOp() as either) if operand is not None:
            either.values[operand] = _unheeded(either.values[operand])
        case ast.If():
            node.test = _unheeded(node.test)
        case ast.Return(value=ast.BoolOp(op=op) as answer) if operand is not None:
            instead = isinstance(op, ast.And)
            answer.values[operand] = _unheeded(answer.values[operand], instead)
        case ast.Return(value=ast.IfExp() as either):
            either.test = _unheeded(either.test, _is_constant(either.orelse))
        case ast.ExceptHandler():
            node.body = [ast.Raise()]
        case ast.Compare(ops=[op]):
            both: list[ast.expr] = [node.left, *node.comparators]
            node.left = ast.Constant(0)
            node.comparators = [_unheeded(ast.List(both, ast.Load()), 0)]
            node.ops = [op]
        case _:
            raise AssertionError(f"{node} is no guard")


def _unheeded(test: ast.expr, instead: int = False) -> ast.expr:
    """``test`` is still evaluated: what it names and what it raises is not the guard."""
    pair = ast.Tuple([test, ast.Constant(instead)], ast.Load())
    return ast.Subscript(pair, ast.Constant(1), ast.Load())


def _owners(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Each node inside a function, and the qualified name of the outermost one."""
    for top in tree.body:
        if isinstance(top, ast.ClassDef):
            for inner in top.body:
                if isinstance(inner, _FUNCTION):
                    yield from ((node, f"{top.name}.{inner.name}") for node in ast.walk(inner))
        elif isinstance(top, _FUNCTION):
            yield from ((node, top.name) for node in ast.walk(top))


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def modules() -> Iterator[ModuleType]:
    for package, prefix in ((lockstep, "lockstep."), (functions, "functions.")):
        for found in pkgutil.walk_packages(package.__path__, prefix):
            yield importlib.import_module(found.name)


def _function(module: ModuleType, name: str) -> FunctionType:
    """What ``name`` of ``module`` comes to below its decorators."""
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    while not isinstance(found, FunctionType):
        for wrapping in ("fget", "__wrapped__", "__func__", "wrapped"):
            if hasattr(found, wrapping):
                found = getattr(found, wrapping)
                break
        else:
            raise AssertionError(f"{module.__name__}.{name} is no function: {found!r}")
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType)
    return function


def _code_of(whole: CodeType, name: str, line: int) -> CodeType:
    for code in _codes(whole):
        if code.co_qualname == name and code.co_firstlineno == line:
            return code
    raise AssertionError(f"no code of {name}")


def _codes(whole: CodeType) -> Iterator[CodeType]:
    for constant in whole.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
