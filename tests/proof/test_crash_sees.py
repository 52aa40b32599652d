"""A fault is planted, and the section reports it."""

import pytest

from tests.proof import section
from tests.proof.crash import SECTION
from tests.proof.plants_crash import SEEN_BY
from tests.proof.section import Extent, Form, proved


@pytest.mark.parametrize("plant", SEEN_BY, ids=lambda plant: plant.__name__)
def test_the_section_sees(database, monkeypatch, plant):
    monkeypatch.setattr(section, "FAULTS_MAX", 1)
    with plant():
        tally = proved(SECTION, SEEN_BY[plant], database, Extent(Form.BOUNDED))
    assert [fault for fault in tally.faults if fault.case]
