"""The model: Hypothesis state machines over orders, stock and money, held against an auditor.

A machine takes step after step on the real functions and the real database. Of each the auditor,
which is plain dictionaries and knows the promises only, says before what must be answered and what
must be so afterwards; then everything that is so is compared. In the end nobody does anything any
more, hours pass, and everything must have ended.

    stock     many orders for few pieces, a catalogue that changes, queues that repeat or fail
    orders    pages, payments once, twice, late and wrong, a channel that does not answer
    money     refunds of operators and of the merchant's console, money that fits no order
    joint     everybody at once

`tried` counts steps. What fails is shortened until no step of it can be left out; its case is those
steps, in words. A machine that no longer reaches what it is there for is a fault, too (`WANTED`):
one that has not yet goes on with further seeds, and only after several times its lives is it one.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Never

import hypothesis
import pytest
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.stateful import run_state_machine_as_test

from tests.proof.drawing import drawn_alike, quietly
from tests.proof.model.life import Life
from tests.proof.model.machine import Machine
from tests.proof.model.rules import Buyers, Hours, Members, Merchant, Quick
from tests.proof.model.rules_of_money import BadDays, Operators
from tests.proof.model.still_world import a_still_world
from tests.proof.model.wanted import WANTED
from tests.proof.section import Extent, Form, Section, Tally, UnknownCase
from tests.support.database import Database


class Stock(Members, Quick, Hours, Merchant):
    """Many orders for few pieces, paid at once or not at all."""


class Orders(Members, Buyers, Hours, BadDays):
    """Pages, their payments and their ends."""


class Money(Members, Buyers, Quick, Hours, BadDays, Operators):
    """Whatever comes and goes back."""


class Joint(Members, Buyers, Quick, Hours, Merchant, BadDays, Operators):
    """Everybody at once."""


MACHINES: Final[dict[str, tuple[type[Machine], str]]] = {
    "stock": (Stock, "REFUND"),
    "orders": (Orders, "REFUND"),
    "money": (Money, "REFUND"),
    "money-reinstate": (Money, "REINSTATE"),
    "joint": (Joint, "REINSTATE"),
}
# How many seeds, of how many lives each, of how many steps.
EXTENTS: Final = {Form.FIXED: (1, 4, 30), Form.BOUNDED: (1, 24, 40), Form.LONG: (6, 20, 80)}
# Of a machine's lives, where something that is wanted of it has not come about before.
ROUNDS_MAX: Final = 6
# Tries to do without a step, for one fault.
SHORTER_MAX: Final = 80


def parts(extent: Extent) -> Sequence[str]:
    seeds, _, _ = EXTENTS[extent.form]
    return [f"{name}.{nth}" for name in MACHINES for nth in range(seeds)]


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    name, _, nth = part.partition(".")
    seed = extent.seed * 1000 + int(nth)
    tally.possible = None
    seen: Counter[str] = Counter()
    for _ in range(ROUNDS_MAX):
        machine = _a_round(database, name, extent.form, seed, tally)
        seen += sum((life.seen for life in machine.lives), Counter())
        missing = [what for what in WANTED[name] if not seen[what]]
        if machine.departed or not missing or extent.form is Form.FIXED or tally.is_over:
            return
        # Far from where another part or another run begins.
        seed += 1_000_000
    tally.attempt("", partial(_fail_as_shallow, missing))


def _a_round(database: Database, name: str, form: Form, seed: int, tally: Tally) -> type[Machine]:
    kind, policy = MACHINES[name]
    _, lives, steps = EXTENTS[form]
    machine = run(database, kind, policy, seed=seed, lives=lives, steps=steps)
    tally.tried += sum(len(life.steps) for life in machine.lives)
    if machine.departed:
        case = shortened(database, policy, machine.departed[0].steps)
        tally.tried -= 1
        tally.attempt(case, partial(live, database, policy, case))
    return machine


def replay(database: Database, part: str, case: str) -> None:
    for step in case.split("; "):
        if not hasattr(Life, f"_{step.partition(' ')[0]}"):
            raise UnknownCase(f"{step} is no step of a life")
    live(database, MACHINES[part.partition(".")[0]][1], case)


def run(
    database: Database, kind: type[Machine], policy: str, *, seed: int, lives: int, steps: int
) -> type[Machine]:
    """Live so many lives; the machine that knows them."""
    members = {"database": database, "policy": policy, "lives": [], "departed": []}
    machine: type[Machine] = hypothesis.seed(seed)(type(kind.__name__, (kind,), members))
    extent = quietly(max_examples=lives, stateful_step_count=steps)
    try:
        with drawn_alike(), _each_life_new():
            run_state_machine_as_test(machine, settings=extent)
    except Exception:
        if not machine.departed:  # what departed is kept, with its steps
            raise
    return machine


def live(database: Database, policy: str, case: str) -> Life:
    """One life, from its steps."""
    with a_still_world(database, policy) as still:
        life = Life(still, policy)
        for step in filter(None, case.split("; ")):
            life.do(step)
        return life


def shortened(database: Database, policy: str, case: str) -> str:
    """The same fault in fewer steps: halves of them are left out, then quarters, then each."""
    steps, tries = case.split("; "), itertools.count()
    fault = _fault_of(database, policy, steps)
    size = len(steps) // 2
    while fault is not None and size:
        for at in range(len(steps) - size, -1, -size):
            fewer = [*steps[:at], *steps[at + size :]]
            if next(tries) < SHORTER_MAX and _fault_of(database, policy, fewer) == fault:
                steps = fewer
        size //= 2
    return "; ".join(steps)


def _fault_of(database: Database, policy: str, steps: Sequence[str]) -> tuple[object, ...] | None:
    """What kind of fault, and where: steps that cannot be taken fail otherwise."""
    try:
        live(database, policy, "; ".join(steps))
    except Exception as fault:
        where = fault.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        return type(fault), where and (where.tb_frame.f_code, where.tb_lineno)
    return None


@contextmanager
def _each_life_new() -> Iterator[None]:
    """Hypothesis makes half of its examples from others by repeating parts of them, which finds
    what repetition breaks. Here that is what the rules are for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConjectureRunner, "generate_mutations_from", lambda *_: None)
        yield


def _fail_as_shallow(missing: Sequence[str]) -> Never:
    raise AssertionError(f"never came about: {missing}")


def _budget(form: Form) -> str:
    seeds, lives, steps = EXTENTS[form]
    return f"{seeds * lives} lives a machine, of {steps} steps"


SECTION: Final = Section(
    "model",
    "every call answers, and leaves behind, what an independent model says",
    _budget,
    parts,
    prove,
    replay,
)
