"""Guards that nothing here can miss, from the list beside this file, each with the reason why.

They count as possible and not as tried, and are told below the table. Nothing is added to the list
by a machine: a guard that no proof misses and that is not on it fails the section, and what a proof
can show does not belong on it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_LIST: Final = Path(__file__).with_suffix(".txt")


def read(text: str) -> dict[str, str]:
    """Guard to reason: the indented lines after it. Raises ValueError where one gives none."""
    reasons: dict[str, str] = {}
    guard = ""
    for line in filter(None, text.splitlines()):
        if line[0].isspace():
            reasons[guard] = f"{reasons[guard]} {line.strip()}".lstrip()
        else:
            guard = line
            reasons[guard] = ""
    if silent := [guard for guard, reason in reasons.items() if not reason]:
        raise ValueError(f"no reason is given for {silent}")
    return reasons


EQUIVALENTS: Final[Mapping[str, str]] = read(_LIST.read_text(encoding="utf-8"))
