"""Delete what nobody needs any more from a database.

    make purge [outbox_days=30] [notice_days=30] [refusal_days=90]
               [queue_days=4] [dead_letter_days=14] [seconds=600]

On the local stack, or where DATABASE_* says, while everything runs. The retention of the queues is
what the stack was deployed with. What `seconds` did not suffice for is left to the next run.
"""

import argparse
import sys
import time
from dataclasses import fields

import pymysql

from infra import database
from lockstep.errors import LockstepError
from lockstep.upkeep.purge import Purged, Retention, purge


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Delete what is old and needed by nobody.")
    for days in fields(Retention):
        parser.add_argument(f"--{days.name}", type=int, default=days.default)
    parser.add_argument("--seconds", type=int, default=600, help="begin nothing after that")
    asked = vars(parser.parse_args(arguments))
    ends_at = time.monotonic() + asked.pop("seconds")
    try:
        retention = Retention(**asked)
        database.reach()
        purged = purge(retention, lambda: time.monotonic() < ends_at)
    except (LockstepError, pymysql.MySQLError, ValueError) as fault:
        sys.exit(f"The purge ended early: {fault}")
    sys.stdout.write(_told(purged))


def _told(purged: Purged) -> str:
    numbers = (
        f"Deleted: {purged.outbox} messages, {purged.notices} notices, {purged.tombstones} "
        f"tombstones, {purged.refusals} refusals"
    )
    return f"{numbers}\n" if purged.is_finished else f"{numbers}; there is more: run it again\n"


if __name__ == "__main__":
    main()
