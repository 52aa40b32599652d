"""What is deployed, as syntax trees: the layer's modules and the functions."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from infra.local.paths import ROOT

LAYER = ROOT / "layers" / "lockstep" / "lockstep"
FUNCTIONS = ROOT / "functions"


@dataclass(frozen=True)
class Source:
    """``name`` as people say it: "orders/store.py", "functions/create_order.py"."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def package(self) -> str:
        """The part that the arrows are about: "orders", "functions", or "small"."""
        return self.name.partition("/")[0] if "/" in self.name else "small"

    def imports(self) -> Iterator[str]:
        """Full names of imported modules and of what is imported from them, wherever they stand."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names):
                    yield from (each.name for each in names)
                case ast.ImportFrom(module, names, 0):
                    yield from (f"{module}.{each.name}" for each in names)
                case ast.ImportFrom():
                    raise AssertionError(f"{self.name}: a relative import")

    def texts(self) -> Iterator[str]:
        """String literals that are no docstrings."""
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(self.tree):
            match node:
                case ast.Constant(value=str(text)) if id(node) not in docstrings:
                    yield text


def of(text: str, name: str = "sample.py") -> Source:
    """A source that is nowhere on disk."""
    source = Source(name, Path("nowhere"))
    source.__dict__["text"] = text
    return source


def layer() -> list[Source]:
    return [Source(str(path.relative_to(LAYER)), path) for path in sorted(LAYER.rglob("*.py"))]


def functions() -> list[Source]:
    return [Source(f"functions/{path.name}", path) for path in sorted(FUNCTIONS.glob("*.py"))]


def all_of_them() -> list[Source]:
    return [*layer(), *functions()]
