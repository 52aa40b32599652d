"""What the options of a measuring command have in common."""

import argparse
from collections.abc import Callable, Iterable
from typing import Final


def names_of(known: Iterable[str], noun: str) -> Callable[[str], list[str]]:
    """Read some of ``known``, separated by commas."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"no {noun} {unknown}: {', '.join(known)}")
        return names

    return read


def above_zero[N: (int, float)](kind: Callable[[str], N]) -> Callable[[str], N]:
    """Read a number of ``kind``."""

    def number(text: str) -> N:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return number


positive: Final = above_zero(int)
