"""Orders made by the server itself: a past of any length, and the present that a run begins with.

Of each order there is everything that its way left: lines, request, trail, hold, payment page,
payment, notice, entry of the ledger, sent messages. In the past five of seven were paid, the
others expired; each fifth waited for the hot SKU, each fourth has two lines. A member has ordered
ORDERS_EACH times, spread over two years, so that those orders lie far apart.

One common table expression says what an order is; each statement takes its columns from there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SKUS: Final = 1000
HOT_SKU: Final = SKUS + 1
STOCK: Final = 100_000_000
ORDERS_EACH: Final = 20
PAST_DAYS: Final = 730

# Order i, whose member comes again after as many orders as there are members.
_PAST: Final = """
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}),
due AS (
    SELECT i,
           1 + (i - 1) % {members} AS member_id,
           TIMESTAMPADD(
               SECOND, (i - 1) * {days} * 86400 DIV {orders}, CURDATE() - INTERVAL {days} + 1 DAY
           ) AS at
    FROM n),
o AS (
    SELECT i AS id,
           CONCAT(DATE_FORMAT(at, '%Y%m%d'), '01', LPAD(TIME_TO_SEC(at) * 1000, 8, '0'),
                  LPAD(member_id % 100, 2, '0'), LPAD(i % 10000, 4, '0')) AS order_no,
           member_id,
           IF(i % 7 < 5, 'PAID', 'CLOSED') AS status,
           'PENDING_PAYMENT' AS prev_status,
           IF(i % 7 < 5, 'CONFIRMED', 'RELEASED') AS hold,
           i % 7 < 5 AS is_paid,
           TRUE AS has_page,
           i % 5 = 0 AS is_hot,
           IF(i % 5 = 0, {hot}, 1 + i % {skus}) AS sku_id,
           IF(i % 4 = 0, 1 + (i + {skus} DIV 2) % {skus}, NULL) AS other_sku_id,
           IF(i % 4 = 0, 19.80, 9.90) AS amount,
           at,
           TIMESTAMPADD(MINUTE, 30, at) AS expires_at
    FROM due)
"""
# Orders of now, all in one state, by the members that come; what they wait for is not there yet.
_PRESENT: Final = """
WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}),
o AS (
    SELECT i AS id,
           CONCAT(DATE_FORMAT(CURDATE(), '%Y%m%d'), '02', LPAD(i, 14, '0')) AS order_no,
           1 + i % {members} AS member_id,
           '{status}' AS status,
           IF('{status}' IN ('PAID', 'CLOSED'), 'PENDING_PAYMENT', 'NONE') AS prev_status,
           IF('{status}' = 'RESERVING', NULL, 'RESERVED') AS hold,
           '{status}' = 'PAID' AS is_paid,
           FALSE AS has_page,
           '{status}' = 'RESERVING' AS is_hot,
           IF('{status}' = 'RESERVING', {hot}, 1 + i % {skus}) AS sku_id,
           NULL AS other_sku_id,
           9.90 AS amount,
           NOW(3) AS at,
           IF('{status}' = 'RESERVING', NULL, NOW(3) + INTERVAL 1 DAY) AS expires_at
    FROM n)
"""

_TRADE_NO: Final = "CONCAT(DATE_FORMAT(at, '%Y%m%d'), '22001', LPAD(id, 15, '0'))"
_ITEMS: Final = ("sku_id", "other_sku_id")
# A trail's steps: from, to, after so many seconds, why, and whose.
_STEPS: Final = (
    ("'NONE'", "IF(is_hot, 'RESERVING', 'PENDING_PAYMENT')", 0, "'PLACED'", "TRUE"),
    ("'RESERVING'", "'PENDING_PAYMENT'", 1, "'HELD'", "is_hot AND status <> 'RESERVING'"),
    ("'PENDING_PAYMENT'", "status", 60, "IF(is_paid, 'PAID', 'EXPIRED')", "prev_status <> 'NONE'"),
)
_FINISH: Final = "IF(is_paid, 'confirm', 'release')"
_COMMAND: Final = (
    "JSON_OBJECT('v', 1, 'type', {kind}, 'order_id', id, 'reservation_id', "
    "CONCAT(order_no, '-1'), 'correlation_id', LEFT(SHA2(id, 256), 32))"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """``columns`` says what of an order becomes a row of ``table``."""

    table: str
    columns: dict[str, str]
    where: str = "TRUE"

    def insert(self, orders: str) -> str:
        """From ``orders``, the expression that says what they are."""
        return (
            f"INSERT INTO {self.table} ({', '.join(self.columns)}) {orders} "
            f"SELECT {', '.join(self.columns.values())} FROM o WHERE {self.where}"
        )


def past(first: int, last: int, orders: int) -> str:
    """Orders ``first`` to ``last`` of a past of ``orders``."""
    return _PAST.format(
        first=first,
        last=last,
        orders=orders,
        members=orders // ORDERS_EACH,
        days=PAST_DAYS,
        skus=SKUS,
        hot=HOT_SKU,
    )


def present(first: int, last: int, status: str, members: int) -> str:
    """Orders ``first`` to ``last``, each in ``status``, of ``members``."""
    return _PRESENT.format(
        first=first, last=last, status=status, members=members, skus=SKUS, hot=HOT_SKU
    )


def of_an_order() -> Iterator[Rows]:
    """In the order that they may be written in: a trail's last step is its last row."""
    yield Rows("oms_order", _order())
    yield Rows("oms_order_request", _request())
    for sku in _ITEMS:
        yield Rows("oms_order_item", _line(sku), f"{sku} IS NOT NULL")
    for before, after, seconds, reason, where in _STEPS:
        yield Rows("oms_order_event", _step(before, after, seconds, reason), where)
    yield Rows("ims_reservation", _hold(), "hold IS NOT NULL")
    for sku in _ITEMS:
        columns = {"reservation_id": "CONCAT(order_no, '-1')", "sku_id": sku, "quantity": "1"}
        yield Rows("ims_reservation_item", columns, f"hold IS NOT NULL AND {sku} IS NOT NULL")
    yield Rows("oms_payment_attempt", _page(), "has_page")
    yield Rows("oms_order_payment", _payment(), "is_paid")
    yield Rows("oms_notice", _notice(), "is_paid")
    yield Rows("oms_money_entry", _entry(), "is_paid")
    yield Rows("outbox", _message("'reserve'", "'ReserveStock'", "2 * id - 1"), "is_hot")
    finish = _message(_FINISH, "IF(is_paid, 'ConfirmStock', 'ReleaseStock')", "2 * id")
    yield Rows("outbox", finish, "prev_status <> 'NONE'")


def _order() -> dict[str, str]:
    return {
        "id": "id",
        "order_no": "order_no",
        "member_id": "member_id",
        "status": "status",
        "prev_status": "prev_status",
        "close_reason": "IF(status = 'CLOSED', 'EXPIRED', NULL)",
        "total_amount": "amount",
        "pay_amount": "amount",
        "paid_amount": "IF(is_paid, amount, 0)",
        "reservation_id": "CONCAT(order_no, '-1')",
        "turn_sku_id": f"IF(is_hot, {HOT_SKU}, NULL)",
        "expires_at": "expires_at",
        "paid_at": "IF(is_paid, TIMESTAMPADD(SECOND, 60, at), NULL)",
        "created_at": "at",
    }


def _request() -> dict[str, str]:
    return {
        "member_id": "member_id",
        "idempotency_key": "CONCAT('order-', id)",
        "request_hash": "SHA2(id, 256)",
        "state": "'SUCCESS'",
        "order_id": "id",
        "created_at": "at",
    }


def _line(sku: str) -> dict[str, str]:
    return {
        "order_id": "id",
        "sku_id": sku,
        "title": f"CONCAT('of a benchmark, number ', {sku})",
        "quantity": "1",
        "price": "9.90",
        "amount": "9.90",
    }


def _step(before: str, after: str, seconds: int, reason: str) -> dict[str, str]:
    return {
        "order_id": "id",
        "from_status": before,
        "to_status": after,
        "actor": "CONCAT('member:', member_id)",
        "reason": reason,
        "evidence": f"IF({after} = 'PAID', JSON_OBJECT('trade_no', {_TRADE_NO}), NULL)",
        "created_at": f"TIMESTAMPADD(SECOND, {seconds}, at)",
    }


def _hold() -> dict[str, str]:
    return {
        "id": "id",
        "reservation_id": "CONCAT(order_no, '-1')",
        "order_id": "id",
        "n": "1",
        "request_hash": "SHA2(id, 256)",
        "state": "hold",
        "expires_at": "TIMESTAMPADD(MINUTE, 10, expires_at)",
        "created_at": "at",
        "updated_at": "TIMESTAMPADD(SECOND, 61, at)",
    }


def _page() -> dict[str, str]:
    return {
        "order_id": "id",
        "out_trade_no": "order_no",
        "product": "'page'",
        "amount": "amount",
        "state": "IF(is_paid, 'PAID', 'CLOSED')",
        "expires_at": "expires_at",
        "asks": "1",
        "created_at": "at",
    }


def _payment() -> dict[str, str]:
    return {
        "id": "id",
        "provider": "'alipay'",
        "trade_no": _TRADE_NO,
        "out_trade_no": "order_no",
        "order_id": "id",
        "amount": "amount",
        "state": "'APPLIED'",
        "gateway_paid_at": "TIMESTAMPADD(SECOND, 59, at)",
        "created_at": "TIMESTAMPADD(SECOND, 60, at)",
    }


def _notice() -> dict[str, str]:
    return {
        "id": "id",
        "provider": "'alipay'",
        "notify_id": "CONCAT(DATE_FORMAT(at, '%Y%m%d%H%i%s'), LPAD(id, 20, '0'))",
        "content_hash": "SHA2(id, 256)",
        "kind": "'PAYMENT'",
        "notify_type": "'trade_status_sync'",
        "app_id": "'2021000100000001'",
        "seller_id": "'2088000000000001'",
        "trade_no": _TRADE_NO,
        "out_trade_no": "order_no",
        "trade_status": "'TRADE_SUCCESS'",
        "total_amount": "amount",
        "gmt_payment": "TIMESTAMPADD(SECOND, 59, at)",
        "state": "'DONE'",
        "created_at": "TIMESTAMPADD(SECOND, 60, at)",
    }


def _entry() -> dict[str, str]:
    return {
        "order_id": "id",
        "payment_id": "id",
        "kind": "'PAYMENT'",
        "amount": "amount",
        "source": f"CONCAT('alipay:', {_TRADE_NO})",
        "created_at": "TIMESTAMPADD(SECOND, 60, at)",
    }


def _message(queue: str, kind: str, number: str) -> dict[str, str]:
    return {
        "id": number,
        "message_id": f"LEFT(SHA2(CONCAT({queue}, id), 256), 32)",
        "queue": queue,
        "group_key": "CONCAT(order_no, '-1')",
        "payload": _COMMAND.format(kind=kind),
        "created_at": "at",
        "sent_at": "TIMESTAMPADD(SECOND, 1, at)",
        "attempts": "1",
        "next_at": "TIMESTAMPADD(SECOND, 10, at)",
    }
