"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof.hostile import HOSTILE
from tests.proof.section import Section

SECTIONS: Final[tuple[Section, ...]] = (HOSTILE,)
BY_NAME: Final = {section.name: section for section in SECTIONS}
