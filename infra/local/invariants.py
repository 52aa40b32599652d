"""What holds of the whole database whenever no message is in flight: each a query that finds
nothing.

The demo ends with them, and so does every storm among the tests.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Invariant:
    """``query`` names what breaks it, one row each."""

    name: str
    query: str


LOOKED_AT_AGAIN: Final = Invariant(
    "a notice that is not decided is looked at again, for a day",
    """
    SELECT notify_id, state, reason
    FROM oms_notice
    WHERE state <> 'DONE'
      AND next_ask_at IS NULL
      AND created_at > TIMESTAMPADD(DAY, -1, NOW(3))
    """,
)

INVARIANTS: Final = (
    LOOKED_AT_AGAIN,
    Invariant(
        "no counter is negative, and no more is locked than is there",
        """
        SELECT sku_id, stock, lock_stock
        FROM ims_sku_stock
        WHERE lock_stock < 0 OR stock < lock_stock
        """,
    ),
    Invariant(
        "what a SKU has locked is the sum of its holds",
        """
        SELECT s.sku_id, s.lock_stock, COALESCE(h.held, 0) AS held
        FROM ims_sku_stock AS s
        LEFT JOIN (
            SELECT i.sku_id, SUM(i.quantity) AS held
            FROM ims_reservation_item AS i
            JOIN ims_reservation AS r USING (reservation_id)
            WHERE r.state = 'RESERVED'
            GROUP BY i.sku_id) AS h USING (sku_id)
        WHERE s.lock_stock <> COALESCE(h.held, 0)
        """,
    ),
    Invariant(
        "what came in is on hand or sold",
        """
        SELECT s.sku_id, s.stock, COALESCE(e.entered, 0) AS entered, COALESCE(c.sold, 0) AS sold
        FROM ims_sku_stock AS s
        LEFT JOIN (
            SELECT sku_id, SUM(delta) AS entered
            FROM ims_stock_entry
            GROUP BY sku_id) AS e USING (sku_id)
        LEFT JOIN (
            SELECT i.sku_id, SUM(i.quantity) AS sold
            FROM ims_reservation_item AS i
            JOIN ims_reservation AS r USING (reservation_id)
            WHERE r.state = 'CONFIRMED'
            GROUP BY i.sku_id) AS c USING (sku_id)
        WHERE COALESCE(e.entered, 0) <> s.stock + COALESCE(c.sold, 0)
        """,
    ),
    Invariant(
        "a hold is its order's lines, or it is a tombstone",
        """
        SELECT r.reservation_id
        FROM ims_reservation AS r
        JOIN oms_order AS o ON o.id = r.order_id
        WHERE r.request_hash IS NOT NULL
          AND (SELECT GROUP_CONCAT(CONCAT(i.sku_id, ':', i.quantity) ORDER BY i.sku_id)
               FROM ims_reservation_item AS i
               WHERE i.reservation_id = r.reservation_id)
           <> (SELECT GROUP_CONCAT(CONCAT(l.sku_id, ':', l.quantity) ORDER BY l.sku_id)
               FROM oms_order_item AS l
               WHERE l.order_id = o.id)
        """,
    ),
    Invariant(
        "an order is paid exactly when one payment of its amount is applied to it",
        """
        SELECT o.order_no, o.status, o.pay_amount, o.paid_amount, p.applied
        FROM oms_order AS o
        LEFT JOIN (
            SELECT order_id, SUM(amount) AS applied
            FROM oms_order_payment
            WHERE state = 'APPLIED'
            GROUP BY order_id) AS p ON p.order_id = o.id
        WHERE (o.status IN ('PAID', 'SHIPPED', 'FINISHED', 'REFUNDING', 'REFUNDED'))
           <> (o.pay_amount <=> p.applied)
           OR o.paid_amount <> COALESCE(p.applied, 0)
        """,
    ),
    Invariant(
        "an order's paid sum is what the ledger says of its payment",
        """
        SELECT o.order_no, o.paid_amount, e.paid
        FROM oms_order AS o
        LEFT JOIN (
            SELECT p.order_id, SUM(m.amount) AS paid
            FROM oms_money_entry AS m
            JOIN oms_order_payment AS p ON p.id = m.payment_id
            WHERE p.state = 'APPLIED' AND m.kind = 'PAYMENT'
            GROUP BY p.order_id) AS e ON e.order_id = o.id
        WHERE o.paid_amount <> COALESCE(e.paid, 0)
        """,
    ),
    Invariant(
        "an order's refunded sum is what the ledger says of its payment",
        """
        SELECT o.order_no, o.refunded_amount, e.refunded
        FROM oms_order AS o
        LEFT JOIN (
            SELECT p.order_id, -SUM(m.amount) AS refunded
            FROM oms_money_entry AS m
            JOIN oms_order_payment AS p ON p.id = m.payment_id
            WHERE p.state = 'APPLIED' AND m.kind = 'REFUND'
            GROUP BY p.order_id) AS e ON e.order_id = o.id
        WHERE o.refunded_amount <> COALESCE(e.refunded, 0)
        """,
    ),
    Invariant(
        "every payment is in the ledger once with its amount, and what went back of it in all",
        """
        SELECT p.trade_no, p.amount, p.refunded_amount, e.came, e.entries, e.went
        FROM oms_order_payment AS p
        LEFT JOIN (
            SELECT payment_id,
                   SUM(IF(kind = 'PAYMENT', amount, 0)) AS came,
                   SUM(kind = 'PAYMENT') AS entries,
                   -SUM(IF(kind = 'REFUND', amount, 0)) AS went
            FROM oms_money_entry
            GROUP BY payment_id) AS e ON e.payment_id = p.id
        WHERE NOT (p.amount <=> e.came AND e.entries <=> 1 AND p.refunded_amount <=> e.went)
        """,
    ),
    Invariant(
        "every yuan has a state, and no trade is two payments",
        """
        SELECT provider, trade_no
        FROM oms_order_payment
        WHERE state = 'RECEIVED'
        UNION ALL
        SELECT provider, trade_no
        FROM oms_order_payment
        GROUP BY provider, trade_no
        HAVING COUNT(*) > 1
        """,
    ),
    Invariant(
        "what went back of a payment is the sum of its refunds, and the ledger says the same",
        """
        SELECT p.trade_no, p.refunded_amount, r.done, m.back
        FROM oms_order_payment AS p
        LEFT JOIN (
            SELECT payment_id, SUM(amount) AS done
            FROM oms_refund
            WHERE state = 'DONE'
            GROUP BY payment_id) AS r ON r.payment_id = p.id
        LEFT JOIN (
            SELECT payment_id, -SUM(amount) AS back
            FROM oms_money_entry
            WHERE kind = 'REFUND'
            GROUP BY payment_id) AS m ON m.payment_id = p.id
        WHERE p.refunded_amount <> COALESCE(r.done, 0)
           OR p.refunded_amount <> COALESCE(m.back, 0)
           OR (p.state = 'REFUNDED' AND p.refunded_amount <> p.amount)
        """,
    ),
    Invariant(
        "what went back of an order is what went back of the payment that paid it",
        """
        SELECT o.order_no, o.status, o.refunded_amount, p.refunded_amount AS of_payment
        FROM oms_order AS o
        LEFT JOIN oms_order_payment AS p ON p.applied_to = o.id
        WHERE o.refunded_amount <> COALESCE(p.refunded_amount, 0)
           OR (o.status = 'REFUNDED') <> (o.paid_amount > 0 AND o.refunded_amount = o.paid_amount)
        """,
    ),
    Invariant(
        "an order has one request, its sum is its lines', and its trail leads to its status",
        """
        SELECT o.order_no
        FROM oms_order AS o
        WHERE (SELECT COUNT(*) FROM oms_order_request AS q WHERE q.order_id = o.id) <> 1
           OR o.total_amount <> (
               SELECT SUM(l.amount) FROM oms_order_item AS l WHERE l.order_id = o.id)
           OR o.status <> (
               SELECT e.to_status
               FROM oms_order_event AS e
               WHERE e.order_id = o.id
               ORDER BY e.id DESC
               LIMIT 1)
        """,
    ),
    Invariant(
        "every request led to an order",
        """
        SELECT q.member_id, q.idempotency_key
        FROM oms_order_request AS q
        LEFT JOIN oms_order AS o ON o.id = q.order_id
        WHERE o.id IS NULL OR q.state <> 'SUCCESS'
        """,
    ),
    Invariant(
        "a paid order's stock is sold, a closed order's is given back, an open order's is held",
        """
        SELECT o.order_no, o.status, r.state
        FROM oms_order AS o
        LEFT JOIN ims_reservation AS r ON r.reservation_id = o.reservation_id
        WHERE NOT r.state <=> CASE
            WHEN o.status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING') THEN 'RESERVED'
            -- One that closed while it waited for its turn: nothing was held. Of its release
            -- nothing need be left, since no turn comes after a close.
            WHEN o.status = 'CLOSED' AND o.expires_at IS NULL AND r.id IS NULL THEN NULL
            WHEN o.status = 'CLOSED' THEN 'RELEASED'
            WHEN o.status = 'RESERVING' THEN r.state
            ELSE 'CONFIRMED'
        END
        """,
    ),
)


def broken(
    read: Callable[[str], Iterable[Mapping[str, Any]]],
) -> dict[str, list[Mapping[str, Any]]]:
    """The invariants that do not hold, each with the rows that break it; empty when all is well."""
    found = {invariant.name: list(read(invariant.query)) for invariant in INVARIANTS}
    return {name: rows for name, rows in found.items() if rows}
