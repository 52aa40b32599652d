"""The model knows when it is shallow, lives a life again as it was, and has a judge of its own."""

from pathlib import Path

from tests.proof.model import auditor
from tests.proof.model import section as model
from tests.proof.model.plants import PLANTS
from tests.proof.section import Extent, Form, proved


def test_a_fault_is_told_in_the_steps_that_it_needs(database):
    case = "place 42 x 1001:1; look 1; go 61; place 42 x 1001:2; cancel 42 1"
    [planted] = [plant.planted for plant in PLANTS if "known key" in plant.name]
    with planted():
        told = model.shortened(database, "REFUND", case)
    assert told == "place 42 x 1001:1; place 42 x 1001:2"


def test_a_machine_that_reaches_little_is_a_fault(database, monkeypatch):
    monkeypatch.setitem(model.EXTENTS, Form.BOUNDED, (1, 1, 1))
    [fault] = proved(model.SECTION, "money.0", database, Extent(Form.BOUNDED)).faults
    assert "never came about" in fault.why


def test_a_life_is_the_same_each_time(database):
    kind, policy = model.MACHINES["joint"]
    runs = [model.run(database, kind, policy, seed=7, lives=1, steps=15) for _ in ("once", "again")]
    once, again = ([life.steps for life in run.lives] for run in runs)
    assert once == again


def test_the_auditor_knows_nothing_of_the_product():
    for module in Path(auditor.__file__).parent.glob("*.py"):
        for line in module.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import ", "from ")):
                assert line.split()[1].partition(".")[0] not in {"lockstep", "functions", "infra"}
