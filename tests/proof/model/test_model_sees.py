"""The model sees what is planted, finds it by itself and tells it in a few steps, and knows when it
is shallow."""

from pathlib import Path

import pytest

from tests.proof.model import auditor
from tests.proof.model import section as model
from tests.proof.model.plants import PLANTS, a_key_ignores_its_content
from tests.proof.section import Extent, Form, proved

# The steps to which the machines' own findings were shortened.
SEEN_BY = {
    "any_amount_pays": "place 42 x 1001:1; pay 1 9.91; tell PAID:t1",
    "a_second_payment_is_kept": (
        "place 42 x 1001:1; pay 1 9.90; pay 1 9.90; tell PAID:t1; tell PAID:t2"
    ),
    "a_refund_returns_goods": (
        "place 42 x 1001:1; pay 1 9.90; tell PAID:t1; refund 1 r rest; deliver refund t1#1"
    ),
    "a_release_frees_what_its_order_wants": (
        "place 42 x 1001:1,2001:1; cancel 42 1; deliver release 1-1"
    ),
    "a_key_ignores_its_content": "place 42 x 1001:1; place 42 x 1001:2",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_it_sees_what_is_planted(database, plant):
    model.replay(database, "joint.0", SEEN_BY[plant])
    with PLANTS[plant](), pytest.raises(AssertionError):
        model.replay(database, "joint.0", SEEN_BY[plant])


def test_it_finds_a_fault_and_tells_it_in_a_few_steps(database, monkeypatch):
    monkeypatch.setitem(model.EXTENTS, Form.FIXED, (1, 20, 12))
    with a_key_ignores_its_content():
        [fault] = proved(model.SECTION, "stock.0", database, Extent(Form.FIXED)).faults
        assert len(fault.case.split("; ")) == 2, fault.case
        with pytest.raises(AssertionError):
            model.replay(database, "stock.0", fault.case)
    model.replay(database, "stock.0", fault.case)


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
