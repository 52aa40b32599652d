"""What was tried and what held, as a table; and for each fault the command that tries it again."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tests.proof.section import Extent, Fault, Form, Section, Tally


@dataclass(frozen=True, slots=True)
class Proved:
    """A part of a section and what came of it. ``seconds`` of one process."""

    section: str
    part: str
    extent: Extent
    tally: Tally
    seconds: float


def table(sections: Sequence[Section], proved: Sequence[Proved]) -> str:
    """GitHub's markup, which a terminal shows as well. What is possible is the same for each seed
    and stands there once; what was tried is all seeds', some of it more than once."""
    rows = [
        _row(section, [one for one in proved if one.section == section.name])
        for section in sections
    ]
    seeds = len({one.extent.seed for one in proved})
    tried = "tried" if seeds <= 1 else f"tried, in {seeds} seeds"
    possible = "possible" if seeds <= 1 else "possible, once"
    head = ("section", "what holds", "budget", tried, possible, "faults", "seconds")
    lines = [head, ("---", "---", "---", "---:", "---:", "---:", "---:"), *rows]
    notes = [f"{one.section}/{one.part}: {note}" for one in proved for note in one.tally.notes]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + notes)


def told(one: Proved, fault: Fault) -> str:
    """How a fault was seen, and how it is seen again: by its case, or, where that is none, by all
    of its part from the same seed."""
    case = "/".join(filter(None, (one.section, one.part, fault.case)))
    words = ["make", "proof", _said("replay", case)]
    if not fault.case:
        words.append(_said("seed", str(one.extent.seed)))
        if one.extent.form is Form.LONG:
            words.append(_said("seeds", "1"))
    return f"{' '.join(words)}\n{fault.why.strip()}\n"


def _said(name: str, value: str) -> str:
    """As the shell hands it to make, to which a dollar is two."""
    return f"{name}={shlex.quote(value.replace('$', '$$'))}"


def _row(section: Section, proved: Sequence[Proved]) -> tuple[str, ...]:
    tallies = [one.tally for one in proved]
    return (
        section.name,
        section.holds,
        ", ".join({section.budget(one.extent.form): None for one in proved}),
        f"{sum(tally.tried for tally in tallies):,}",
        _possible(proved),
        str(sum(len(tally.faults) for tally in tallies)),
        f"{sum(one.seconds for one in proved):.0f}",
    )


def _possible(proved: Sequence[Proved]) -> str:
    """Of each part once, and as much as any seed saw of it."""
    most: dict[str, int] = {}
    for one in proved:
        if one.tally.possible is None:
            return "no end"
        most[one.part] = max(most.get(one.part, 0), one.tally.possible)
    is_bound = any(one.tally.is_bound for one in proved)
    return f"{'at most ' * is_bound}{sum(most.values()):,}"
