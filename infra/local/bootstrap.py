"""Turn a fresh clone into a working one: `python3 infra/local/bootstrap.py`.

Makes three environments under `.local/`, each from a requirements file with hashes, and two more
where they are named, since only one check or one peer needs each:

    tools   uv alone, for installing the rest
    venv    Python 3.13 with the project's dependencies, its tests and its checks
    cloud   Python 3.13 with the local cloud and the SAM CLI
    policies  the same with checkov: `python3 infra/local/bootstrap.py policies`
    oscar   the same with django-oscar, which the benchmarks run beside ours

An environment whose requirement files have not changed since it was made is left alone, so this
runs before every make target. It is the one file here that runs on the machine's own Python (3.9 or
newer, standard library only), and it talks on stderr: some targets print a single value on stdout.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
REQUIREMENTS = ROOT / "requirements"
LAYERS = ROOT / "layers"
UV = LOCAL / "tools" / "bin" / "uv"

ENVIRONMENTS = {
    "tools": [REQUIREMENTS / "bootstrap.txt"],
    "venv": [
        REQUIREMENTS / "dev.txt",
        LAYERS / "lockstep" / "requirements.txt",
        LAYERS / "crypto" / "requirements.txt",
    ],
    "cloud": [REQUIREMENTS / "cloud.txt"],
}
ON_DEMAND = {
    "policies": [REQUIREMENTS / "policies.txt"],
    "oscar": [REQUIREMENTS / "oscar.txt"],
}

NO_VENV = """\
This Python cannot make a virtual environment: it comes without ensurepip, and there is no `uv` on
the PATH to use instead. Install one of the two and run make again:
    Debian, Ubuntu:  apt install python3-venv
    anywhere:        https://docs.astral.sh/uv/getting-started/installation/
"""


def main() -> None:
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "bootstrap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, requirements in ENVIRONMENTS.items():
            ensure(name, requirements)
        for name in sys.argv[1:]:
            ensure(name, ON_DEMAND[name])


def ensure(name: str, requirements: list[Path]) -> None:
    """Make the environment anew unless its stamp says that it was made from these very files."""
    home = LOCAL / name
    stamp = home / "made-from"
    digest = fingerprint(requirements)
    if stamp.exists() and stamp.read_text() == digest:
        return
    started = time.monotonic()
    say(f"Set-up: making .local/{name} …")
    shutil.rmtree(home, ignore_errors=True)
    make = make_tools if name == "tools" else make_environment
    make(home, requirements)
    stamp.write_text(digest)
    say(f"Set-up: .local/{name} is ready ({time.monotonic() - started:.1f} s)")


def fingerprint(requirements: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in [ROOT / ".python-version", *requirements]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_tools(home: Path, requirements: list[Path]) -> None:
    if has_ensurepip():
        run(sys.executable, "-m", "venv", home)
        python = home / "bin" / "python"
        pip = ["-m", "pip", "--disable-pip-version-check"]
        run(python, *pip, "install", "--quiet", "--require-hashes", *each("-r", requirements))
    elif (uv := shutil.which("uv")) is not None:
        run(uv, "venv", "--quiet", home)
        install(uv, home, requirements)
    else:
        sys.exit(NO_VENV)


def has_ensurepip() -> bool:
    """Debian's python3 leaves it out unless python3-venv is installed."""
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0


def make_environment(home: Path, requirements: list[Path]) -> None:
    """On the Python that `.python-version` names; uv downloads it where the machine has none."""
    python = (ROOT / ".python-version").read_text().strip()
    run(UV, "venv", "--quiet", "--python", python, home)
    install(UV, home, requirements)


def install(uv: str | Path, home: Path, requirements: list[Path]) -> None:
    # A terminal gets uv's moving bars; a log would get a line for each of two hundred packages.
    loudness = [] if sys.stderr.isatty() else ["--quiet"]
    target = ["--python", str(home / "bin" / "python"), "--require-hashes"]
    run(uv, "pip", "install", *loudness, *target, *each("-r", requirements))


def each(flag: str, values: list[Path]) -> list[str]:
    return [part for value in values for part in (flag, str(value))]


def run(*command: str | Path) -> None:
    """Show what the tool says as it goes; a failure ends the set-up with the tool's own words."""
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    arguments = [str(part) for part in command]
    code = subprocess.run(
        arguments, check=False, cwd=ROOT, env=environment, stdout=sys.stderr
    ).returncode
    if code != 0:
        sys.exit(f"Set-up failed at: {' '.join(arguments)}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
