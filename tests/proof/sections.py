"""The sections of the proof, in the order in which the table names them."""

from typing import Final

from tests.proof import model
from tests.proof.section import Section

SECTIONS: Final[tuple[Section, ...]] = (model.SECTION,)
BY_NAME: Final = {section.name: section for section in SECTIONS}
