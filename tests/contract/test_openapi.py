"""The OpenAPI document is what the code says, and the routes are the same in the code, in the
document and in the template."""

import re
from collections.abc import Iterator

import pytest

from infra import openapi
from infra.local.paths import ROOT
from infra.openapi_routes import OPERATIONS
from lockstep.api.problems import PROBLEMS
from tests.support import template
from tests.support.api import DOCUMENT, undocumented
from tests.support.http_events import Answer, an_order_body
from tests.support.schema import faults

OPEN = ("POST", "/alipay/notify")
SCHEMAS = DOCUMENT["components"]["schemas"]


def documented() -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
    }


def resolved() -> dict[str, set[tuple[str, str]]]:
    """The routes that each function's resolver knows, from its decorators."""
    return {
        file.stem: {
            (method.upper(), re.sub(r"<(\w+)>", r"{\1}", path))
            for method, path in re.findall(r'^@app\.(\w+)\("(.+)"\)$', file.read_text(), re.M)
        }
        for file in (ROOT / "functions").glob("*.py")
    }


def test_the_document_is_what_the_code_says():
    openapi.main(["--check"])


def test_a_document_that_drifted_fails_the_check(tmp_path, monkeypatch):
    monkeypatch.setattr(openapi, "FILE", tmp_path / "openapi.json")
    with pytest.raises(SystemExit, match=r"run `python -m infra.openapi`"):
        openapi.main(["--check"])
    openapi.main([])
    openapi.main(["--check"])
    (tmp_path / "openapi.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"openapi\.json"):
        openapi.main(["--check"])


def test_the_document_has_the_routes_of_the_template_and_no_other():
    deployed = {route for function in template.functions().values() for route in function.routes}
    assert documented() == deployed


def test_each_function_answers_the_routes_that_the_template_gives_it():
    given = {name: set(function.routes) for name, function in template.functions().items()}
    # The notice has one route and needs no resolver.
    given["alipay_notify"].remove(OPEN)
    assert given == resolved()


def test_every_refusal_is_documented_somewhere():
    documented_codes = {code for operation in OPERATIONS for code in operation.problems}
    # An address that the API has no route for never reaches a function.
    assert documented_codes == PROBLEMS.keys() - {"ROUTE_NOT_FOUND"}


def test_every_route_but_the_notice_takes_a_members_token():
    assert DOCUMENT["security"] == [{"memberToken": []}]
    opened = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method, operation in operations.items()
        if operation.get("security") == []
    }
    assert opened == {OPEN}


def test_operators_routes_ask_for_their_scope():
    for path, operations in DOCUMENT["paths"].items():
        for operation in operations.values():
            asks = operation.get("security") == [{"memberToken": ["lockstep/ops"]}]
            assert asks == path.startswith("/ops/")


def references(node: object) -> Iterator[str]:
    match node:
        case dict():
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for inner in node.values():
                yield from references(inner)
        case list():
            for inner in node:
                yield from references(inner)


def test_every_reference_leads_somewhere_and_every_schema_is_used():
    named = {f"#/components/schemas/{name}" for name in SCHEMAS}
    assert set(references(DOCUMENT)) == named


@pytest.mark.parametrize("body", [an_order_body(), an_order_body(note="n", expected_amount="9.90")])
def test_a_good_body_is_one_in_the_document_too(body):
    assert faults(body, SCHEMAS["PlaceOrderBody"], SCHEMAS) == []


@pytest.mark.parametrize(
    "body",
    [
        an_order_body(lines=[]),
        an_order_body(lines=[{"sku_id": 1001, "quantity": True}]),
        an_order_body(lines=[{"sku_id": 0, "quantity": 1}]),
        an_order_body(note="n" * 201),
        an_order_body(expected_amount="1e1"),
        an_order_body(member_id=42),
        {},
    ],
)
def test_a_bad_body_is_none_in_the_document_either(body):
    assert faults(body, SCHEMAS["PlaceOrderBody"], SCHEMAS)


def test_an_answer_that_says_more_or_less_than_the_document_is_found():
    responses = DOCUMENT["paths"]["/stock/{sku_id}"]["get"]["responses"]
    good = (
        '{"sku_id":1,"title":"t","price":"1.00","stock":1,"lock_stock":0,"available":1,"hot":false}'
    )

    def found(status: int, text: str, content_type: str = "application/json", **headers: str):
        return undocumented(
            Answer(status, {"content-type": content_type} | headers, text), responses
        )

    assert found(200, good) == []
    assert found(200, good.replace('"hot"', '"cold"'))
    assert found(200, good.replace('"1.00"', "1.0"))
    assert found(200, good[:-1] + ',"secret":1}')
    assert found(200, good, "text/plain")
    assert found(200, good, etag="x") == ["header etag"]
    assert found(418, good) == ["status 418"]
