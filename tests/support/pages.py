"""An order with a payment page, what became of both, and the time that passes for them."""

from tests.support.database import Database

_TIMES = {
    "oms_order": ("created_at", "expires_at"),
    "ims_reservation": ("expires_at",),
    "oms_payment_attempt": ("expires_at", "next_ask_at"),
}


def age(database: Database, seconds: int) -> None:
    """Let so much time pass for every order, hold and payment page."""
    for table, columns in _TIMES.items():
        for column in columns:
            sql = f"UPDATE {table} SET {column} = {column} - INTERVAL %s SECOND"  # noqa: S608
            database.execute(sql, (seconds,))


def state(database: Database) -> tuple[str, str | None, str, bool]:
    """The order's status and why it closed; its attempt's state, and whether anything is owed."""
    row = database.one(
        "SELECT o.status, o.close_reason, a.state, a.next_ask_at IS NOT NULL AS owed "
        "FROM oms_order AS o JOIN oms_payment_attempt AS a ON a.order_id = o.id"
    )
    return row["status"], row["close_reason"], row["state"], bool(row["owed"])


def trail(database: Database) -> list[tuple[str, str, str]]:
    """What happened to the order since it was placed: the new status, who did it and why."""
    rows = database.rows("SELECT to_status, actor, reason FROM oms_order_event ORDER BY id")
    return [tuple(row.values()) for row in rows[1:]]
