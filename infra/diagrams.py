"""The state diagrams in the READMEs, made from the tables that the code decides by:
`python -m infra.diagrams` writes them, `--check` compares.

Each stands between `<!-- states:order -->` and `<!-- /states -->` (order, reservation, payment)."""

import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from infra import generated
from infra.local.paths import ROOT
from lockstep.inventory.model import RESERVATION_TRANSITIONS
from lockstep.orders.model import ORDER_TRANSITIONS
from lockstep.payments.model import PAYMENT_TRANSITIONS

READMES: Final = (ROOT / "README.md", ROOT / "README.zh-CN.md")

# Of one StrEnum each.
type Table = Mapping[Any, frozenset[Any]]

TABLES: Final[Mapping[str, Table]] = {
    "order": ORDER_TRANSITIONS,
    "reservation": RESERVATION_TRANSITIONS,
    "payment": PAYMENT_TRANSITIONS,
}
# Inside the creating transaction only; a diagram begins after them.
_BEFORE_THE_FIRST: Final = frozenset({"NONE", "INIT", "RECEIVED"})

_PLACE: Final = re.compile(r"<!-- states:(\w+) -->\n.*?<!-- /states -->", re.DOTALL)


def diagram(table: Table) -> str:
    """``table`` in Mermaid."""
    states = list(table)
    arrows = [
        f"    {_shown(source)} --> {target}"
        for source in states
        for target in states
        if target in table[source]
    ]
    ends = [f"    {state} --> [*]" for state in states if not table[state]]
    return "\n".join(["stateDiagram-v2", *arrows, *ends])


def filled(text: str) -> str:
    """``text`` with every diagram as the code has it. Raises ValueError if one has no place."""
    places = [found[1] for found in _PLACE.finditer(text)]
    if sorted(places) != sorted(TABLES):
        raise ValueError(f"state diagrams wanted: {', '.join(TABLES)}; places: {places}")
    return _PLACE.sub(lambda found: _block(found[1]), text)


def _block(name: str) -> str:
    return f"<!-- states:{name} -->\n```mermaid\n{diagram(TABLES[name])}\n```\n<!-- /states -->"


def _shown(state: StrEnum) -> str:
    return "[*]" if state in _BEFORE_THE_FIRST else str(state)


def main(arguments: Sequence[str]) -> None:
    contents: dict[Path, str] = {}
    for readme in READMES:
        try:
            contents[readme] = filled(readme.read_text(encoding="utf-8"))
        except ValueError as error:
            sys.exit(f"{readme.name}: {error}")
    generated.keep(contents, arguments, "python -m infra.diagrams")


if __name__ == "__main__":
    main(sys.argv[1:])
