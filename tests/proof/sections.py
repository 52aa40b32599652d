"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof import guards
from tests.proof.section import Section

SECTIONS: Final[tuple[Section, ...]] = (guards.SECTION,)
BY_NAME: Final = {section.name: section for section in SECTIONS}
