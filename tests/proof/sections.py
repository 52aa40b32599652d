"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof import arrivals, crash, model
from tests.proof.hostile import HOSTILE
from tests.proof.interleaving import INTERLEAVINGS
from tests.proof.kills import KILLS
from tests.proof.section import Section

SECTIONS: Final[tuple[Section, ...]] = (
    crash.SECTION,
    INTERLEAVINGS,
    arrivals.SECTION,
    model.SECTION,
    HOSTILE,
    KILLS,
)
BY_NAME: Final = {section.name: section for section in SECTIONS}
