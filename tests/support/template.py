"""template.yaml as data: which function has which file, routes, layers and queues."""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from infra.local.paths import ROOT


class _Loader(yaml.SafeLoader):
    """Reads !Ref X and !GetAtt X.Arn as "X" and "X.Arn": enough to follow who names whom."""


def _untagged(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    assert isinstance(node, yaml.SequenceNode)
    return loader.construct_sequence(node, deep=True)


yaml.add_multi_constructor("!", _untagged, _Loader)


@dataclass(frozen=True)
class Function:
    """A function of the template. ``routes`` are (method, path) in the template's words."""

    file: str
    layers: frozenset[str]
    routes: frozenset[tuple[str, str]]


def read(file: str = "template.yaml") -> Any:
    return yaml.load((ROOT / file).read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader


def functions() -> dict[str, Function]:
    """By the name of the file that holds the handler."""
    template = read()
    shared = template["Globals"]["Function"].get("Layers", [])
    found = [
        _function(resource["Properties"], shared)
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    ]
    return {function.file: function for function in found}


def _function(properties: Any, shared: list[str]) -> Function:
    match_ = re.fullmatch(r"(\w+)\.handler", properties["Handler"])
    assert match_, properties["Handler"]
    events = properties.get("Events", {}).values()
    routes = [each["Properties"] for each in events if each["Type"] == "HttpApi"]
    return Function(
        file=match_.group(1),
        layers=frozenset([*shared, *properties.get("Layers", [])]),
        routes=frozenset((route["Method"].upper(), route["Path"]) for route in routes),
    )
