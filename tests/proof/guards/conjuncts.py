"""Takes a condition of SQL apart at its outermost ANDs."""

import re
from typing import Final

_ENDS: Final = re.compile(r"\b(?:ORDER BY|LIMIT|GROUP BY|FOR UPDATE|FOR SHARE|ON DUPLICATE)\b")
# The AND of a BETWEEN is not one.
_AND: Final = re.compile(r"\bBETWEEN\b.*?\bAND\b|(?P<sign>\bAND\b)", re.DOTALL | re.IGNORECASE)


def conjuncts(text: str, at: int = 0) -> list[tuple[int, str]]:
    """(where it stands, itself) of each operand of the condition that begins at ``at`` and goes on
    to the end of its brackets, of its clause, or of the text."""
    outer = _outermost(text[at:])
    ends = _ENDS.search(outer)
    whole = len(outer) if ends is None else ends.start()
    signs = [sign for sign in _AND.finditer(outer, 0, whole) if sign["sign"]]
    starts = [0, *(sign.end() for sign in signs)]
    stops = [*(sign.start() for sign in signs), whole]
    return [
        _stripped(text, at + start, at + stop) for start, stop in zip(starts, stops, strict=True)
    ]


def unwrapped(text: str) -> str:
    """Without the brackets around all of it."""
    text = text.strip()
    while text.startswith("(") and not _outermost(text)[1:-1].strip() and text.endswith(")"):
        text = text[1:-1].strip()
    return text


def _outermost(text: str) -> str:
    """Blanks instead of what stands in brackets, as far as the brackets around it."""
    depth, outer = 0, ""
    for sign in text:
        depth -= sign == ")"
        if depth < 0:
            break
        outer += " " if depth else sign
        depth += sign == "("
    return outer


def _stripped(text: str, start: int, stop: int) -> tuple[int, str]:
    part = text[start:stop]
    return start + len(part) - len(part.lstrip()), part.strip()
