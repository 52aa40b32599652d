"""The model finds what is planted, tells it in a few steps, and knows when it is shallow."""

from pathlib import Path

import pytest

from tests.proof import auditor, model
from tests.proof.plants_model import PLANTS
from tests.proof.section import Extent, Form, proved

# The machine that is there for it.
FOUND_BY = {
    "any_amount_pays": "orders",
    "a_second_payment_is_kept": "orders",
    "a_refund_returns_goods": "money",
    "a_release_frees_what_its_order_wants": "stock",
    "a_key_ignores_its_content": "stock",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_it_finds_what_is_planted(database, plant, monkeypatch):
    monkeypatch.setitem(model.EXTENTS, Form.FIXED, (1, 40, 30))
    part = f"{FOUND_BY[plant]}.0"
    with PLANTS[plant]():
        [fault] = proved(model.SECTION, part, database, Extent(Form.FIXED)).faults
        assert len(fault.case.split("; ")) <= 8, fault.case
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it found
            model.replay(database, part, fault.case)
    model.replay(database, part, fault.case)


def test_a_machine_that_reaches_little_is_a_fault(database, monkeypatch):
    monkeypatch.setitem(model.EXTENTS, Form.BOUNDED, (1, 1, 1))
    [fault] = proved(model.SECTION, "money.0", database, Extent(Form.BOUNDED)).faults
    assert "never came about" in fault.why


def test_a_life_is_the_same_each_time(database):
    lives = [
        [life.steps for life in run.lives]
        for run in (
            model.run(database, *model.MACHINES["joint"], seed=7, lives=2, steps=20)
            for _ in range(2)
        )
    ]
    assert lives[0] == lives[1]


def test_the_auditor_knows_nothing_of_the_product():
    for module in Path(auditor.__file__).parent.glob("*.py"):
        for line in module.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import ", "from ")):
                assert line.split()[1].partition(".")[0] not in {"lockstep", "functions", "infra"}
