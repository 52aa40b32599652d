"""A mysqld to start: the machine's own or an unpacked one, or the reason why there is none.

Debian's stable releases carry MariaDB only; its unstable suite carries MySQL. What comes from there
is started by the dynamic loader that came with it, so neither the version of the system's libraries
nor its release matters.
"""

import shutil
from pathlib import Path

from infra.local import debian_packages
from infra.local.mysqld import Binary, unsuitable, version_of
from infra.local.paths import LOCAL
from infra.local.steps import SetupError

DISTRIBUTION = LOCAL / "mysql-dist"


def from_path() -> Binary | str:
    found = shutil.which("mysqld")
    # Distributions keep it out of an ordinary user's PATH.
    found = found or shutil.which("mysqld", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        return "there is none"
    binary = Binary((found,))
    return unsuitable(version_of(binary)) or binary


def from_packages() -> Binary | str:
    if not DISTRIBUTION.exists():
        trouble = debian_packages.why_not()
        if trouble is not None:
            return trouble
        try:
            debian_packages.fetch(DISTRIBUTION, ["mysql-server-core"], "unstable", "60 MB")
        except SetupError as error:
            return str(error)
    return unpacked(DISTRIBUTION)


def unpacked(tree: Path) -> Binary | str:
    """mysqld called through the loader it was built for, with only the libraries beside it."""
    loaders = [path for path in tree.glob("usr/lib/*-linux-gnu*/ld-linux-*") if path.is_file()]
    if not loaders:
        return f"no dynamic loader in {tree}"
    libraries = loaders[0].parent
    share = tree / "usr" / "share" / "mysql"
    binary = Binary(
        (str(loaders[0]), "--library-path", str(libraries), str(tree / "usr/sbin/mysqld")),
        (
            f"--basedir={tree / 'usr'}",
            f"--plugin-dir={tree / 'usr' / 'lib' / 'mysql' / 'plugin'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
        ),
    )
    return unsuitable(version_of(binary)) or binary
