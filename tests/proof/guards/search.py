"""Finds, for each guard that has none yet, a test that misses it, and writes that down.

    PYTHONPATH=layers/lockstep .local/venv/bin/python -m tests.proof.guards.search [test …]

First every test, or those named, runs once, and the lines of the product that it comes through are
noted; then each guard is taken away, and the tests that come through it are run, the most telling
and the quickest first, until one fails. The section tries just that one later on. What no test
misses is printed.
"""

import gc
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Final

import pytest
from hypothesis import is_hypothesis_test

from infra.local.paths import ROOT
from tests.proof.guards import witnesses
from tests.proof.guards.bench import Bench, at_the_bench
from tests.proof.guards.witnesses import Guard

_TESTS: Final = ("tests/unit", "tests/integration", "tests/concurrency")
# Races and storms see a guard missing now and then, which is no proof; long stories take too long.
_PASSED_OVER: Final = (
    "races",
    "storm",
    "versus",
    "oversell",
    "any_body",
    "test_local_",
    "explain",
    "crash_points",
    "arrival_orders",
    "test_old_rows_are_found",
)
_SECONDS_MAX: Final = 20.0
_TOOL: Final = 3


@dataclass
class Learnt:
    """What a test comes through, and how long it takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    through: dict[str, set[tuple[str, int]]] = field(default_factory=dict)

    def candidates(self, guard: Guard) -> list[str]:
        where = {(guard.module, line) for line in guard.lines}

        def order(name: str) -> tuple[int, float]:
            return -len(self.through[name] & where), self.seconds[name]

        return sorted((name for name in self.seconds if self.through[name] & where), key=order)


def main() -> int:
    known = witnesses.read()
    guards = [guard for guard in witnesses.wanted() if guard.key not in known]
    found: dict[str, str] = {}
    at_the_bench(sys.argv[1:] or _TESTS, lambda bench: found.update(_search(bench, guards)))
    wanted = {guard.key for guard in witnesses.wanted()}
    kept = {key: test for key, test in {**known, **found}.items() if key in wanted}
    text = json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False)
    witnesses.FILE.write_text(f"{text}\n", encoding="utf-8")
    missed = sorted(wanted - kept.keys())
    sys.stderr.writelines(f"nothing misses {key}\n" for key in missed)
    return 1 if missed else 0


def _search(bench: Bench, guards: Iterable[Guard]) -> Iterator[tuple[str, str]]:
    learnt = _learn(bench)
    for guard in guards:
        until = time.monotonic() + _SECONDS_MAX
        for name in learnt.candidates(guard):
            if time.monotonic() > until:
                break
            if _misses(bench, name, guard):
                sys.stderr.write(f"{guard.key}\n    {name}\n")
                yield guard.key, name
                break


def _misses(bench: Bench, name: str, guard: Guard) -> bool:
    """Twice, so that what happens by chance is not taken for it."""
    for _ in range(2):
        with guard.without():
            if bench.passes(name):
                return False
        if not bench.passes(name):
            return False
    return True


def _learn(bench: Bench) -> Learnt:
    learnt = Learnt()
    for name, item in bench.items.items():
        if any(word in name for word in _PASSED_OVER) or _is_drawn(item):
            continue
        began = time.monotonic()
        with _Noted() as noted:
            passed = bench.passes(name)
        seconds = time.monotonic() - began
        if passed:
            learnt.seconds[name] = seconds
            learnt.through[name] = noted.lines
    sys.stderr.write(f"{len(learnt.seconds)} tests, {sum(learnt.seconds.values()):.0f} s\n")
    return learnt


def _is_drawn(item: pytest.Item) -> bool:
    """What Hypothesis draws may be something else the next time."""
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.function)


class _Noted:
    """The lines of the product that are come through, by module."""

    def __enter__(self) -> "_Noted":
        self.lines: set[tuple[str, int]] = set()
        monitoring = sys.monitoring
        monitoring.use_tool_id(_TOOL, "guards")
        monitoring.register_callback(_TOOL, monitoring.events.LINE, self._note)
        self._modules = dict(_codes())
        for code in self._modules:
            monitoring.set_local_events(_TOOL, code, monitoring.events.LINE)
        monitoring.restart_events()
        return self

    def __exit__(self, *_: object) -> None:
        for code in self._modules:
            sys.monitoring.set_local_events(_TOOL, code, 0)
        sys.monitoring.free_tool_id(_TOOL)

    def _note(self, code: CodeType, line: int) -> object:
        self.lines.add((self._modules[code], line))
        return sys.monitoring.DISABLE


_CODES: dict[CodeType, str] = {}


def _codes() -> dict[CodeType, str]:
    if not _CODES:
        for function in gc.get_objects():
            if isinstance(function, FunctionType):
                module = function.__module__ or ""
                if module.startswith(("lockstep.", "functions.")):
                    for code in _with_inner(function.__code__):
                        _CODES[code] = module
    return _CODES


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
