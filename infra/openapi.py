"""The HTTP interface as an OpenAPI 3.1 document: `python -m infra.openapi` writes it, `--check`
compares. Bodies, codes, states and patterns are read from the code; `openapi_routes` holds the
table of routes, `openapi_models` the answers."""

import json
import sys
import tomllib
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from infra import generated
from infra.local.paths import ROOT
from infra.openapi_models import problem_model
from infra.openapi_routes import OPERATIONS, Json, Operation
from lockstep.api.problems import PROBLEM_JSON, PROBLEMS

FILE: Final = Path(__file__).with_name("openapi.json")

_RETRY_AFTER: Final = {
    "Retry-After": {
        "description": "Seconds after which to ask again.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[1-9][0-9]*$"},
    }
}
_MAY_RETRY_AFTER: Final = {
    "Retry-After": {
        **_RETRY_AFTER["Retry-After"],
        "description": "Seconds after which to look again, while the order is RESERVING.",
        "required": False,
    }
}

# Alipay's own call: no token, and exactly one of two words as the answer.
_NOTIFY: Final = {
    "operationId": "alipayNotify",
    "summary": "A notice of Alipay, checked by its signature.",
    "security": [],
    "requestBody": {
        "required": True,
        "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}},
    },
    "responses": {
        "200": {
            "description": "success: durably stored. failure: to be sent again.",
            "content": {
                "text/plain": {"schema": {"type": "string", "enum": ["success", "failure"]}}
            },
        }
    },
}


class _Untitled(GenerateJsonSchema):
    """Without the titles that only repeat a field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def document() -> Json:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    paths: Json = {"/alipay/notify": {"post": _NOTIFY}}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lockstep",
            "version": version["version"],
            "description": version["description"],
        },
        "security": [{"memberToken": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "memberToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


def text() -> str:
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _describe(operation: Operation) -> Json:
    described: Json = {"operationId": operation.name, "summary": operation.summary}
    if operation.scope is not None:
        described["security"] = [{"memberToken": [operation.scope]}]
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.body is not None:
        content = {"application/json": {"schema": _reference(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    responses: dict[int, Json] = {}
    for status, (description, model) in operation.answers.items():
        content = {"application/json": {"schema": _reference(model)}}
        responses[status] = {"description": description, "content": content}
    for status in sorted({PROBLEMS[code][0] for code in operation.problems}):
        models = [_problem(code) for code in operation.problems if PROBLEMS[code][0] == status]
        schema = {"anyOf": [_reference(model) for model in models]}
        responses[status] = {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM_JSON: {"schema": schema}},
        }
    for status in operation.waits | ({503} & responses.keys()):
        responses[status]["headers"] = _RETRY_AFTER
    for status in operation.may_wait:
        responses[status]["headers"] = _MAY_RETRY_AFTER
    described["responses"] = {str(status): responses[status] for status in sorted(responses)}
    return described


def _problem(code: str) -> type[BaseModel]:
    return problem_model(code, HTTPStatus(PROBLEMS[code][0]).phrase)


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _schemas() -> Json:
    taken = {o.body for o in OPERATIONS if o.body is not None}
    answered = {model for o in OPERATIONS for _, model in o.answers.values()}
    problems = [_problem(code) for code in sorted({c for o in OPERATIONS for c in o.problems})]
    _, definitions = models_json_schema(
        [(model, "validation") for model in taken]
        + [(model, "serialization") for model in (*answered, *problems)],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Untitled,
    )
    return dict(sorted(definitions["$defs"].items()))


def main(arguments: Sequence[str]) -> None:
    generated.keep({FILE: text()}, arguments, "python -m infra.openapi")


if __name__ == "__main__":
    main(sys.argv[1:])
