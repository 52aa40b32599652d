"""Every life there is, by its name."""

from collections.abc import Mapping
from typing import Final

from tests.proof import lives_members, lives_money, lives_upkeep
from tests.proof.lives import Life, lives_of

LIVES: Final[Mapping[str, Life]] = {
    life.name: life
    for module in (lives_members, lives_money, lives_upkeep)
    for life in lives_of(module)
}
