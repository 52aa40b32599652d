"""Goal: the proof sees what it is for. A fault of each kind, planted in the product, is reported by
every part of it that watches there.

Method: plant it, try the part as `make proof` does, and read its tally. That the same part finds
nothing without the fault is what `make proof` and test_sections show.
"""

import pytest

from tests.proof.guards.plants import PLANTS
from tests.proof.plants import Kind
from tests.proof.section import Extent, Form, proved
from tests.proof.sections import BY_NAME

WATCHED = [(plant, section, part) for plant in PLANTS for section, part in plant.seen_by]


@pytest.mark.parametrize(
    ("plant", "section", "part"),
    WATCHED,
    ids=[f"{plant}: {section}/{part}" for plant, section, part in WATCHED],
)
def test_a_planted_fault_is_reported(database, plant, section, part):
    extent = Extent(Form.BOUNDED)
    assert part in BY_NAME[section].parts(extent)
    with plant.planted():
        tally = proved(BY_NAME[section], part, database, extent)
    database.empty()
    assert [fault for fault in tally.faults if plant.case in fault.case and fault.case]


@pytest.mark.xfail(reason="the other kinds are planted beside the sections that see them")
def test_no_kind_of_fault_is_without_a_plant_and_no_plant_without_a_watcher():
    assert {plant.kind for plant in PLANTS} == set(Kind)
    assert all(plant.seen_by for plant in PLANTS)
