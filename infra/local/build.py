"""`sam build` of the real template for the machine that runs the local cloud, when needed."""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from infra.local.paths import CLOUD_BIN, LOCAL, ROOT, UV
from infra.local.steps import SetupError, step

FOLDER = LOCAL / "build"
TEMPLATE = FOLDER / "template.yaml"
STAMP = FOLDER / "made-from"


def ensure() -> str:
    """Build unless the last build was made from these very files; return their fingerprint."""
    digest = fingerprint()
    if not STAMP.exists() or STAMP.read_text() != digest:
        shutil.rmtree(FOLDER, ignore_errors=True)
        with step("Building the functions and layers"):
            _build()
        STAMP.write_text(digest)
    return digest


def fingerprint() -> str:
    digest = hashlib.sha256(platform.python_version().encode())
    for path in sorted(_sources()):
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def architecture() -> str:
    """This machine's processor, in the template's words."""
    return "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"


def _sources() -> list[Path]:
    found = [ROOT / "template.yaml", ROOT / "infra" / "Makefile", *(ROOT / "infra").glob("*.py")]
    found += (ROOT / "infra" / "migrations").glob("*.sql")
    for folder in ("functions", "layers"):
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in found if "__pycache__" not in path.parts]


def _build() -> None:
    environment = {
        **os.environ,
        "PATH": f"{CLOUD_BIN}{os.pathsep}{os.environ['PATH']}",
        # For the layers' Makefiles: wheels for the interpreter at hand, installed by our own uv.
        "PLATFORM": "here",
        "UV": str(UV),
        "SAM_CLI_TELEMETRY": "0",
    }
    # The layers' makes are not children of ours: flags and variables of `make up` stay out of them.
    for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "VIRTUAL_ENV"):
        environment.pop(name, None)
    sources = ["--template-file", str(ROOT / "template.yaml")]
    command = ["sam", "build", *sources, "--build-dir", str(FOLDER)]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SetupError(f"sam build failed:\n{done.stdout}{done.stderr}")
