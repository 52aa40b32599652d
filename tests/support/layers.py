"""The layers as their Makefiles build them for the interpreter at hand, and handlers that start
with nothing else: made once, and again when a file of theirs has changed."""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from infra.local.paths import LOCAL, ROOT, TEST_HOME, UV
from infra.local.processes import locked
from tests.support import template

FOLDERS = {
    "LockstepLayer": ROOT / "layers" / "lockstep",
    "CryptoLayer": ROOT / "layers" / "crypto",
    "MigrationsLayer": ROOT / "infra",
}
FUNCTIONS = sorted(path.stem for path in (ROOT / "functions").glob("*.py"))


@cache
def built() -> dict[str, Path]:
    """What is put on the path, by the layer's name in the template."""
    with locked(LOCAL, "test-layers"):
        return {name: _built(name, folder) for name, folder in FOLDERS.items()}


def _built(name: str, folder: Path) -> Path:
    home = TEST_HOME / "layers" / name
    sources = [
        path for path in sorted(folder.rglob("*")) if path.suffix != ".pyc" and path.is_file()
    ]
    digest = hashlib.sha256(sys.version.encode())
    for path in sources:
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    stamp = home / "made-from"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(home, ignore_errors=True)
        uv = str(UV) if UV.exists() else shutil.which("uv")
        assert uv, "uv is neither where `make` puts it nor on the PATH"
        # The layers' makes are not children of ours, should `make test` have started this.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        subprocess.run(
            ["make", "-s", f"build-{name}", f"ARTIFACTS_DIR={home}", "PLATFORM=here", f"UV={uv}"],  # noqa: S607
            cwd=folder,
            env=kept,
            check=True,
        )
        stamp.write_text(digest.hexdigest())
    return home / "python"


def paths_of(function: str) -> list[Path]:
    """Its own code and the layers that the template gives it."""
    attached = sorted(template.functions()[function].layers)
    return [ROOT / "functions", *(built()[name] for name in attached)]


def start(program: str, function: str, paths: list[Path]) -> str:
    """What ``program`` prints in an interpreter that sees ``paths`` alone, and no variable.

    It finds the function's name and the paths in ``sys.argv``. Nothing is written below /opt on
    Lambda, and nothing here: what has no bytecode is compiled each time.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-B",
            "-W",
            "error",
            "-c",
            program,
            function,
            *map(str, paths),
        ],
        env={},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
