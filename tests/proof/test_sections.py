"""A fixed share of every section, so that `make test` holds what `make proof` shows."""

import pytest

from tests.proof.section import Extent, Form, proved
from tests.proof.sections import SECTIONS

EXTENT = Extent(Form.FIXED)
PARTS = [(section, part) for section in SECTIONS for part in section.parts(EXTENT)]


@pytest.mark.parametrize(
    ("section", "part"), PARTS, ids=[f"{section.name}/{part}" for section, part in PARTS]
)
def test_it_holds(database, section, part):
    tally = proved(section, part, database, EXTENT)
    assert tally.faults == []
    assert tally.tried > 0
