"""Faults, as opposed to refusals: a refusal is an expected outcome and is returned as a value.

LockstepError
├── SettingMissing        the deployment is wrong: a value is not set
├── TryAgain              a passing fault outlived its retries; the same call may work later
│   └── TimeShort         the time allowed for the operation ran out before it was decided
└── InvariantBroken       the data contradicts itself: page someone, never answer normally
"""


class LockstepError(Exception):
    """The root of every fault that Lockstep raises itself."""


class SettingMissing(LockstepError):
    """An environment variable, or a value of a secret, that this function needs is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not set")


class TryAgain(LockstepError):
    """A lock wait, deadlock, lost connection or failover outlived its bounded retries."""


class TimeShort(TryAgain):
    """The operation's time ran out; nothing of it was committed."""


class InvariantBroken(LockstepError):
    """A CHECK, key, legal pair or counter refused what the code held to be possible."""
