"""A running stack's tables: what a demonstration puts there, reads there, and ages there."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pymysql

from infra.local import invariants
from infra.local.waiting import PATIENCE_SECONDS, wait_until

INSERT_SKU = """
    INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot)
    SELECT GREATEST(COALESCE(MAX(sku_id), 0), 900000) + 1, %s, %s, %s, %s
    FROM ims_sku_stock
"""
INSERT_INITIAL = """
    INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
    VALUES (%s, 'INITIAL', %s, %s, 'system:shop', 'made for a demonstration')
"""
PAYMENTS = """
    SELECT p.id, p.trade_no, p.amount, p.state, p.reason
    FROM oms_order_payment AS p
    JOIN oms_order AS o ON o.id = p.order_id
    WHERE o.order_no = %s
    ORDER BY p.id
"""
REFUNDS = """
    SELECT r.state
    FROM oms_refund AS r
    JOIN oms_order_payment AS p ON p.id = r.payment_id
    JOIN oms_order AS o ON o.id = p.order_id
    WHERE o.order_no = %s
    ORDER BY r.id
"""
HOLD = """
    SELECT r.state
    FROM ims_reservation AS r
    JOIN oms_order AS o ON o.reservation_id = r.reservation_id
    WHERE o.order_no = %s
"""
# As if its payment pages had been open for as long as it.
AGE_ORDER = """
    UPDATE oms_order AS o
    LEFT JOIN oms_payment_attempt AS a ON a.order_id = o.id
    SET o.expires_at = NOW(3) - INTERVAL 61 SECOND,
        a.expires_at = NOW(3) - INTERVAL 61 SECOND,
        a.next_ask_at = NOW(3)
    WHERE o.order_no = %s
"""
AGE_ATTEMPTS = """
    UPDATE oms_payment_attempt AS a
    JOIN oms_order AS o ON o.id = a.order_id
    SET a.next_ask_at = NOW(3)
    WHERE o.order_no = %s
"""
AGE_REFUNDS = """
    UPDATE oms_refund
    SET called_at = called_at - INTERVAL 61 SECOND,
        next_try_at = next_try_at - INTERVAL 61 SECOND
    WHERE payment_id = %s
"""
AGE_MESSAGES = """
    UPDATE outbox
    SET created_at = created_at - INTERVAL 61 SECOND
    WHERE queue = %s
      AND group_key = %s
"""


@dataclass
class Tables:
    """``stack`` is what stack.json says."""

    stack: Mapping[str, Any]
    session: "pymysql.Connection[pymysql.cursors.DictCursor]" = field(init=False)

    def __post_init__(self) -> None:
        at = self.stack["mysql"]
        self.session = pymysql.connect(
            host=at["host"],
            port=at["port"],
            user=at["user"],
            password=at["password"],
            database=at["database"],
            autocommit=True,
            init_command="SET time_zone = '+00:00', transaction_isolation = 'READ-COMMITTED'",
            cursorclass=pymysql.cursors.DictCursor,
        )

    def close(self) -> None:
        self.session.close()

    def rows(self, sql: str, arguments: Sequence[object] = ()) -> list[dict[str, Any]]:
        with self.session.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    # --- stock -----------------------------------------------------------------------------------

    def new_sku(self, title: str, price: str, stock: int, *, hot: bool = False) -> int:
        """A SKU that nobody has ordered from; its id."""
        with self.session.cursor() as cursor:
            cursor.execute(INSERT_SKU, (title, Decimal(price), stock, hot))
            cursor.execute("SELECT MAX(sku_id) AS sku_id FROM ims_sku_stock")
            [row] = cursor.fetchall()
            cursor.execute(INSERT_INITIAL, (row["sku_id"], stock, f"shop:{row['sku_id']}"))
        return int(row["sku_id"])

    def stock(self, sku_id: int) -> tuple[int, int]:
        """(on hand, locked)."""
        [row] = self.rows(
            "SELECT stock, lock_stock FROM ims_sku_stock WHERE sku_id = %s", (sku_id,)
        )
        return row["stock"], row["lock_stock"]

    def hold(self, order_no: str) -> str | None:
        """The state of the hold that an order names."""
        found = self.rows(HOLD, (order_no,))
        return found[0]["state"] if found else None

    def wait_for_hold(self, order_no: str, state: str) -> float:
        """Wait until the queue has done its work; the seconds that took."""
        return wait_until(lambda: self.hold(order_no) == state, f"{order_no} {state}")

    # --- orders ----------------------------------------------------------------------------------

    def status(self, order_no: str) -> str:
        [row] = self.rows("SELECT status FROM oms_order WHERE order_no = %s", (order_no,))
        return str(row["status"])

    def wait_for_status(
        self, order_no: str, status: str, seconds: float = PATIENCE_SECONDS
    ) -> float:
        """Wait until the order is there; the seconds that took."""
        return wait_until(
            lambda: self.status(order_no) == status, f"{order_no} {status}", seconds=seconds
        )

    def wait_for_decision(self, order_no: str) -> float:
        """Wait until an order in line had its turn; the seconds that took."""
        return wait_until(lambda: self.status(order_no) != "RESERVING", f"{order_no}'s turn")

    def end_time_of(self, order_no: str) -> None:
        """Let an unpaid order's time be over, and that of its payment pages."""
        self.rows(AGE_ORDER, (order_no,))

    # --- money -----------------------------------------------------------------------------------

    def payments(self, order_no: str) -> list[dict[str, Any]]:
        """id, trade_no, amount, state and reason of each payment of an order, as they arrived."""
        return self.rows(PAYMENTS, (order_no,))

    def payment_states(self, order_no: str) -> list[str]:
        """Each with its reason, where there is one."""
        return [
            " ".join(filter(None, (one["state"], one["reason"]))) for one in self.payments(order_no)
        ]

    def wait_for_payments(self, order_no: str, *states: str) -> float:
        """Wait until that is what they are; the seconds that took."""
        return wait_until(
            lambda: self.payment_states(order_no) == list(states),
            f"payments {states} of {order_no}",
        )

    def wait_for_any_payment(self, order_no: str) -> float:
        """Wait until one was recorded, whatever becomes of it; the seconds that took."""
        return wait_until(lambda: self.payments(order_no) != [], f"a payment of {order_no}")

    def wait_for_trade(self, trade_no: str, state: str) -> float:
        """Wait until that became of a payment, of an order or of none; the seconds that took."""
        found = "SELECT 1 FROM oms_order_payment WHERE trade_no = %s AND state = %s"
        return wait_until(lambda: self.rows(found, (trade_no, state)) != [], f"{trade_no} {state}")

    def refund_states(self, order_no: str) -> list[str]:
        """Of the refunds of an order's payments, as they were asked for."""
        return [row["state"] for row in self.rows(REFUNDS, (order_no,))]

    def wait_for_refunds(self, order_no: str, *states: str) -> float:
        """Wait until that is what they are; the seconds that took."""
        return wait_until(
            lambda: self.refund_states(order_no) == list(states),
            f"refunds {states} of {order_no}",
        )

    def let_a_minute_pass(self, order_no: str) -> None:
        """For what waits to be asked about: the order's payment pages, and its refunds."""
        self.rows(AGE_ATTEMPTS, (order_no,))
        for payment in self.payments(order_no):
            self.rows(AGE_REFUNDS, (payment["id"],))
            self.rows(AGE_MESSAGES, ("refund", str(payment["id"])))

    # --- all of it -------------------------------------------------------------------------------

    def broken_invariants(self) -> dict[str, list[Mapping[str, Any]]]:
        """What does not hold though the queues were given time: the schedules are never at rest."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not invariants.broken(self.rows), "the invariants")
        return invariants.broken(self.rows)
