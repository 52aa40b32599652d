"""When buyers come: their number and the span are given, the shape is chosen.

even     one after the other, always the same pause
poisson  independently of each other, equally likely at any moment
front    most when the doors open: half of them in the first tenth of the time
spike    a tenth of them within the first second, the others as in poisson
"""

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final

# exp(-x) is a half at this x: with it the first tenth of the time brings half of the buyers.
_FRONT_STEEPNESS: Final = 10 * math.log(2)
_SPIKE_SHARE: Final = 0.1


def even(buyers: int, seconds: float, _: random.Random) -> list[float]:
    return [seconds * n / buyers for n in range(buyers)]


def poisson(buyers: int, seconds: float, lot: random.Random) -> list[float]:
    """Given their number, the arrivals of a Poisson process are so many uniform moments, sorted
    (the conditional property; any textbook on stochastic processes)."""
    return sorted(lot.random() * seconds for _ in range(buyers))


def front(buyers: int, seconds: float, lot: random.Random) -> list[float]:
    """Exponential, cut off at the end of the span, by the inverse of its distribution function."""
    whole = -math.expm1(-_FRONT_STEEPNESS)
    return sorted(
        -math.log1p(-lot.random() * whole) / _FRONT_STEEPNESS * seconds for _ in range(buyers)
    )


def spike(buyers: int, seconds: float, lot: random.Random) -> list[float]:
    first = int(buyers * _SPIKE_SHARE)
    return sorted([*poisson(first, min(1, seconds), lot), *poisson(buyers - first, seconds, lot)])


SHAPES: Final[Mapping[str, Callable[[int, float, random.Random], list[float]]]] = {
    "even": even,
    "poisson": poisson,
    "front": front,
    "spike": spike,
}


def peak(times: Sequence[float]) -> int:
    """The most that come within one second, from any arrival on."""
    return max((bisect_left(times, when + 1, lo=n) - n for n, when in enumerate(times)), default=0)
