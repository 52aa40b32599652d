"""The JSON schemas of the commands in the queues: `python -m infra.message_schemas` writes them to
events/schemas, `--check` compares. A sender in another language can hold its messages against them.

Readers ignore members they do not know, so the schemas allow them."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from infra import generated
from infra.local.paths import ROOT
from lockstep.messaging.contracts import QUEUE_OF

FOLDER: Final = ROOT / "events" / "schemas"


class _Untitled(GenerateJsonSchema):
    """Without the titles that only repeat a member's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(command: type[BaseModel]) -> dict[str, Any]:
    """What a sender must write: every member, also those that a reader could do without."""
    schema = command.model_json_schema(schema_generator=_Untitled)
    schema["required"] = list(schema["properties"])
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def file_name(command: type[BaseModel]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", command.__name__).lower() + ".json"


def contents() -> dict[Path, str]:
    return {
        FOLDER / file_name(command): json.dumps(schema_of(command), indent=2) + "\n"
        for command in QUEUE_OF
    }


def main(arguments: Sequence[str]) -> None:
    generated.keep(contents(), arguments, "python -m infra.message_schemas")


if __name__ == "__main__":
    main(sys.argv[1:])
