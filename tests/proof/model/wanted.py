"""What each machine must reach: a verb, and what it came to.

Some of it comes about once in a bounded form's lives, or not in those of every seed; so a machine
is given several times as many before it is said to have lost a way (`section.ROUNDS_MAX`).
"""

from typing import Final

_ANY: Final = (
    "place 201",
    "place 409 AMOUNT_CHANGED",
    "place 409 IDEMPOTENCY_KEY_REUSED",
    "place 409 OUT_OF_STOCK",
    "place 422 SKU_UNKNOWN",
    "cancel 200",
    "cancel 404 ORDER_NOT_FOUND",
    "start 201",
    "deliver release repeated",
    "deliver reserve held",
    "sweep CLOSED",
    "tell PAID None DONE",
    "rest over",
)
_PAGES: Final = (
    "pay paid anyway",
    "start 200",
    "start 409 ORDER_NOT_PAYABLE",
    "deliver refund done",
    "tell PAID DONE DONE",
    "tell BACK None DONE",
)
_OPERATORS: Final = (
    "console a part",
    "console all",
    "finish finished",
    "giveback 200",
    "refund 201",
    "tell PAID None UNMATCHED",
)

WANTED: Final[dict[str, tuple[str, ...]]] = {
    "stock": (
        *_ANY,
        "cancel 409 ORDER_NOT_CANCELLABLE",
        "deliver confirm sold",
        "deliver confirm repeated",
        "deliver release tombstone",
        "load 200",
        "load 409 STOCK_BELOW_HELD",
    ),
    "orders": (*_ANY, *_PAGES, "cancel 202", "start 409 STOCK_NOT_HELD"),
    "money": (
        *_ANY,
        *_PAGES,
        *_OPERATORS,
        "cancel 202",
        "deliver refund nothing",
        "refund 409 REFUND_TOO_LARGE",
    ),
    "money-reinstate": (*_ANY, *_PAGES, *_OPERATORS, "deliver reserve reinstated"),
    "joint": (*_ANY, "pay paid anyway", "cancel 202", "attach 200", "console a part", "load 200"),
}
