"""What each handler loads when its function starts, and may: tests/contract/import_budget.json.

    python -m tests.support.import_budget

writes the budget anew, from what is loaded now. Modules and bytes of bytecode are counted, of the
layers alone: the same on every machine, where milliseconds are not. The standard library's part
changes with Python's patches, so of it only those packages are named that cost something.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from infra.local.paths import ROOT
from tests.support import layers

STEP_BYTES = 50_000
FILE = ROOT / "tests" / "contract" / "import_budget.json"

# Each takes 5 ms or more, with all that it brings. Powertools loads botocore alone, to put its name
# into requests; that is an empty shell until somebody makes a session.
HEAVY = (
    "asyncio",
    "aws_lambda_powertools.event_handler",
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.data_classes",
    "aws_lambda_powertools.utilities.idempotency",
    "aws_lambda_powertools.utilities.parameters",
    "aws_lambda_powertools.utilities.parser",
    "boto3",
    "botocore.session",
    "concurrent.futures.thread",
    "cryptography",
    "email.parser",
    "http.client",
    "multiprocessing",
    "pydantic",
    "pymysql",
    "unittest",
    "urllib.request",
    "urllib3",
    "xml.etree",
)

LOADED = """
import json, os, sys
sys.path[:0] = sys.argv[2:]
__import__(sys.argv[1])
layers = tuple(path + os.sep for path in sys.argv[3:])
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
cached = {
    name: os.path.getsize(sys.modules[name].__cached__)
    for name, file in files.items()
    if file.startswith(layers) and file.endswith(".py")
}
print(json.dumps({"every": sorted(sys.modules), "cached": cached}))
"""


@dataclass(frozen=True)
class Loaded:
    """``heavy`` are the names of HEAVY among the loaded modules, whoever asked for them."""

    modules: int
    bytecode_bytes: int
    heavy: tuple[str, ...]


def loaded(function: str, paths: list[Path] | None = None) -> Loaded:
    """What comes with a handler; its own file is no part of a layer, and not counted."""
    found = json.loads(layers.start(LOADED, function, paths or layers.paths_of(function)))
    return Loaded(
        modules=len(found["cached"]),
        bytecode_bytes=sum(found["cached"].values()),
        heavy=tuple(name for name in HEAVY if name in found["every"]),
    )


def rounded(needed: Loaded) -> Loaded:
    """With room for a changed line, but for no further module."""
    return replace(needed, bytecode_bytes=-(-needed.bytecode_bytes // STEP_BYTES) * STEP_BYTES)


def budget() -> dict[str, Loaded]:
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Loaded(**row | {"heavy": tuple(row["heavy"])}) for name, row in kept.items()}


def main() -> None:
    rows = {function: asdict(rounded(loaded(function))) for function in layers.FUNCTIONS}
    FILE.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
