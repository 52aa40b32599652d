"""Every life there is, by its name."""

from collections.abc import Mapping
from typing import Final

from tests.proof.crash import members, notices, queues, upkeep
from tests.proof.crash.lives import Life, lives_of

LIVES: Final[Mapping[str, Life]] = {
    life.name: life for module in (members, notices, queues, upkeep) for life in lives_of(module)
}
