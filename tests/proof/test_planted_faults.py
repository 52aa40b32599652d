"""Goal: the proof sees what it is for. A fault of each kind, planted in the product, is reported by
the section that watches there, and the case that it names shows the fault again, and only the
fault.

Method: plant it, and replay the case that is known to show it, or let the section find one as
`make proof` does; then replay that case without the fault.
"""

import pytest

from tests.proof import section as framework
from tests.proof.arrivals import plants as arrivals
from tests.proof.crash import plants as crash
from tests.proof.guards import plants as guards
from tests.proof.hostile import plants as hostile
from tests.proof.interleavings import plants as interleavings
from tests.proof.kills import plants as kills
from tests.proof.model import plants as model
from tests.proof.plants import Kind
from tests.proof.section import Extent, Fault, Form, Tally, proved
from tests.proof.sections import BY_NAME

PLANTS = {
    "crash": crash.PLANTS,
    "interleavings": interleavings.PLANTS,
    "arrivals": arrivals.PLANTS,
    "guards": guards.PLANTS,
    "model": model.PLANTS,
    "hostile": hostile.PLANTS,
    "kills": kills.PLANTS,
}
PLANTED = [(BY_NAME[name], plant) for name, plants in PLANTS.items() for plant in plants]


@pytest.mark.parametrize(
    ("section", "plant"), PLANTED, ids=[f"{section.name}: {plant}" for section, plant in PLANTED]
)
def test_a_planted_fault_is_reported(database, monkeypatch, section, plant):
    assert plant.part in section.parts(Extent(Form.BOUNDED))
    with plant.planted():
        case = plant.case or _found(database, monkeypatch, section, plant).case
        assert case, "the part broke down, and named no case"
        reported = _tried(database, section, plant.part, case).faults
    assert plant.seen in "".join(fault.why for fault in reported)
    assert reported
    assert _tried(database, section, plant.part, case).faults == []


def test_every_kind_of_fault_is_planted():
    assert {plant.kind for _, plant in PLANTED} == {None, *Kind}


def test_every_section_sees_something_without_being_told_where():
    assert PLANTS.keys() == BY_NAME.keys()
    for name, plants in PLANTS.items():
        assert any(not plant.case for plant in plants), name


def _found(database, monkeypatch, section, plant) -> Fault:
    """The first that the part comes upon."""
    with monkeypatch.context() as patch:
        patch.setattr(framework, "FAULTS_MAX", 1)
        [fault] = proved(section, plant.part, database, Extent(plant.form)).faults
    return fault


def _tried(database, section, part, case) -> Tally:
    tally = Tally()
    database.empty()
    tally.attempt(case, lambda: section.replay(database, part, case))
    return tally
