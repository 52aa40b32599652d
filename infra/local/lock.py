"""Compile every requirements file from pyproject.toml: `make lock`; `make lock-check` compares.

The files carry the hashes of every wheel of a release, so one file serves x86_64 and aarch64 alike.
An existing file is fed back as a preference: newer releases move nothing by themselves, and the
check fails only where pyproject.toml and a file really disagree. To upgrade, delete the file first.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.local.paths import ROOT, UV

LAYER = "layers/lockstep/requirements.txt"
CRYPTO = "layers/crypto/requirements.txt"

# In this order: what runs in Lambda is chosen first, and the tests must run with the same.
FILES = {
    LAYER: ["pyproject.toml"],
    CRYPTO: ["--group", "crypto", "--constraint", LAYER],
    "requirements/dev.txt": ["--group", "dev", "--constraint", LAYER, "--constraint", CRYPTO],
    "requirements/cloud.txt": ["--group", "cloud"],
    "requirements/policies.txt": ["--group", "policies"],
    "requirements/oscar.txt": ["--group", "oscar", "--constraint", LAYER],
    "requirements/bootstrap.txt": ["--group", "bootstrap"],
}

# Universal: markers for macOS, too. No annotations: they would repeat temporary paths.
OPTIONS = [
    "--quiet",
    "--universal",
    "--python-version=3.13",
    "--generate-hashes",
    "--no-annotate",
    "--custom-compile-command=make lock",
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile the hashed requirements files.")
    parser.add_argument("--check", action="store_true", help="change nothing, fail on a difference")
    if not parser.parse_args().check:
        compile_all(ROOT)
    elif drifted := find_drift():
        sys.exit(f"Not what pyproject.toml asks for (run `make lock`): {', '.join(drifted)}")


def compile_all(folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    for file, selection in FILES.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        command = [str(UV), "pip", "compile", *OPTIONS, *selection, "--output-file", file]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def find_drift() -> list[str]:
    """Compile in a copy that holds the present files, and name those that come out different."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for file in ["pyproject.toml", *FILES]:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / file).exists():
                shutil.copy(ROOT / file, copy / file)
        compile_all(copy)
        return [file for file in FILES if not same(ROOT / file, copy / file)]


def same(left: Path, right: Path) -> bool:
    return left.exists() and left.read_bytes() == right.read_bytes()


if __name__ == "__main__":
    main()
