"""Time passes for the product by SQL: whatever was to happen in an hour is due.

For all that is in the database; or, while others are at work, for one order, or for refunds only.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders.store import lock_order
from tests.support.database import Database

# An order's time to pay; and how long that is over after `until_over`: longer than the channel may
# still take money for it.
TTL: Final = timedelta(minutes=10)
OVER_SINCE: Final = timedelta(minutes=2)

_WAITS: Final = {
    "oms_order": ("created_at", "expires_at", "cancel_requested_at"),
    "oms_payment_attempt": ("created_at", "expires_at", "next_ask_at"),
    "oms_order_payment": ("created_at",),
    "oms_refund": ("created_at", "next_try_at", "called_at"),
    "oms_notice": ("created_at", "next_ask_at"),
    "ims_reservation": ("created_at", "expires_at"),
    "outbox": ("created_at", "sent_at", "next_at"),
}
# The locks of one order, in the order in which everybody takes them.
_OF_AN_ORDER: Final = {
    "oms_order": ("id", ("created_at", "expires_at")),
    "oms_payment_attempt": ("order_id", ("expires_at", "next_ask_at")),
    "ims_reservation": ("order_id", ("expires_at",)),
}
_OF_A_PAGE: Final = {"oms_payment_attempt": ("order_id", ("next_ask_at",))}


def an_hour(database: Database) -> None:
    """For everything."""
    some_time(database, timedelta(hours=1))


def some_time(database: Database, time: timedelta) -> None:
    """For everything."""
    seconds = int(time.total_seconds())
    for table, columns in _WAITS.items():
        database.execute(_earlier(table, columns), [seconds] * len(columns))


def until_over(order_id: int) -> None:
    """For an order, its pages and its hold."""
    _age_order(order_id, _OF_AN_ORDER, TTL + OVER_SINCE)


def until_asked(order_id: int) -> None:
    """For the pages of an order, of which nobody told anything yet."""
    _age_order(order_id, _OF_A_PAGE, timedelta(minutes=1))


def a_minute_for_refunds() -> None:
    """For every refund that is under way, and for the messages that say so."""

    def work(tx: Tx) -> None:
        tx.execute(_earlier("oms_refund", ("next_try_at", "called_at")), (61, 61))
        tx.execute(
            _earlier("outbox", ("created_at", "next_at")) + " WHERE queue = 'refund'", (61, 61)
        )

    in_transaction(work)


def _age_order(
    order_id: int, tables: Mapping[str, tuple[str, tuple[str, ...]]], time: timedelta
) -> None:
    def work(tx: Tx) -> None:
        lock_order(tx, order_id)
        for table, (key, columns) in tables.items():
            seconds = [int(time.total_seconds())] * len(columns)
            tx.execute(f"{_earlier(table, columns)} WHERE {key} = %s", [*seconds, order_id])

    in_transaction(work)


def _earlier(table: str, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f"{column} = {column} - INTERVAL %s SECOND" for column in columns)
    return f"UPDATE {table} SET {changes}"  # noqa: S608 - the names above
