"""What each machine must reach in the bounded form: a verb, and what it came to."""

from typing import Final

WANTED: Final[dict[str, tuple[str, ...]]] = {
    "stock": (),
    "orders": (),
    "money": (),
    "money-reinstate": (),
    "joint": (),
}
