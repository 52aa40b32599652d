"""Guards matter: each one is taken away, and the proof that watches it must fail.

    schema          checks, keys, foreign keys and legal pairs, by the rows that they refuse
    rows-<area>     conditions and locks of statements, by the rows of tests/concurrency's tables
    rows-others     the rows there that take something else away, as a key or a look before a lock
    tests-<area>    what code and models refuse and compare, by the test that is known to miss it

The machine lists the guards. One that nothing misses is a fault, in every form of the proof: write
the test that misses it, which `search` then writes down, or take it out of the product. What no
test here can miss stands in equivalents.txt with the reason, and is told below the table.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from tests.concurrency.guards import Guard as Row
from tests.concurrency.guards import assert_missed
from tests.proof.guards import in_schema, in_sql, witnesses
from tests.proof.guards.bench import Bench, at_the_bench
from tests.proof.guards.equivalents import EQUIVALENTS
from tests.proof.guards.in_sql import SqlGuard
from tests.proof.guards.witnesses import Guard, rows, rows_of
from tests.proof.section import Extent, Form, Section, Tally, of_name
from tests.support.database import Database

# These need no database, and so little time that they are tried again in `make test`.
_QUICK: Final = "tests/unit/"
_UNSPEAKABLE: Final = re.compile(r"[`'\"$\\]")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    trial: Callable[[], object]


def parts(extent: Extent) -> Sequence[str]:
    """The rows are tests themselves, which `make test` runs."""
    by_tests = sorted({f"tests-{guard.area}" for guard in _witnessed(extent.form)})
    by_rows = sorted({f"rows-{guard.area}" for guard, _ in _statements()})
    if extent.form is Form.FIXED:
        return ["schema", *by_tests]
    return ["schema", *by_rows, "rows-others", *by_tests]


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    kind, _, area = part.partition("-")
    if kind == "tests":
        _by_tests(area, extent.form, tally)
        return
    cases = list(_cases(database, part))
    tally.possible = len(cases)
    for case in cases:
        database.empty()
        tally.attempt(case.name, case.trial)


def replay(database: Database, part: str, case: str) -> None:
    kind, _, area = part.partition("-")
    if kind == "tests":
        guard = of_name({_spoken(g.key): g for g in _of(area, Form.BOUNDED)}, case)
        at_the_bench(_tests_of([guard]), partial(_is_missed, guard))
        return
    of_name({one.name: one.trial for one in _cases(database, part)}, case)()


# --- rows -----------------------------------------------------------------------------------------


def _cases(database: Database, part: str) -> Iterator[Case]:
    kind, _, area = part.partition("-")
    if kind == "schema":
        for guard in in_schema.guards_of(database):
            yield Case(_spoken(guard.name), guard.trial)
    elif area == "others":
        used = [row for _, found in _statements() for row in found]
        for table, row in rows():
            if row not in used:
                yield Case(_spoken(f"{table} {row.name}"), partial(assert_missed, row, database))
    else:
        yield from _cases_of_statements(database, area)


def _cases_of_statements(database: Database, area: str) -> Iterator[Case]:
    """A row that takes several guards away is tried once."""
    done: set[str] = set()

    def trial(found: Sequence[Row]) -> None:
        for row in found:
            if row.name not in done:
                database.empty()
                assert_missed(row, database)
                done.add(row.name)

    for guard, found in _statements():
        if guard.area == area:
            yield Case(_spoken(guard.key), partial(trial, found))


@cache
def _statements() -> tuple[tuple[SqlGuard, Sequence[Row]], ...]:
    """Each guard of a statement that rows take away, and those rows."""
    return tuple((one, found) for one in in_sql.all_guards() if (found := rows_of(one)))


# --- tests ----------------------------------------------------------------------------------------


def _by_tests(area: str, form: Form, tally: Tally) -> None:
    guards = _of(area, form)
    here = [guard for guard in witnesses.without_rows() if guard.area == area]
    tally.possible = len(here)
    told = (f"{one.key}: {EQUIVALENTS[one.key]}" for one in here if one.key in EQUIVALENTS)
    tally.notes.extend(told)

    def work(bench: Bench) -> None:
        for guard in guards:
            tally.attempt(_spoken(guard.key), partial(_is_missed, guard, bench))

    at_the_bench(_tests_of(guards), work)


def _is_missed(guard: Guard, bench: Bench) -> None:
    name = witnesses.read().get(guard.key)
    assert name is not None, f"nothing is known to miss {guard.key}: see guards/search.py"
    assert name in bench.items, f"{name}, which missed {guard.key}, is gone: see guards/search.py"
    assert bench.passes_as_it_is(name), f"{name} fails without a change"
    with guard.without():
        assert not bench.passes(name), f"{name} does not miss {guard.key}"


def _tests_of(guards: Sequence[Guard]) -> list[str]:
    known = witnesses.read()
    return sorted({known[guard.key] for guard in guards if guard.key in known})


def _of(area: str, form: Form) -> list[Guard]:
    return [guard for guard in _witnessed(form) if guard.area == area]


def _witnessed(form: Form) -> list[Guard]:
    """What some test should miss; in `make test` what is tried quickly, or has no test."""
    known = witnesses.read()
    return [
        guard
        for guard in witnesses.wanted()
        if form is not Form.FIXED or known.get(guard.key, _QUICK).startswith(_QUICK)
    ]


def _spoken(name: str) -> str:
    """``name`` as it can stand in a command."""
    return _UNSPEAKABLE.sub("", name)


SECTION: Final = Section(
    name="guards",
    holds="each guard is missed by a proof once it is taken away",
    budget=lambda form: "the quick ones" if form is Form.FIXED else "every guard",
    parts=parts,
    prove=prove,
    replay=replay,
)
