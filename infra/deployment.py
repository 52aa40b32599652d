"""What a deployment does to the database before new code runs, and what it tells CloudFormation.

CloudFormation waits for an answer at a URL, and an hour where none comes; so every outcome is
answered, a failure in its own words. Deleting the stack leaves the database as it is. A roll-back
comes as one more update, with the older files: it is no failure that the database is ahead of them.
"""

import hashlib
import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pymysql

from infra import accounts, migrate
from lockstep import settings
from lockstep.db.connection import credentials, open_session

ANSWER_SECONDS_MAX = 10


def bring_up_to_date() -> dict[str, Any]:
    """Apply what is pending, as the owner, and let the functions' account in."""
    database = settings.database()
    owner = os.environ.get("DATABASE_OWNER_SECRET_ARN") or database.secret_arn
    with open_session(replace(database, secret_arn=owner), pymysql.cursors.Cursor) as session:
        # A table change that waits for a long reader stands in everybody's way while it waits.
        session.query("SET SESSION lock_wait_timeout = 5")
        applied = migrate.apply(session, or_older=True)
        if owner != database.secret_arn:
            accounts.ensure(session, database.name, *credentials(database))
    return {"applied": applied}


def answered(request: Mapping[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do ``work`` unless something is to be deleted, and tell CloudFormation how it went."""
    try:
        outcome = {} if request["RequestType"] == "Delete" else work()
    except Exception as error:
        _answer(request, "FAILED", {}, f"{type(error).__name__}: {error}")
        raise
    _answer(request, "SUCCESS", {**outcome, "Release": [release(request)]}, "")
    return outcome


def release(request: Mapping[str, Any]) -> str:
    """A name for the layers and settings that this deployment brings: the same for the same."""
    brought = json.dumps(request["ResourceProperties"], sort_keys=True)
    return hashlib.sha256(brought.encode()).hexdigest()[:16]


def _answer(request: Mapping[str, Any], status: str, data: dict[str, Any], reason: str) -> None:
    body = {
        "Status": status,
        "Reason": reason[:1000],
        "Data": {name: ", ".join(value) for name, value in data.items()},
        "PhysicalResourceId": "migrations",
        **{name: request[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    # The URL is signed for exactly this: a PUT without a content type.
    answer = urllib.request.Request(  # noqa: S310 - CloudFormation's own address
        request["ResponseURL"],
        json.dumps(body).encode(),
        {"Content-Type": ""},
        method="PUT",
    )
    urllib.request.urlopen(answer, timeout=ANSWER_SECONDS_MAX).close()  # noqa: S310
