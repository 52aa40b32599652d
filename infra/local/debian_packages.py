"""Fetch Debian packages with all they need, without root and without touching the system.

A private apt, with lists, cache and an empty package state of its own, resolves the packages down
to the C library, and everything is unpacked into one folder.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from infra.local.steps import SetupError, step

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

APT_CONFIGURATION = """\
Dir::Etc::SourceList "{work}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{work}/state";
Dir::State::Status "{work}/state/status";
Dir::Cache "{work}/cache";
Acquire::Languages "none";
APT::Default-Release "{suite}";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
# Hooks of the system that would tidy its own caches.
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


def why_not() -> str | None:
    """The reason why this machine cannot fetch them, if there is one."""
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        return f"no {' and no '.join(missing)} on the PATH"
    if not KEYRING.exists():
        return f"no {KEYRING}, so nothing could vouch for the packages"
    if archive() is None:
        return "apt knows no Debian archive here"
    return None


def archive() -> str | None:
    """The address this machine already gets Debian from: a mirror stays in use, and no host is
    written down here."""
    listing = [
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(REPO_URI)",
        "Created-By: Packages",
    ]
    targets = subprocess.run(listing, check=False, capture_output=True, text=True).stdout
    return find_archive(targets)


def find_archive(targets: str) -> str | None:
    for line in targets.splitlines():
        origin, _, address = line.partition(" ")
        # The security archive is another one, without the suite we look for.
        if origin == "Debian" and "security" not in address:
            return address.strip()
    return None


def fetch(
    destination: Path, packages: Sequence[str], suite: str, size: str, *, leave_out: str = ""
) -> None:
    """Download and unpack all but one; `destination` appears only when it is complete."""
    work = destination.with_suffix(".fetching")
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("state/lists/partial", "cache/archives/partial", "tree"):
        (work / folder).mkdir(parents=True)
    (work / "state" / "status").touch()
    (work / "apt.conf").write_text(APT_CONFIGURATION.format(work=work, suite=suite))
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive()} {suite} main\n")
    with step(f"Fetching {packages[0]} and its libraries from Debian {suite} ({size})"):
        _apt(work, "update")
        _apt(work, "install", "--download-only", *packages)
    with step("Unpacking them"):
        for package in sorted((work / "cache" / "archives").glob("*.deb")):
            if package.name.partition("_")[0] != leave_out:
                subprocess.run(["dpkg-deb", "-x", package, work / "tree"], check=True)
    (work / "tree").rename(destination)
    shutil.rmtree(work)


def _apt(work: Path, *arguments: str) -> None:
    # --config-file is read after the system's own configuration, and so has the last word.
    environment = {**os.environ, "LC_ALL": "C"}
    command = ["apt-get", f"--config-file={work}/apt.conf", "--quiet=2", "--yes", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SetupError(f"apt-get {arguments[0]} failed:\n{done.stderr.strip()}")
