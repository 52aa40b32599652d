"""Write infra/schema.sql as the migrations leave it: `make schema`."""

import sys

from infra import migrate
from infra.local import mysql
from infra.local.paths import LOCAL
from infra.local.steps import SetupError

# A server of its own, so that it can be ended again whoever else is testing.
HOME = LOCAL / "schema"
SCRATCH = "lockstep_schema"


def main() -> None:
    try:
        server = mysql.ensure(HOME, durable=False)
    except SetupError as error:
        sys.exit(str(error))
    try:
        _write(server)
    finally:
        mysql.stop(HOME)


def _write(server: mysql.Server) -> None:
    with mysql.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCRATCH}")
        cursor.execute(f"CREATE DATABASE {SCRATCH} CHARACTER SET utf8mb4")
        connection.select_db(SCRATCH)
        migrate.apply(connection)
        migrate.SCHEMA.write_text(migrate.dump(connection), encoding="utf-8")
        cursor.execute(f"DROP DATABASE {SCRATCH}")


if __name__ == "__main__":
    main()
