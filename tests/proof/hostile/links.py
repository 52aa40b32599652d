"""Goal: what the operations answer holds together from one call to the next: an order that was
placed is found, started, cancelled and placed again under its key, in any order.

Method: a state machine of schemathesis's walks along links, which say where the number and the key
of an answer can be used. Every answer is held against the document, and at the end of each walk
nothing is half-done.
"""

import json
from contextlib import ExitStack
from typing import Any, Final

from hypothesis import seed
from schemathesis.generation.stateful.state_machine import APIStateMachine

from tests.proof.drawing import drawn_alike, quietly
from tests.proof.hostile.api import ADDRESS, HttpApi
from tests.proof.hostile.document import CHECKS, DOCUMENT, assert_checked, schema_of
from tests.proof.hostile.shop import SKUS, a_shop, assert_sound
from tests.proof.section import Extent, Form, Tally, naming
from tests.support import api
from tests.support.database import Database

PARTS: Final = ("links",)
WALKS: Final = {Form.FIXED: 8, Form.BOUNDED: 40, Form.LONG: 250}
STEPS: Final = 8

_NUMBER: Final = {"order_no": "$response.body#/order/order_no"}
_SAME: Final = {"order_no": "$request.path.order_no"}
_KEY: Final = "$request.header.Idempotency-Key"
_OF_AN_ORDER: Final = ("getOrder", "cancelOrder", "startPayment")
# Where what an operation answers, by its status, can be used.
LINKS: Final[Any] = {
    ("createOrder", "201"): {
        **{name: {"operationId": name, "parameters": _NUMBER} for name in _OF_AN_ORDER},
        "probe": {"operationId": "getOrderRequest", "parameters": {"key": _KEY}},
        "again": {
            "operationId": "createOrder",
            "parameters": {"header.Idempotency-Key": _KEY},
            "requestBody": "$request.body",
        },
    },
    ("startPayment", "201"): {
        name: {"operationId": name, "parameters": _SAME} for name in _OF_AN_ORDER
    },
    ("cancelOrder", "200"): {
        name: {"operationId": name, "parameters": _SAME} for name in _OF_AN_ORDER
    },
    ("listOrders", "200"): {
        "first": {
            "operationId": "getOrder",
            "parameters": {"order_no": "$response.body#/orders/0/order_no"},
        }
    },
}


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    tally.possible = None
    calls: list[object] = []
    tally.attempt(f"{extent.form}-{extent.seed}", lambda: walk(database, extent, calls))
    tally.tried = len(calls)


def replay(database: Database, part: str, case: str) -> None:
    with naming(case):
        form, number = case.split("-")
        extent = Extent(Form(form), int(number))
    walk(database, extent, [])


def walk(database: Database, extent: Extent, calls: list[object]) -> None:
    class Walk(_linked().as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            self.open = ExitStack()
            self.world = self.open.enter_context(a_shop(database))
            self.http_api = HttpApi()

        def teardown(self) -> None:
            with self.open:
                calls.extend(self.http_api.answered)
                assert_sound(self.world)

        def before_call(self, case: Any) -> None:
            _order_what_is_there(case.body)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"base_url": ADDRESS, "session": self.http_api.session()}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            call, answer = self.http_api.answered[-1]
            responses = case.operation.definition.raw["responses"]
            wrong = api.undocumented(answer, responses)
            assert not wrong, f"{wrong}: {call}\n{answer}"
            assert_checked(case, response, CHECKS)

    _run(Walk, extent)


def _order_what_is_there(body: Any) -> None:
    """And few of it."""
    lines = body.get("lines", ()) if isinstance(body, dict) else ()
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, dict):
            line |= {"sku_id": SKUS[len(str(line)) % len(SKUS)], "quantity": 1}


def _run(machine: type[APIStateMachine], extent: Extent) -> None:
    seed(extent.seed)(machine)
    with drawn_alike():
        machine.run(settings=quietly(max_examples=WALKS[extent.form], stateful_step_count=STEPS))


def _linked() -> Any:
    document = json.loads(json.dumps(DOCUMENT))
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if links := LINKS.get((operation["operationId"], status)):
                    response["links"] = links
    del document["paths"]["/alipay/notify"]
    return schema_of(document)
