"""How long a handler's import takes in our layers, and in those that SAM builds by default.

    python -m infra.local.coldstart [--json] [--runs 15] [--all]

Both sides are the same handler with the same packages of the same versions. Ours are the folders
that `sam build` makes by the layers' Makefiles; theirs are made by `sam build` too, from a template
with `BuildMethod: python3.13`, which leaves bytecode out. Lambda keeps none for the next start,
since /opt is read-only, and so does nobody here.

Each import has a process of its own, which sees these folders and the standard library; the two
sides take turns. What is measured is the import alone: the interpreter's own start, and what
Lambda's runtime loads before the handler, are the same on both sides and left out.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from infra.local import build, built
from infra.local.paths import CLOUD_BIN, LOCAL, ROOT, UV
from infra.local.processes import locked
from infra.local.steps import SetupError, step

RUNS = 15
WORKERS = ("reserve_stock", "confirm_stock", "release_stock", "refund_payment")
# The migrations run once a deployment; nobody waits for their start.
EVERY = {path.stem for path in (ROOT / "functions").glob("*.py")} - {"migrate"}
DEFAULT = LOCAL / "default-layers"

TIMED = """
import sys, time
sys.path[:0] = sys.argv[2:]
began = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - began)
"""
TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Resources:
  LockstepLayer:
    Type: AWS::Serverless::LayerVersion
    Metadata: { BuildMethod: python3.13 }
    Properties: { ContentUri: lockstep/, CompatibleRuntimes: [python3.13] }
  CryptoLayer:
    Type: AWS::Serverless::LayerVersion
    Metadata: { BuildMethod: python3.13 }
    Properties: { ContentUri: crypto/, CompatibleRuntimes: [python3.13] }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Cold imports, ours beside SAM's default layers.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--runs", type=_positive, default=RUNS, help=f"of each side, usually {RUNS}"
    )
    parser.add_argument(
        "--all", action="store_true", help="every function, and not the workers alone"
    )
    asked = parser.parse_args()
    try:
        figures = compare(asked.runs, EVERY if asked.all else WORKERS)
    except SetupError as error:
        sys.exit(str(error))
    if asked.json:
        print(json.dumps({"workers": figures}, indent=2))
        return
    print(f"{'handler':16} {'ours':>8} {'default':>8} {'ratio':>6}   (medians of {asked.runs})")
    for handler, row in figures.items():
        ours, default = f"{row['ours_ms']:.0f} ms", f"{row['default_ms']:.0f} ms"
        print(f"{handler:16} {ours:>8} {default:>8} {row['ratio']:6.2f}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is no number of runs")
    return number


def compare(runs: int, handlers: Collection[str] = WORKERS) -> dict[str, dict[str, float]]:
    """Medians in milliseconds and their ratio, by handler."""
    default = default_layers()
    functions = [function for function in built.functions() if function.handler in handlers]
    sides = {"ours": build.FOLDER, "default": default}
    medians = median_seconds(
        {
            (function.handler, side): (function.handler, function.paths(layers))
            for function in functions
            for side, layers in sides.items()
        },
        runs,
    )
    if any(default.rglob("*.pyc")):
        raise SetupError(f"{default} has bytecode, which SAM's default layers have not: delete it.")
    return {function.handler: _row(medians, function.handler) for function in functions}


def _row(medians: Mapping[tuple[str, str], float], handler: str) -> dict[str, float]:
    ours, default = medians[handler, "ours"], medians[handler, "default"]
    return {
        "ours_ms": round(ours * 1000, 1),
        "default_ms": round(default * 1000, 1),
        "ratio": round(ours / default, 3),
    }


def median_seconds[Name](
    imports: Mapping[Name, tuple[str, list[Path]]], runs: int
) -> dict[Name, float]:
    """The median of each import (a module, what is on the path), over fresh processes.

    All of them take turns, so that a busy minute of the machine falls on all alike.
    """
    taken: dict[Name, list[float]] = {name: [] for name in imports}
    for module, paths in imports.values():
        import_seconds(module, paths)  # from here on the files are in memory, for all of them
    for _ in range(runs):
        for name, (module, paths) in imports.items():
            taken[name].append(import_seconds(module, paths))
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def import_seconds(module: str, paths: list[Path]) -> float:
    """In an interpreter that sees nothing else and writes no bytecode."""
    command = [sys.executable, "-I", "-S", "-B", "-c", TIMED, module, *map(str, paths)]
    done = subprocess.run(command, check=False, env={}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupError(f"{module} cannot be imported:\n{done.stderr}")
    return float(done.stdout)


def default_layers() -> Path:
    """The folder with the same layers as SAM builds them by itself; made once and kept."""
    with locked(LOCAL, "default-layers"):
        digest = _digest()
        stamp = DEFAULT / "made-from"
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(DEFAULT, ignore_errors=True)
            with step("Building the layers as SAM does by default"):
                _build(DEFAULT / "sources")
            stamp.write_text(digest)
    return DEFAULT / "built"


def _digest() -> str:
    digest = hashlib.sha256(f"{sys.version}{TEMPLATE}".encode())
    for path in sorted((ROOT / "layers").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _build(sources: Path) -> None:
    ignored: Callable[[str, list[str]], set[str]] = shutil.ignore_patterns("__pycache__")
    for layer in ("lockstep", "crypto"):
        shutil.copytree(ROOT / "layers" / layer, sources / layer, ignore=ignored)
        (sources / layer / "Makefile").unlink()
    (sources / "template.yaml").write_text(TEMPLATE)
    # SAM looks for a python3.13 that has pip.
    path = os.pathsep.join((str(UV.parent), str(CLOUD_BIN), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "SAM_CLI_TELEMETRY": "0"}
    command = ["sam", "build", "--build-dir", str(DEFAULT / "built")]
    done = subprocess.run(
        command, check=False, cwd=sources, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SetupError(f"sam build failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
