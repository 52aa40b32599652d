"""Goal: whatever is sent to the operations of the OpenAPI document, data that fits it and data that
does not, each answer is one that the document has, none is a 5xx, and a refusal leaves no row.

Method: schemathesis draws the requests of each operation from a seed, and some are given names of
things that are there. Each goes through the HTTP API's events to the real function, in the same
shop: a call that changed something is looked at for what is half-done, and the next one has a shop
made anew. So the nth request of a seed can be sent again alone.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final

import requests
import schemathesis
from hypothesis import given, seed
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from infra.openapi import FILE
from tests.proof.drawing import drawn_alike, quietly
from tests.proof.hostile.api import ADDRESS, NOTIFY, Call, Unrouted, responded
from tests.proof.hostile.shop import (
    KEY,
    OPEN,
    ORDERS,
    PAID,
    SKUS,
    WAITING,
    a_shop,
    assert_sound,
    rows_of,
)
from tests.proof.section import Extent, Form, Tally, naming, of_name
from tests.proof.world import World
from tests.support import api
from tests.support.database import Database

# Requests of an operation, of either kind.
COUNT: Final = {Form.FIXED: 10, Form.BOUNDED: 60, Form.LONG: 200}
DOCUMENT: Final[Any] = json.loads(FILE.read_text(encoding="utf-8"))
OPERATIONS: Final = {
    operation["operationId"]: (path, method)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
PARTS: Final = tuple(f"document-{name}" for name in OPERATIONS)
CHECKS: Final = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
)
# In place of a status.
NOWHERE: Final = 0
# Of data that does not fit.
REFUSALS: Final = (checks.negative_data_rejection, checks.missing_required_header)


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    tally.possible = None
    answered: Counter[int] = Counter()
    waiting = list(_drawn(part, extent))
    while waiting:
        with a_shop(database) as world:
            before = rows_of(database)
            while waiting and rows_of(database) == before:
                name, case = waiting.pop(0)
                tally.attempt(name, partial(_count, answered, world, case))
    tally.tried -= answered[NOWHERE]
    # What is refused throughout has shown nothing of what is beyond the refusals.
    tally.attempt("", partial(_assert_taken, answered))


def replay(database: Database, part: str, name: str) -> None:
    with naming(name):
        form, number, _, _ = name.split("-")
        extent = Extent(Form(form), int(number))
    cases = dict(_drawn(part, extent))
    with a_shop(database) as world:
        _try(world, of_name(cases, name))


def _try(world: World, case: Any) -> int:
    """Send it and judge the answer; its status, or NOWHERE if it came to no function."""
    request = _prepared(case)
    call = Call.of(request)
    before = rows_of(world.database)
    try:
        answer = call.send()
    except Unrouted:
        return NOWHERE
    told = f"{call}\n{answer}"
    if call.route != NOTIFY:
        responses = DOCUMENT["paths"][case.operation.path][case.operation.method]["responses"]
        wrong = api.undocumented(answer, responses)
        assert not wrong, f"{wrong}: {told}"
    # An empty parameter is an absent one, which the document has no words for.
    has_blank = "" in case.query.values() or "=&" in f"{call.target}&"
    assert_checked(case, responded(request, answer), CHECKS if has_blank else (*CHECKS, *REFUSALS))
    if answer.status >= 400:
        assert rows_of(world.database) == before, f"it left something: {told}"
    elif rows_of(world.database) != before:
        assert_sound(world)
    else:
        assert answer.status != HTTPStatus.CREATED, f"it left nothing: {told}"
    return answer.status


def assert_checked(case: Any, response: Any, wanted: Sequence[Any]) -> None:
    """As schemathesis sees it, whose own failures are no Exception."""
    try:
        case.validate_response(response, checks=list(wanted))
    except BaseExceptionGroup as failures:
        raise AssertionError(str(failures)) from None


def _count(answered: Counter[int], world: World, case: Any) -> None:
    answered[_try(world, case)] += 1


def _assert_taken(answered: Counter[int]) -> None:
    assert any(200 <= status < 300 for status in answered), answered


def _prepared(case: Any) -> requests.PreparedRequest:
    said = case.as_transport_kwargs(base_url=ADDRESS)
    return requests.Session().prepare_request(requests.Request(**said))


def _drawn(part: str, extent: Extent) -> Iterator[tuple[str, Any]]:
    """The requests of an operation, each under its name."""
    path, method = OPERATIONS[part.removeprefix("document-")]
    operation = schema()[path][method.upper()]
    # Alipay's form may be anything, so that nothing fails to fit it: fuzz.py is about that.
    modes = GenerationMode if f"{method} {path}" != NOTIFY else [GenerationMode.POSITIVE]
    for mode in modes:
        chance = random.Random(extent.seed)
        for nth, case in enumerate(_cases(operation, mode, extent)):
            if mode.is_positive and nth % 3 != 1:
                _name_what_is_there(case, chance, is_plain=nth % 3 == 0)
            yield f"{extent.form}-{extent.seed}-{mode.value}-{nth}", case


@cache
def schema() -> Any:
    return schema_of(DOCUMENT)


def schema_of(document: Any) -> Any:
    """Without its tokens: the authorizer sees to these before a function is called."""
    copy = json.loads(json.dumps(document))
    del copy["security"], copy["components"]["securitySchemes"]
    for methods in copy["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
    return schemathesis.openapi.from_dict(copy)


def _cases(operation: Any, mode: GenerationMode, extent: Extent) -> Sequence[Any]:
    found: list[Any] = []

    @seed(extent.seed)
    @quietly(max_examples=COUNT[extent.form])
    @given(operation.as_strategy(generation_mode=mode))
    def keep(case: Any) -> None:
        found.append(case)

    with drawn_alike():
        keep()
    return found


def _name_what_is_there(case: Any, chance: random.Random, *, is_plain: bool) -> None:
    """``is_plain``: so that it can be done."""
    there: dict[str, Sequence[Any]] = {
        "order_no": ORDERS,
        "trade_no": (WAITING,),
        "key": (KEY,),
        "sku_id": SKUS,
    }
    body = case.body if isinstance(case.body, dict) else {}
    if is_plain:
        there["order_no"] = (PAID,) if case.operation.path.startswith("/ops/orders") else (OPEN,)
        for name in ("amount", "expected_amount", "restock"):
            body.pop(name, None)
    lines = [*body.get("lines", ()), *body.get("restock", ())]
    for fields in (case.path_parameters or {}, body, *lines):
        for name in fields.keys() & there.keys():
            fields[name] = chance.choice(there[name])
    for line in lines:
        line["quantity"] = chance.randint(1, 3)
    if lines and "expected_amount" in body:
        body["expected_amount"] = None
