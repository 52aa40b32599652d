"""A browser without a window, and the driver that tests steer it by: what is on the PATH, or
Debian's packages, fetched without root; or the reason why there is none.

Unlike MySQL it starts itself anew for each page, so it has to run on the system's own loader and C
library: the packages are those of the release that this machine runs.
"""

import os
import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from infra.local import debian_packages
from infra.local.paths import LOCAL
from infra.local.processes import locked
from infra.local.steps import SetupError

DISTRIBUTION = LOCAL / "browser-dist"
NAMES = ("chromium", "google-chrome", "chromium-browser")


@dataclass(frozen=True)
class Browser:
    program: str
    driver: str
    environment: dict[str, str] = field(default_factory=dict)


def ensure() -> Browser | str:
    """The browser, after fetching it if need be; or why there is none."""
    found = from_path()
    if isinstance(found, Browser):
        return found
    with locked(LOCAL, "browser"):
        unpacked = from_packages()
    return unpacked if isinstance(unpacked, Browser) else f"{found}; {unpacked}"


def from_path() -> Browser | str:
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        return "no Chromium and chromedriver on the PATH"
    return Browser(program, driver)


def from_packages() -> Browser | str:
    if not DISTRIBUTION.exists():
        trouble = debian_packages.why_not()
        release = platform.freedesktop_os_release().get("VERSION_CODENAME") if not trouble else None
        if release is None:
            return trouble or "this Debian has no release of its own to take packages from"
        try:
            debian_packages.fetch(
                DISTRIBUTION,
                ["chromium", "chromium-driver"],
                release,
                "200 MB",
                leave_out="libc6",
            )
        except SetupError as error:
            return str(error)
    return unpacked(DISTRIBUTION)


def unpacked(tree: Path) -> Browser:
    """Started with the libraries beside it, and with its own fonts."""
    folders = [*tree.glob("lib/*-linux-gnu*"), *tree.glob("usr/lib/*-linux-gnu*")]
    folders += tree.glob("usr/lib/*-linux-gnu*/pulseaudio")
    return Browser(
        str(tree / "usr" / "lib" / "chromium" / "chromium"),
        str(tree / "usr" / "bin" / "chromedriver"),
        {
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
            "FONTCONFIG_SYSROOT": str(tree),
        },
    )
