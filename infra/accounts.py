"""The account that the functions use: it writes rows, deletes none, and changes no table."""

from infra.migrate import Session

CREATE = "CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s"
ALTER = "ALTER USER %s@'%%' IDENTIFIED BY %s"
# A database's name cannot be a parameter of a statement; in a GRANT its _ and % are wildcards.
GRANT = "GRANT SELECT, INSERT, UPDATE ON `{pattern}`.* TO %s@'%%'"


def ensure(session: Session, database: str, user: str, password: str) -> None:
    """Let ``user`` in with ``password``, whoever it was before; it keeps what else it may."""
    pattern = database.replace("`", "``").replace("_", r"\_").replace("%", "%%")
    with session.cursor() as cursor:
        cursor.execute(CREATE, (user, password))
        cursor.execute(ALTER, (user, password))
        cursor.execute(GRANT.format(pattern=pattern), (user,))
