"""Which database a command works on: the one that the environment names, or the local stack's."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pymysql

from lockstep.db import connection
from lockstep.db.errors import DatabaseFault
from lockstep.errors import LockstepError

STACK: Final = Path(__file__).resolve().parents[1] / ".local" / "stack.json"
_SETTINGS: Final = {
    "DATABASE_HOST": "host",
    "DATABASE_PORT": "port",
    "DATABASE_NAME": "database",
    "DATABASE_USER": "user",
    "DATABASE_PASSWORD": "password",
}


def reach() -> None:
    """Connect to the local stack's where DATABASE_HOST is not set. Leaves the process with a
    message where there is no database: a command does not wait for one to come."""
    if not os.environ.get("DATABASE_HOST"):
        _take_local_stack()
    try:
        connection.current()
    except (DatabaseFault, LockstepError, pymysql.MySQLError) as fault:
        sys.exit(f"The database at {os.environ['DATABASE_HOST']} cannot be used: {fault}")


def _take_local_stack() -> None:
    try:
        mysql = json.loads(STACK.read_text(encoding="utf-8"))["mysql"]
    except FileNotFoundError:
        sys.exit(
            "Which database? Set DATABASE_HOST and the others, or start the local one: make up"
        )
    for setting, key in _SETTINGS.items():
        os.environ[setting] = str(mysql[key])
    os.environ["DATABASE_TLS"] = "verified" if mysql["ca"] else "off"
    os.environ["DATABASE_TLS_CA"] = mysql["ca"] or ""
