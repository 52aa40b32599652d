"""Load a catalogue file into a database.

    make catalogue file=skus.csv [actor=operator:alice] [load=2026-12-01]

On the local stack, or where DATABASE_* says. Prints what was done; a file with anything wrong
changes nothing, has its errors printed by line, and ends with status 1.
"""

import argparse
import getpass
import sys
from pathlib import Path

import pymysql

from infra import database
from lockstep.errors import LockstepError
from lockstep.inventory.catalogue import CatalogueReport, load_catalogue

# More would only push the first ones off the screen.
ERRORS_SHOWN = 50


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Load a catalogue file, all of it or nothing.")
    parser.add_argument("file", type=Path, help="CSV: sku_id,title,price,stock,hot,on_sale")
    parser.add_argument("--actor", default=f"operator:{getpass.getuser()}", help="who loads it")
    parser.add_argument("--load", help="the load's own id; without it, the content is the id")
    asked = parser.parse_args(arguments)
    text = _read(asked.file)
    database.reach()
    try:
        report = load_catalogue(text, asked.actor, asked.load)
    except (LockstepError, pymysql.MySQLError, ValueError) as fault:
        sys.exit(f"Nothing was changed: {fault}")
    if report.errors:
        lines = [f"line {e.line}: {e.code}: {e.detail}" for e in report.errors[:ERRORS_SHOWN]]
        count = len(report.errors)
        sys.exit("\n".join([*lines, f"Nothing was changed: {count} errors in {asked.file}"]))
    sys.stdout.write(_told(report))


def _read(file: Path) -> str:
    try:
        content = file.read_bytes()
        return content.decode("utf-8")
    except OSError as fault:
        sys.exit(f"{file} cannot be read: {fault.strerror}")
    except UnicodeDecodeError as fault:
        line = content[: fault.start].count(b"\n") + 1
        sys.exit(f"line {line}: not UTF-8 (spreadsheets call it CSV UTF-8)")


def _told(report: CatalogueReport) -> str:
    numbers = (
        f"{report.loaded} new, {report.repriced} repriced, {report.restocked} restocked, "
        f"{report.unchanged} unchanged"
    )
    if report.repeated:
        return (
            f"Load {report.load_id} was done before ({numbers}); nothing was changed now. To load "
            "this file once more, give the load an id of its own: load=…\n"
        )
    return f"Load {report.load_id}: {numbers}\n"


if __name__ == "__main__":
    main()
