"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof.arrivals import section as arrivals
from tests.proof.crash import section as crash
from tests.proof.guards import section as guards
from tests.proof.hostile import section as hostile
from tests.proof.interleavings import section as interleaving
from tests.proof.kills import section as kills
from tests.proof.model import section as model
from tests.proof.section import Section

SECTIONS: Final[tuple[Section, ...]] = (
    crash.SECTION,
    interleaving.SECTION,
    arrivals.SECTION,
    guards.SECTION,
    model.SECTION,
    hostile.SECTION,
    kills.SECTION,
)
BY_NAME: Final = {section.name: section for section in SECTIONS}
