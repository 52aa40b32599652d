"""Files that are made from the code, checked in, and compared: a difference is a failed check."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def keep(contents: Mapping[Path, str], arguments: Sequence[str], remake: str) -> None:
    """Write each file, or with ``--check`` leave the process with a message if one differs.

    ``remake`` is the command that writes them.
    """
    if list(arguments) not in ([], ["--check"]):
        sys.exit(f"usage: {remake} [--check]")
    stale = [path for path, text in contents.items() if _read(path) != text]
    if arguments and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"Not what the code says (run `{remake}`): {names}")
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents[path], encoding="utf-8")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
