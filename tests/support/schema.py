"""JSON Schema, as much of it as our own documents use; any other keyword is an error.

Stricter than the standard in one way: a member that the schema does not name is a fault, so that
nothing is answered which is not documented.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

type Schema = Mapping[str, Any]

_TYPES: dict[str, type] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "object": dict,
    "string": str,
}
_SIMPLE: dict[str, Callable[[Any, Any], object]] = {
    # type() and not isinstance(): true is no integer.
    "type": lambda value, expected: type(value) is _TYPES[expected],
    "const": lambda value, expected: value == expected,
    "enum": lambda value, expected: value in expected,
    "pattern": lambda value, expected: re.search(expected, value),
    "minimum": lambda value, expected: value >= expected,
    "maximum": lambda value, expected: value <= expected,
    "minLength": lambda value, expected: len(value) >= expected,
    "maxLength": lambda value, expected: len(value) <= expected,
    "minItems": lambda value, expected: len(value) >= expected,
    "maxItems": lambda value, expected: len(value) <= expected,
}
_ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$defs"}
_WITH_THE_MEMBERS = {"required", "additionalProperties"}


def faults(value: Any, schema: Schema, definitions: Schema, where: str = "$") -> list[str]:
    """What of ``value`` is not as ``schema`` says; empty if all is. ``definitions`` by name."""
    if "type" in schema and not _SIMPLE["type"](value, schema["type"]):
        return [f"{where}: {value!r} is no {schema['type']}"]
    return [
        fault
        for keyword, expected in schema.items()
        if keyword not in _ANNOTATIONS | _WITH_THE_MEMBERS
        for fault in _faults(keyword, expected, value, schema, definitions, where)
    ]


def _faults(
    keyword: str, expected: Any, value: Any, schema: Schema, definitions: Schema, where: str
) -> Iterator[str]:
    match keyword:
        case "$ref":
            yield from faults(value, definitions[expected.rpartition("/")[2]], definitions, where)
        case "anyOf":
            tried = [faults(value, option, definitions, where) for option in expected]
            if all(tried):
                yield f"{where}: fits none of {tried}"
        case "properties":
            yield from _members(value, expected, schema.get("required", ()), definitions, where)
        case "items":
            for n, item in enumerate(value):
                yield from faults(item, expected, definitions, f"{where}[{n}]")
        case _:
            if not _SIMPLE[keyword](value, expected):
                yield f"{where}: {keyword} {expected!r} does not hold for {value!r}"


def _members(
    value: Any, known: Schema, required: Any, definitions: Schema, where: str
) -> Iterator[str]:
    yield from (f"{where}: no {name}" for name in required if name not in value)
    yield from (f"{where}: {name} is not documented" for name in value if name not in known)
    for name in value.keys() & known.keys():
        yield from faults(value[name], known[name], definitions, f"{where}.{name}")
