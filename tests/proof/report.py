"""What was tried and what held, as a table; and for each fault the command that tries it again."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.proof.section import Fault, Section, Tally


@dataclass(frozen=True, slots=True)
class Proved:
    """A part of a section and what came of it. ``seconds`` of one process."""

    section: str
    part: str
    tally: Tally
    seconds: float


def table(sections: Sequence[Section], proved: Sequence[Proved]) -> str:
    """GitHub's markup, which a terminal shows as well."""
    rows = [
        _row(section, [one for one in proved if one.section == section.name])
        for section in sections
    ]
    head = ("section", "what holds", "tried", "possible", "faults", "seconds")
    lines = [head, ("---", "---", "---:", "---:", "---:", "---:"), *rows]
    notes = [f"{one.section}/{one.part}: {note}" for one in proved for note in one.tally.notes]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + notes)


def told(one: Proved, fault: Fault) -> str:
    """How a fault was seen, and how it is seen again."""
    case = "/".join(filter(None, (one.section, one.part, fault.case)))
    return f"make proof replay='{case}'\n{fault.why.strip()}\n"


def _row(section: Section, proved: Sequence[Proved]) -> tuple[str, ...]:
    tallies = [one.tally for one in proved]
    possible = [tally.possible for tally in tallies]
    return (
        section.name,
        section.holds,
        f"{sum(tally.tried for tally in tallies):,}",
        "no end" if None in possible else f"{sum(filter(None, possible)):,}",
        str(sum(len(tally.faults) for tally in tallies)),
        f"{sum(one.seconds for one in proved):.0f}",
    )
