"""The template as CloudFormation gets it: what SAM makes of it in a region of a partition.

The translator pins another pydantic than the functions run with, so it works in the local cloud's
environment: `processed` asks this very file there.
"""

import json
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from infra.local.paths import CLOUD_BIN, ROOT

# The managed policies that SAM may attach by name; none is used, so none need be known.
_NO_MANAGED_POLICIES: dict[str, str] = {}
_CODE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


@cache
def processed(template: str = "template.yaml", region: str = "ap-southeast-1") -> Any:
    """A template of this repository after the SAM transform."""
    command = [str(CLOUD_BIN / "python"), "-m", "infra.local.transform", template]
    environment = {"AWS_DEFAULT_REGION": region, "AWS_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _transform(template: Path) -> Any:
    # Only the other environment has it.
    parser = import_module("samtranslator.parser.parser")
    translation = import_module("samtranslator.translator.translator")
    source = import_module("samtranslator.yaml_helper").yaml_parse(
        template.read_text(encoding="utf-8")
    )
    # As `sam package` leaves it: code lies in a bucket.
    source["Globals"]["Function"].pop("CodeUri")
    for resource in source["Resources"].values():
        if resource["Type"] in _CODE:
            resource["Properties"][_CODE[resource["Type"]]] = "s3://artifacts/code"
    translator = translation.Translator(_NO_MANAGED_POLICIES, parser.Parser())
    return translator.translate(source, {})


def main() -> None:
    [template] = sys.argv[1:]
    json.dump(_transform(ROOT / template), sys.stdout)


if __name__ == "__main__":
    main()
