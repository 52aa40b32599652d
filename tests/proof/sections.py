"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof import arrivals, crash, guards, hostile, interleaving, kills, model
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
