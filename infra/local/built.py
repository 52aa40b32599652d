"""What `sam build` made of the template: each function's folder, and the layers it starts with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infra.local import build


@dataclass(frozen=True)
class Function:
    """``handler`` is the module that Lambda imports, ``folder`` what lies in /var/task."""

    handler: str
    folder: Path
    layers: tuple[str, ...]

    def paths(self, layers: Path = build.FOLDER) -> list[Path]:
        """What Lambda has on its path, with the layers that lie below ``layers``."""
        return [self.folder, *(layers / name / "python" for name in self.layers)]


def functions() -> list[Function]:
    """Build what has changed, then every function by its handler's name."""
    build.ensure()
    template = yaml.safe_load(build.TEMPLATE.read_text(encoding="utf-8"))
    shared = template["Globals"]["Function"]["Layers"]
    found = [
        _function(resource["Properties"], shared)
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    ]
    return sorted(found, key=lambda function: function.handler)


def _function(properties: dict[str, Any], shared: list[dict[str, str]]) -> Function:
    return Function(
        handler=properties["Handler"].removesuffix(".handler"),
        folder=build.FOLDER / properties["CodeUri"],
        layers=tuple(layer["Ref"] for layer in (*shared, *properties.get("Layers", []))),
    )
