"""The SQL that the sweep looks with.

It finds candidates without a lock; whoever acts on one decides again under the order's lock. A page
continues after the last row seen, so that a row which cannot be settled never stands in the way of
the next.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from lockstep.db.transaction import Reader
from lockstep.orders.model import OrderStatus

PAGE_SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a page ended: a time and, among equals, an id."""

    at: datetime = datetime(1970, 1, 2, tzinfo=UTC)
    id: int = 0


@dataclass(frozen=True, slots=True)
class OverdueOrder:
    order_id: int
    reservation_id: str
    mark: Mark

    @property
    def name(self) -> str:
        return self.reservation_id


@dataclass(frozen=True, slots=True)
class DueNotice:
    notice_id: int
    mark: Mark

    @property
    def name(self) -> str:
        return f"notice:{self.notice_id}"


@dataclass(frozen=True, slots=True)
class OpenHold:
    """A RESERVED hold, and what its order says. ``status`` is None where there is no order."""

    reservation_id: str
    order_id: int
    status: OrderStatus | None
    is_named: bool
    mark: Mark

    @property
    def name(self) -> str:
        return self.reservation_id


# An order with a payment page that may be open waits for the channel's word. One status at a time:
# both at once would be sorted.
READ_EXPIRED_ORDERS: Final = """
SELECT o.id, o.reservation_id, o.expires_at AS at
FROM oms_order AS o
WHERE o.status = %(status)s
  AND o.expires_at BETWEEN %(at)s AND NOW(3)
  AND (o.expires_at > %(at)s OR o.id > %(id)s)
  AND NOT EXISTS (
      SELECT 1
      FROM oms_payment_attempt AS a
      WHERE a.order_id = o.id
        AND a.state IN ('OPEN', 'CLOSING'))
ORDER BY o.expires_at, o.id
LIMIT %(limit)s
"""


def read_expired_orders(reader: Reader, after: Mark, status: OrderStatus) -> list[OverdueOrder]:
    """Unpaid orders past their time, longest ago first."""
    return _orders(reader, READ_EXPIRED_ORDERS, after, {"status": status})


READ_WAITING_ORDERS: Final = """
SELECT o.id, o.reservation_id, o.created_at AS at
FROM oms_order AS o
WHERE o.status = 'RESERVING'
  AND o.created_at BETWEEN %(at)s AND TIMESTAMPADD(SECOND, -%(seconds)s, NOW(3))
  AND (o.created_at > %(at)s OR o.id > %(id)s)
ORDER BY o.created_at, o.id
LIMIT %(limit)s
"""


def read_waiting_orders(reader: Reader, after: Mark, seconds: int) -> list[OverdueOrder]:
    """Orders that have waited for a hot SKU for ``seconds`` or more, longest first."""
    return _orders(reader, READ_WAITING_ORDERS, after, {"seconds": seconds})


# Who rings for one order of a turn rings for all of them.
READ_WAITING_TURNS: Final = """
SELECT o.id, o.reservation_id, o.created_at AS at
FROM oms_order AS o
WHERE o.status = 'RESERVING'
  AND o.created_at BETWEEN %(at)s AND TIMESTAMPADD(SECOND, -%(seconds)s, NOW(3))
  AND (o.created_at > %(at)s OR o.id > %(id)s)
  AND NOT EXISTS (
      SELECT 1
      FROM oms_order AS f FORCE INDEX (ix_order_turn)
      WHERE f.turn_sku_id = o.turn_sku_id
        AND f.status = 'RESERVING'
        AND f.id < o.id)
ORDER BY o.created_at, o.id
LIMIT %(limit)s
"""


def read_waiting_turns(reader: Reader, after: Mark, seconds: int) -> list[OverdueOrder]:
    """The first order of each turn, and each that stands at none, where it has waited for
    ``seconds`` or more, longest first."""
    return _orders(reader, READ_WAITING_TURNS, after, {"seconds": seconds})


READ_LATE_PAYMENTS: Final = """
SELECT p.id, p.order_id, p.created_at AS at, o.reservation_id
FROM oms_order_payment AS p
JOIN oms_order AS o ON o.id = p.order_id
WHERE p.state = 'REINSTATE_PENDING'
  AND p.created_at BETWEEN %(at)s AND TIMESTAMPADD(SECOND, -%(seconds)s, NOW(3))
  AND (p.created_at > %(at)s OR p.id > %(id)s)
ORDER BY p.created_at, p.id
LIMIT %(limit)s
"""


def read_late_payments(reader: Reader, after: Mark, seconds: int) -> list[OverdueOrder]:
    """Expired orders whose money waits for a fresh hold for ``seconds`` or more, once a payment,
    longest first."""
    arguments = {"at": after.at, "id": after.id, "limit": PAGE_SIZE, "seconds": seconds}
    rows = reader.all(READ_LATE_PAYMENTS, arguments)
    return [
        OverdueOrder(row["order_id"], row["reservation_id"], Mark(row["at"], row["id"]))
        for row in rows
    ]


READ_DUE_NOTICES: Final = """
SELECT id, next_ask_at AS at
FROM oms_notice
WHERE next_ask_at BETWEEN %(at)s AND NOW(3)
  AND (next_ask_at > %(at)s OR id > %(id)s)
ORDER BY next_ask_at, id
LIMIT %(limit)s
"""


def read_due_notices(reader: Reader, after: Mark) -> list[DueNotice]:
    """Notices whose time to be looked at again has come, longest ago first."""
    rows = reader.all(READ_DUE_NOTICES, {"at": after.at, "id": after.id, "limit": PAGE_SIZE})
    return [DueNotice(row["id"], Mark(row["at"], row["id"])) for row in rows]


def _orders(
    reader: Reader, sql: LiteralString, after: Mark, more: dict[str, object]
) -> list[OverdueOrder]:
    rows = reader.all(sql, {"at": after.at, "id": after.id, "limit": PAGE_SIZE, **more})
    return [
        OverdueOrder(row["id"], row["reservation_id"], Mark(row["at"], row["id"])) for row in rows
    ]


READ_OVERDUE_HOLDS: Final = """
SELECT r.id, r.reservation_id, r.order_id, r.expires_at AS at, o.status,
       r.reservation_id <=> o.reservation_id AS is_named
FROM ims_reservation AS r
LEFT JOIN oms_order AS o ON o.id = r.order_id
WHERE r.state = 'RESERVED'
  AND r.expires_at BETWEEN %(at)s AND NOW(3)
  AND (r.expires_at > %(at)s OR r.id > %(id)s)
ORDER BY r.expires_at, r.id
LIMIT %(limit)s
"""


def read_overdue_holds(reader: Reader, after: Mark) -> list[OpenHold]:
    """Holds past their time, longest ago first."""
    return _holds(reader, READ_OVERDUE_HOLDS, after)


# The order is decided, its hold is not, and nothing was said to its queue for a minute. Of
# both queues at once, IN ('confirm', 'release'), the optimizer would read the whole outbox.
READ_UNSETTLED_HOLDS: Final = """
SELECT r.id, r.reservation_id, r.order_id, r.expires_at AS at, o.status,
       r.reservation_id <=> o.reservation_id AS is_named
FROM ims_reservation AS r
JOIN oms_order AS o ON o.id = r.order_id
WHERE r.state = 'RESERVED'
  AND r.expires_at >= %(at)s
  AND (r.expires_at > %(at)s OR r.id > %(id)s)
  AND (o.status NOT IN ('RESERVING', 'PENDING_PAYMENT', 'PAYMENT_PROCESSING')
       OR NOT r.reservation_id <=> o.reservation_id)
  AND NOT EXISTS (
      SELECT 1
      FROM outbox AS b
      WHERE b.queue = IF(o.status = 'CLOSED' OR NOT r.reservation_id <=> o.reservation_id,
                         'release', 'confirm')
        AND b.group_key = r.reservation_id
        AND b.created_at > TIMESTAMPADD(SECOND, -60, NOW(3)))
ORDER BY r.expires_at, r.id
LIMIT %(limit)s
"""


def read_unsettled_holds(reader: Reader, after: Mark) -> list[OpenHold]:
    """Holds whose order says that they should be sold or given back by now."""
    return _holds(reader, READ_UNSETTLED_HOLDS, after)


def _holds(reader: Reader, sql: LiteralString, after: Mark) -> list[OpenHold]:
    rows = reader.all(sql, {"at": after.at, "id": after.id, "limit": PAGE_SIZE})
    return [_hold(row) for row in rows]


def _hold(row: dict[str, Any]) -> OpenHold:
    return OpenHold(
        row["reservation_id"],
        row["order_id"],
        None if row["status"] is None else OrderStatus(row["status"]),
        bool(row["is_named"]),
        Mark(row["at"], row["id"]),
    )


READ_DUE_ATTEMPTS: Final = """
SELECT id, order_id, out_trade_no, next_ask_at AS at
FROM oms_payment_attempt
WHERE next_ask_at BETWEEN %(at)s AND NOW(3)
  AND (next_ask_at > %(at)s OR id > %(id)s)
ORDER BY next_ask_at, id
LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class DueAttempt:
    """An attempt to ask the channel about, or one that is over and still owes what follows."""

    attempt_id: int
    order_id: int
    out_trade_no: str
    mark: Mark

    @property
    def name(self) -> str:
        return self.out_trade_no


def read_due_attempts(reader: Reader, after: Mark) -> list[DueAttempt]:
    """Attempts whose turn has come, longest ago first."""
    rows = reader.all(READ_DUE_ATTEMPTS, {"at": after.at, "id": after.id, "limit": PAGE_SIZE})
    return [
        DueAttempt(row["id"], row["order_id"], row["out_trade_no"], Mark(row["at"], row["id"]))
        for row in rows
    ]


COUNT_OVERDUE: Final = """
SELECT
    (SELECT COUNT(*)
     FROM oms_order AS o
     WHERE o.status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING') AND o.expires_at <= NOW(3)
    ) AS orders,
    (SELECT COUNT(*)
     FROM ims_reservation AS r
     WHERE r.state = 'RESERVED' AND r.expires_at <= NOW(3)) AS holds
"""


def count_overdue(reader: Reader) -> dict[str, int]:
    """How many orders and holds are past their time right now."""
    [row] = reader.all(COUNT_OVERDUE)
    return row
