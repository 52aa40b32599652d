"""Faults that are planted in the product, and the parts of the proof that must report each.

`test_planted_faults` plants them one by one: a proof that stays green then proves nothing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What people really get wrong in such a system."""

    GUARD_DROPPED = "drop one guard"
    SENT_BEFORE_COMMIT = "send before commit"
    MARKED_BEFORE_SEND = "mark the outbox before sending"
    CALLERS_QUANTITIES = "release from the caller's quantities"
    AMOUNT_UNCHECKED = "skip the amount check"
    WENT_ON_AFTER_1205 = "go on after 1205"
    LOST_ANSWER_IS_FAILURE = "treat 2013 after COMMIT as failure"


@dataclass(frozen=True, slots=True)
class Plant:
    """``planted`` holds the fault in the product; each of ``seen_by``, (section, part), reports it
    in its bounded form. ``case`` is a word of the case that does, where only one should."""

    kind: Kind
    name: str
    planted: Callable[[], AbstractContextManager[None]]
    seen_by: tuple[tuple[str, str], ...]
    case: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"
