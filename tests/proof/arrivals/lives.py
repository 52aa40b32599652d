"""The lives of an order whose messages and notices arrive in every order.

`begin` does what people did in it, and stops with everything undelivered that may be. `acts` are
done by people meanwhile, so they arrive like the rest. What else arrives is not listed here: it is
what a run of the life sends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.proof.arrivals import acts
from tests.proof.arrivals.kinds import Act
from tests.proof.world import World

# (order's status, close_reason, the payments' states in the order of their trades).
type End = tuple[str, str | None, tuple[str, ...]]


@dataclass(frozen=True)
class Life:
    """``ends`` says how it ends, by which of its arrivals came first; by itself under "".

    ``only_sent``: nothing arrives before it was sent. Elsewhere it may, as after a restore or when
    somebody sends an old command again: what caused it comes as well, only later.
    ``apart`` are columns that tell who was first, and so differ from order to order. What is
    ``lost`` never arrives; where that ``takes_time`` a later sweep must ask, so only what is left
    at rest is compared.
    """

    name: str
    begin: Callable[[World], object]
    ends: Mapping[str, End]
    acts: tuple[Act, ...] = ()
    only_sent: bool = False
    policy: str = "REFUND"
    apart: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    takes_time: bool = False

    def __str__(self) -> str:
        return self.name


_CANCEL: Final = Act("cancel", acts.cancel)
_ASK: Final = Act("ask", acts.ask)
_WHO_TOLD: Final = frozenset({"evidence", "reason"})
# Alipay says of a trade how much went back, and only a refund's notice says under which number.
_OF_WHICH_REFUND: Final = frozenset({"out_request_no", "out_biz_no", "source"})

_SOLD: Final[End] = ("PAID", None, ("APPLIED",))
_REFUNDED: Final[End] = ("REFUNDED", None, ("APPLIED",))
_CANCELLED: Final[End] = ("CLOSED", "CANCELLED", ())
_GIVEN_BACK: Final[End] = ("CLOSED", "CANCELLED", ("REFUNDED",))
_EXPIRED: Final[End] = ("CLOSED", "EXPIRED", ("REFUNDED",))

LIVES: Final = (
    Life("paid", acts.paid_and_finished, {"": _SOLD}),
    Life("cancelled", acts.place, {"": _CANCELLED}, acts=(_CANCEL,)),
    Life(
        "closed-by-the-channel", acts.closed_by_the_channel, {"": ("CLOSED", "GATEWAY_CLOSED", ())}
    ),
    Life(
        "cancelled-in-line",
        acts.place_hot,
        dict.fromkeys(("reserve-1", "cancel", "release-1"), _CANCELLED),
        acts=(_CANCEL,),
    ),
    Life(
        "hot",
        acts.hot_and_paid,
        {
            "reserve-1": _SOLD,
            "paid-1": _EXPIRED,
        },
        only_sent=True,
    ),
    Life("paid-late", acts.paid_late, {"": _GIVEN_BACK}),
    Life("wrong-sum", acts.paid_a_wrong_sum, {"": _EXPIRED}),
    Life(
        "reinstated",
        acts.paid_in_time_but_expired,
        {"": _SOLD},
        policy="REINSTATE",
    ),
    Life(
        "given-back-in-parts",
        acts.given_back_in_parts,
        dict.fromkeys(("refunded-1-3.00", "refunded-1-5.00"), _SOLD),
    ),
    Life(
        "given-back-until-it-was-over",
        acts.given_back_until_it_was_over,
        dict.fromkeys(("refunded-1-3.00", "finished-1"), _SOLD),
    ),
    Life(
        "given-back-in-whole",
        acts.given_back_in_whole,
        dict.fromkeys(("refunded-1-3.00", "refunded-1-9.90"), _REFUNDED),
    ),
    Life(
        "refunded-by-an-operator",
        acts.refunded_by_an_operator,
        {"": _REFUNDED},
    ),
    Life(
        "refunded-in-part-by-an-operator",
        acts.refunded_in_part_by_an_operator,
        {"": _SOLD},
    ),
    Life(
        "paid-twice",
        acts.paid_twice,
        {
            "paid-1": ("PAID", None, ("APPLIED", "REFUNDED")),
            "paid-2": ("PAID", None, ("REFUNDED", "APPLIED")),
        },
        only_sent=True,
    ),
    Life(
        "its-hold-comes-late",
        acts.paid_before_its_hold,
        {"": _SOLD},
        acts=(Act("hold", acts.HOLD.bring_back),),
    ),
    Life(
        "its-order-comes-late",
        acts.told_before_its_order,
        {"": _SOLD},
        acts=(Act("order", acts.ORDER.bring_back),),
        # What the ledger wrote before the order was known names none, and is never rewritten.
        apart=frozenset({"order_id"}),
    ),
    Life(
        "paid-late-and-given-back",
        acts.paid_late_and_given_back,
        {
            "refunded-1-3.00": _GIVEN_BACK,
            # Refused before anybody knew of the console's: a person sees to it.
            "refund-1": ("CLOSED", "CANCELLED", ("REFUND_FAILED",)),
        },
        only_sent=True,
    ),
    Life(
        "asked",
        acts.given_back_in_part,
        {"": _SOLD},
        acts=(_ASK,),
        apart=_WHO_TOLD,
    ),
    Life(
        "asked-late",
        acts.paid_late,
        {"": _GIVEN_BACK},
        acts=(_ASK,),
        apart=_WHO_TOLD,
    ),
    Life(
        "asked-when-over",
        acts.paid_and_finished,
        {"": _SOLD},
        acts=(_ASK,),
        apart=_WHO_TOLD,
    ),
    Life(
        "asked-and-given-back",
        acts.given_back_at_once,
        {"": _REFUNDED},
        acts=(_ASK,),
        apart=_WHO_TOLD | _OF_WHICH_REFUND,
    ),
    Life(
        "its-late-payment-is-never-told",
        acts.paid_late_and_given_back_in_whole,
        {"": _GIVEN_BACK},
        acts=(_ASK,),
        apart=_WHO_TOLD,
        lost=frozenset({"paid-1", "refund-1"}),
        takes_time=True,
    ),
    Life(
        "its-payment-is-never-told",
        acts.given_back_in_part,
        {"": _SOLD},
        acts=(_ASK,),
        apart=_WHO_TOLD,
        lost=frozenset({"paid-1"}),
    ),
)
BY_NAME: Final = {life.name: life for life in LIVES}
