"""Goal: a token gives its bearer what it names and nothing else: a member their own orders, an
operator the operators' routes, and nobody anything by a claim that only looks like one.

Method: every strange claim at every route, enumerated; and every route that names an order, with
somebody else's. What the API's authorizer refuses before a function is called (expired, foreign,
unsigned) is shown on the deployed stack, in tests/e2e/test_gateway.py.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from tests.proof.hostile.shop import FOREIGN, KEY, OPEN, ORDERS, PAID, THEIRS, a_shop, rows_of
from tests.proof.section import Extent, Tally, of_name
from tests.proof.world import MEMBER, World
from tests.support import api, http_events
from tests.support.database import Database
from tests.support.http_events import Answer, Event
from tests.support.reading import full_width

type Claims = Mapping[str, Any]
type Make = Callable[[], Event]

# Each good but for the token.
OF_MEMBERS: Final[Mapping[str, Make]] = {
    "createOrder": lambda: http_events.post_order(key="k-token"),
    "listOrders": lambda: http_events.get("/orders"),
    "getOrderRequest": lambda: http_events.get(f"/orders/requests/{KEY}"),
    "getOrder": lambda: http_events.get(f"/orders/{OPEN}"),
    "cancelOrder": lambda: http_events.cancel_order(OPEN),
    "startPayment": lambda: http_events.post_payment(OPEN),
}
OF_OPERATORS: Final[Mapping[str, Make]] = {
    "refundOrder": lambda: http_events.refund_order(PAID),
    "listWaitingPayments": lambda: http_events.get("/ops/payments"),
    "giveMoneyBack": lambda: http_events.give_back("T1"),
    "attachPayment": lambda: http_events.attach("T1", OPEN),
}
# What a token can say of who it is for; the HTTP API tells most of it as text.
NOBODY: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        -42,
        42.0,
        4.2e1,
        1e17,
        float("nan"),
        float("inf"),
        10**18,
        10**400,
    ),
    *([], ["42"], [42], ["42", "43"], {}, {"sub": "42"}, "[42]", "[42 43]", "42,43", '"42"'),
    *(
        "",
        " ",
        "0",
        "-1",
        "+42",
        "042",
        "42.0",
        "4.2e1",
        "0x2a",
        "4_2",
        "42 ",
        " 42",
        "42\n",
        "\t42",
    ),
    *(
        "42\x00",
        "\x0042",
        "4\u00b2",
        "\u0664\u0662",
        full_width("42"),
        "42\u200b",
        "9" * 19,
        "9" * 5_000,
        "nobody",
    ),
    *("alice", "operator:alice", "None", "null", "true", "NaN", "42'--", "42 OR 1=1", "../42"),
)
SCOPES: Final[tuple[Any, ...]] = (
    *(None, True, 1, [], {}, "", " ", "lockstep", "ops", "lockstep/", "/ops", "lockstep/op"),
    *("lockstep/ops2", "lockstep/ops/", "xlockstep/ops", "lockstep/ops/read", "lockstep/reports"),
    *("LOCKSTEP/OPS", "lockstep/Ops", "lockstep/ops,openid", "openid,lockstep/ops", "lockstep ops"),
    *(
        "lockstep\\/ops",
        "lockstep%2Fops",
        "lockstep/ops\x00",
        "\u200blockstep/ops",
        "lockstep\uff0fops",
    ),
    *('"lockstep/ops"', "'lockstep/ops'", "lockstep/ops;", "-lockstep/ops", "!lockstep/ops"),
)
STRANGERS: Final[tuple[Any, ...]] = (
    *(None, True, False, 1.5, [], ["alice"], {}, {"sub": "alice"}),
    *("", " ", "a b", "alice\n", "\x00", "é", full_width("alice"), "a" * 65, "a" * 5_000, "\u200b"),
)


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    cases = _cases()
    tally.possible = len(cases)
    with a_shop(database) as world:
        before = rows_of(database)
        for name, trial in cases.items():
            tally.attempt(name, partial(_hold, trial, world, before))


def replay(database: Database, part: str, case: str) -> None:
    with a_shop(database) as world:
        _hold(of_name(_cases(), case), world, rows_of(database))


def _hold(trial: Callable[[], object], world: World, before: Claims) -> None:
    trial()
    assert rows_of(world.database) == before, "it left something"


def _cases() -> dict[str, Callable[[], object]]:
    return _members() | _operators() | _others()


def _members() -> dict[str, Callable[[], object]]:
    tokens: dict[str, Claims] = {
        **{f"{number}": {"sub": nobody} for number, nobody in enumerate(NOBODY)},
        "none": {},
        "another claim": {"uid": "42", "member": "42", "Sub": "42", "SUB": "42"},
        "an operator": http_events.as_operator(),
    }
    return {
        f"member, {name}, {route}": partial(_refuse, make, claims, "MEMBER_ID_INVALID")
        for name, claims in tokens.items()
        for route, make in OF_MEMBERS.items()
    }


def _operators() -> dict[str, Callable[[], object]]:
    tokens: dict[str, Claims] = {
        **{f"scope {n}": {"sub": "alice", "scope": scope} for n, scope in enumerate(SCOPES)},
        **{f"name {n}": http_events.as_operator() | {"sub": s} for n, s in enumerate(STRANGERS)},
        "none": {},
        "no scope": {"sub": "alice"},
        "a member": {"sub": "42"},
        "no name": {"scope": "lockstep/ops"},
        "other claims": {"sub": "alice", "scp": "lockstep/ops", "Scope": "lockstep/ops"},
    }
    return {
        f"operator, {name}, {route}": partial(_refuse, make, claims, "OPERATOR_SCOPE_MISSING")
        for name, claims in tokens.items()
        for route, make in OF_OPERATORS.items()
    }


def _refuse(make: Make, claims: Claims, code: str) -> None:
    """`ask` holds the answer against the document."""
    answer = _asked(make, claims)
    assert answer.code == code, (claims, answer)
    assert not re.search("|".join(ORDERS), answer.text)


def _asked(make: Make, claims: Claims) -> Answer:
    event = make()
    event["requestContext"]["authorizer"]["jwt"]["claims"] = dict(claims)
    return api.ask(event)


def _others() -> dict[str, Callable[[], object]]:
    """Of two members, each asks for what is the other's, and for what is nobody's."""
    found: dict[str, Callable[[], object]] = {}
    for member, owner in ((FOREIGN, OPEN), (MEMBER, THEIRS), (1, OPEN), (10**17, THEIRS)):
        for name, make in (
            ("getOrder", lambda number: http_events.get(f"/orders/{number}")),
            ("cancelOrder", http_events.cancel_order),
            ("startPayment", http_events.post_payment),
        ):
            found[f"{name} of {owner} by {member}"] = partial(_hide, make, owner, member)
        found[f"lists by {member}"] = partial(_list_own, owner, member)
    found["getOrderRequest of another's key"] = _probe
    return found


def _hide(make: Callable[[str], Event], number: str, member: int) -> None:
    """As if there were no such order, to the letter."""
    theirs = _asked(lambda: make(number), {"sub": str(member)})
    nobodys = _asked(lambda: make("NOBODYS1"), {"sub": str(member)})
    assert theirs.code == "ORDER_NOT_FOUND"
    assert theirs == nobodys


def _list_own(others: str, member: int) -> None:
    answer = _asked(lambda: http_events.get("/orders", limit="100"), {"sub": str(member)})
    assert answer.status == 200
    assert others not in answer.text


def _probe() -> None:
    for member, state in ((FOREIGN, "UNKNOWN"), (MEMBER, "SUCCESS")):
        answer = _asked(OF_MEMBERS["getOrderRequest"], {"sub": str(member)})
        assert answer.document["request_state"] == state


PARTS: Final = ("tokens",)
