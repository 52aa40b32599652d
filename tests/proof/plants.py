"""Faults that are planted in the product, and where the proof must report each.

Every section has a plants.py with its own; `test_planted_faults` plants them one by one. A section
that stays green then proves nothing.
"""

import builtins
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from tests.proof.section import Form

type Planted = Callable[[], AbstractContextManager[None]]


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
    """``planted`` holds the fault in the product. ``part`` reports it at ``case``, or, where that
    is empty, finds it by itself in its ``form``; ``seen`` stands in the report. ``kind`` is None
    where it is none of those."""

    name: str
    planted: Planted
    part: str
    case: str = ""
    seen: str = ""
    kind: Kind | None = None
    form: Form = Form.FIXED

    def __str__(self) -> str:
        return self.name


@contextmanager
def instead(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """What ``make`` makes of what was there: of a module also a builtin that it uses."""
    real = getattr(owner, name) if hasattr(owner, name) else getattr(builtins, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, make(real), raising=False)
        yield


def returning(value: Any) -> Callable[[Any], Callable[..., Any]]:
    """For `instead`: a function that does nothing, and returns that."""
    return lambda _: lambda *_, **__: value
