"""Which database a command works on: the one that the environment names, or the local stack's."""

import json
import os
import sys
from pathlib import Path
from typing import Final

STACK: Final = Path(__file__).resolve().parents[1] / ".local" / "stack.json"
_SETTINGS: Final = {
    "DATABASE_HOST": "host",
    "DATABASE_PORT": "port",
    "DATABASE_NAME": "database",
    "DATABASE_USER": "user",
    "DATABASE_PASSWORD": "password",
}


def choose() -> None:
    """Set DATABASE_* to the local stack's where DATABASE_HOST is not set. Leaves the process with
    a message where there is neither."""
    if os.environ.get("DATABASE_HOST"):
        return
    try:
        mysql = json.loads(STACK.read_text(encoding="utf-8"))["mysql"]
    except FileNotFoundError:
        sys.exit(
            "Which database? Set DATABASE_HOST and the others, or start the local one: make up"
        )
    for setting, key in _SETTINGS.items():
        os.environ[setting] = str(mysql[key])
