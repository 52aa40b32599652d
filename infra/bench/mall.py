"""The statements that one order costs in macrozheng/mall (commit 74eebe0): create, pay, cancel.

Its tables with the columns that its statements use, its isolation, its order of statements: the
stock row is locked early and stays so. One SKU, no coupon, no points. Its order number from Redis
and its message to RabbitMQ, which it sends inside the transaction, are left out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final

from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.seed_tables import SKU_STOCK
from infra.bench.way import (
    NUMBERS,
    PLENTY,
    Session,
    Verdict,
    WentWrong,
    ask,
    make_tables,
    one_by_one,
    peer_session,
)
from infra.measuring.ground import Ground

NAME: Final = "macrozheng/mall's statements"
ISOLATION: Final = "REPEATABLE-READ"
# Of the forty-five columns of an order the ones of text are what makes a row long.
TEXTS: Final = (
    *("receiver_name", "receiver_phone", "receiver_post_code", "receiver_province"),
    *("receiver_city", "receiver_region", "receiver_detail_address", "member_username"),
    *("promotion_info", "note", "bill_header", "bill_content"),
)
NUMBERS_OF_AN_ORDER: Final = (
    *("total_amount", "pay_amount", "freight_amount", "promotion_amount", "integration_amount"),
    *("coupon_amount", "discount_amount"),
)
FLAGS: Final = (
    *("pay_type", "source_type", "order_type", "auto_confirm_day", "integration", "growth"),
    *("bill_type", "confirm_status", "use_integration"),
)
TABLES: Final = {
    "pms_sku_stock": SKU_STOCK,
    "pms_product": "id BIGINT PRIMARY KEY, name VARCHAR(200) NOT NULL, "
    "price DECIMAL(10,2) NOT NULL, promotion_type INT NOT NULL DEFAULT 0",
    "oms_cart_item": "id BIGINT AUTO_INCREMENT PRIMARY KEY, member_id BIGINT NOT NULL, "
    "product_id BIGINT NOT NULL, product_sku_id BIGINT NOT NULL, quantity INT NOT NULL, "
    "delete_status INT NOT NULL DEFAULT 0, KEY ix_member (member_id)",
    "ums_member_receive_address": "id BIGINT PRIMARY KEY, name VARCHAR(100) NOT NULL",
    "oms_order_setting": "id BIGINT PRIMARY KEY, normal_order_overtime INT, confirm_overtime INT",
    "oms_order": "id BIGINT AUTO_INCREMENT PRIMARY KEY, member_id BIGINT NOT NULL, "
    "order_sn VARCHAR(64), status INT, delete_status INT NOT NULL DEFAULT 0, "
    "create_time DATETIME, payment_time DATETIME, modify_time DATETIME, "
    + ", ".join(f"{name} DECIMAL(10,2)" for name in NUMBERS_OF_AN_ORDER)
    + ", "
    + ", ".join(f"{name} INT" for name in FLAGS)
    + ", "
    + ", ".join(f"{name} VARCHAR(200)" for name in TEXTS),
    "oms_order_item": "id BIGINT AUTO_INCREMENT PRIMARY KEY, order_id BIGINT NOT NULL, "
    "order_sn VARCHAR(64), product_id BIGINT, product_name VARCHAR(200), "
    "product_price DECIMAL(10,2), product_quantity INT, product_sku_id BIGINT, "
    "KEY ix_order (order_id)",
}
COLUMNS: Final = ("member_id", "order_sn", "status", *NUMBERS_OF_AN_ORDER, *FLAGS, *TEXTS)
VALUES: Final = [
    *[f"'{9.90}'" for _ in NUMBERS_OF_AN_ORDER],
    *["1" for _ in FLAGS],
    *["'as long as an address'" for _ in TEXTS],
]

CART: Final = "SELECT * FROM oms_cart_item WHERE id = %s AND member_id = %s AND delete_status = 0"
PRODUCT: Final = (
    "SELECT p.*, s.* FROM pms_product AS p JOIN pms_sku_stock AS s ON s.product_id = p.id "
    "WHERE p.id = %s AND s.id = %s"
)
SKU: Final = "SELECT * FROM pms_sku_stock WHERE id = %s"
LOCK: Final = (
    "UPDATE pms_sku_stock SET lock_stock = lock_stock + %s "
    "WHERE id = %s AND lock_stock + %s <= stock"
)
ADDRESS: Final = "SELECT * FROM ums_member_receive_address WHERE id = 1"
SETTING: Final = "SELECT * FROM oms_order_setting"
ADD_ORDER: Final = (
    f"INSERT INTO oms_order ({', '.join(COLUMNS)}, create_time) "
    f"VALUES (%s, %s, 0, {', '.join(VALUES)}, NOW())"
)
ADD_LINE: Final = (
    "INSERT INTO oms_order_item (order_id, order_sn, product_id, product_name, product_price, "
    "product_quantity, product_sku_id) VALUES (%s, %s, %s, 'of a benchmark', 9.90, 1, %s)"
)
EMPTY_CART: Final = "UPDATE oms_cart_item SET delete_status = 1 WHERE id = %s AND member_id = %s"

PAY: Final = (
    "UPDATE oms_order SET status = 1, payment_time = NOW(), pay_type = 1 "
    "WHERE id = %s AND delete_status = 0 AND status = 0"
)
DETAIL: Final = (
    "SELECT o.*, i.* FROM oms_order AS o JOIN oms_order_item AS i ON i.order_id = o.id "
    "WHERE o.id = %s"
)
REDUCE: Final = (
    "UPDATE pms_sku_stock SET lock_stock = lock_stock - %s, stock = stock - %s "
    "WHERE id = %s AND stock - %s >= 0 AND lock_stock - %s >= 0"
)
UNPAID: Final = "SELECT * FROM oms_order WHERE id = %s AND status = 0 AND delete_status = 0"
WRITTEN: Final = ", ".join(
    f"{column} = {value}" for column, value in zip(COLUMNS[3:], VALUES, strict=True)
)
CLOSE: Final = f"UPDATE oms_order SET {WRITTEN}, status = 4 WHERE id = %s"
LINES: Final = "SELECT * FROM oms_order_item WHERE order_id = %s"
FREE: Final = (
    "UPDATE pms_sku_stock SET lock_stock = lock_stock - %s WHERE id = %s AND lock_stock - %s >= 0"
)


def _make(ground: Ground, skus: int, stock: int, orders: int = 0) -> None:
    numbers = "FROM bench_number WHERE i <="
    make_tables(
        ground,
        TABLES,
        "INSERT INTO pms_sku_stock (id, product_id, sku_code, price, stock) "
        f"SELECT i, i, CONCAT('S', i), 9.90, {stock:d} {numbers} {skus:d}",
        f"INSERT INTO pms_product (id, name, price) SELECT i, 'a thing', 9.90 {numbers} {skus:d}",
        "INSERT INTO oms_cart_item (id, member_id, product_id, product_sku_id, quantity) "
        f"SELECT i, i, 1 + i % {skus:d}, 1 + i % {skus:d}, 1 {numbers} {NUMBERS:d}",
        "INSERT INTO ums_member_receive_address VALUES (1, 'somebody')",
        "INSERT INTO oms_order_setting VALUES (1, 120, 15)",
        f"INSERT INTO oms_order ({', '.join(COLUMNS)}, create_time) "
        f"SELECT i, CONCAT('O', i), 0, {', '.join(VALUES)}, NOW() {numbers} {orders:d}",
        "INSERT INTO oms_order_item (order_id, order_sn, product_id, product_quantity, "
        f"product_sku_id) SELECT i, CONCAT('O', i), 1, 1, 1 + i % {skus:d} {numbers} {orders:d}",
        "UPDATE pms_sku_stock AS s JOIN (SELECT product_sku_id, COUNT(*) AS held "
        "FROM oms_order_item GROUP BY product_sku_id) AS h ON h.product_sku_id = s.id "
        "SET s.lock_stock = h.held",
    )


@dataclass(frozen=True)
class MallCreate:
    skus: int = 1
    stock: int = PLENTY

    name: ClassVar[str] = f"{NAME}: create"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        _make(ground, self.skus, self.stock)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number + 1, seat.clients)
        with peer_session(ISOLATION) as session:
            yield Client(lambda: self._create(session, next(numbers)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [orders, locked, over] = map(
            int,
            ask(
                ground,
                "SELECT (SELECT COUNT(*) FROM oms_order_item), SUM(lock_stock), "
                "SUM(GREATEST(lock_stock - stock, 0)) FROM pms_sku_stock",
            ),
        )
        return Verdict(orders, abs(orders - locked) + abs(orders - outcome.done) + over)

    def _create(self, session: Session, n: int) -> int | None:
        member = 1 + (n - 1) % NUMBERS
        sku_id = 1 + member % self.skus
        with session.cursor() as cursor:
            cursor.execute(CART, (member, member))
            cursor.execute(PRODUCT, (sku_id, sku_id))
            cursor.execute(SKU, (sku_id,))
            if cursor.execute(LOCK, (1, sku_id, 1)) != 1:
                session.rollback()
                return None
            cursor.execute(ADDRESS)
            cursor.execute(SETTING)
            cursor.execute(ADD_ORDER, (member, f"O{n}"))
            cursor.execute(ADD_LINE, (cursor.lastrowid, f"O{n}", sku_id, sku_id))
            cursor.execute(EMPTY_CART, (member, member))
        session.commit()
        return 1


@dataclass(frozen=True)
class MallFinish:
    """Orders that are unpaid and hold stock are paid or cancelled."""

    verb: str
    orders: int
    skus: int = 1

    may_lose: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{NAME}: {self.verb}"

    def prepare(self, ground: Ground) -> None:
        _make(ground, self.skus, PLENTY, self.orders)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = iter(range(seat.number + 1, self.orders + 1, seat.clients))
        finish: Callable[[Session, int], int] = {"pay": _pay, "cancel": _cancel}[self.verb]
        with peer_session(ISOLATION) as session:
            yield one_by_one(numbers, lambda n: finish(session, n))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [unpaid, locked] = map(
            int,
            ask(
                ground,
                "SELECT (SELECT COUNT(*) FROM oms_order WHERE status = 0), SUM(lock_stock) "
                "FROM pms_sku_stock",
            ),
        )
        done = self.orders - unpaid
        return Verdict(done, abs(locked - unpaid) + abs(done - outcome.done))


def _pay(session: Session, n: int) -> int:
    with session.cursor() as cursor:
        _once(cursor.execute(PAY, (n,)))
        cursor.execute(DETAIL, (n,))
        sku_id = (cursor.fetchone() or ())[-1]
        _once(cursor.execute(REDUCE, (1, 1, sku_id, 1, 1)))
    session.commit()
    return 1


def _cancel(session: Session, n: int) -> int:
    with session.cursor() as cursor:
        _once(cursor.execute(UNPAID, (n,)))
        cursor.execute(CLOSE, (n,))
        cursor.execute(LINES, (n,))
        sku_id = (cursor.fetchone() or ())[-1]
        _once(cursor.execute(FREE, (1, sku_id, 1)))
    session.commit()
    return 1


def _once(rows: int) -> None:
    if rows != 1:
        raise WentWrong(f"{rows} rows were changed or found, not one")
