"""The books on disk: one line of JSON a change, only ever added to, and read again at the start."""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any


class Journal:
    """Without a file it forgets, which is what most tests want."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was written before, oldest first. A line that a kill cut short is dropped."""
        if self._file is None or not self._file.exists():
            return
        whole = self._file.read_bytes()
        lines = whole[: whole.rfind(b"\n") + 1]
        if len(lines) < len(whole):
            self._file.write_bytes(lines)
        for line in lines.splitlines():
            yield json.loads(line)

    def write(self, **entry: object) -> None:
        """One change, whole or not at all: all that belongs together is one line."""
        if self._file is None:
            return
        line = json.dumps(entry, default=_plain, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as file:
                file.write(line.encode())


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} does not belong in the journal")
