"""Guards that no test misses, from the list beside this file, which says why under each heading.

They count as possible and not as tried. Nothing is added to the list by a machine: a new guard
comes with the proof that misses it.
"""

from pathlib import Path
from typing import Final

_LIST: Final = Path(__file__).with_suffix(".txt")
UNPROVED: Final = frozenset(
    line
    for line in _LIST.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
