"""The tables of the articles this backend began from, as they give them; where an article names a
table only (the order, its items, the outbox), the columns that its transaction writes."""

from typing import Final

from infra.bench.way import PLENTY, make_tables
from infra.measuring.ground import Ground

SKU_STOCK: Final = """
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    product_id BIGINT NULL,
    sku_code VARCHAR(64) NOT NULL,
    price DECIMAL(10,2) NULL,
    stock INT DEFAULT 0,
    low_stock INT NULL,
    pic VARCHAR(255) NULL,
    sale INT NULL,
    promotion_price DECIMAL(10,2) NULL,
    lock_stock INT DEFAULT 0,
    sp_data VARCHAR(500) NULL"""

RESERVATION: Final = {
    "ims_reservation": """
        reservation_id VARCHAR(64) PRIMARY KEY,
        order_id BIGINT NOT NULL,
        request_hash CHAR(64),
        state VARCHAR(16) NOT NULL,
        expires_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
        updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
        UNIQUE KEY uk_reservation_order (order_id)""",
    "ims_reservation_item": """
        reservation_id VARCHAR(64) NOT NULL,
        sku_id BIGINT NOT NULL,
        quantity INT NOT NULL,
        PRIMARY KEY (reservation_id, sku_id)""",
}
STOCK: Final = {"pms_sku_stock": SKU_STOCK, **RESERVATION}

ORDER: Final = {
    "oms_order_request": """
        member_id BIGINT NOT NULL,
        idempotency_key VARCHAR(64) NOT NULL,
        request_hash CHAR(64) NOT NULL,
        order_id BIGINT,
        state VARCHAR(16) NOT NULL,
        PRIMARY KEY (member_id, idempotency_key)""",
    "oms_order": """
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        member_id BIGINT NOT NULL,
        order_sn VARCHAR(64) NOT NULL,
        total_amount DECIMAL(18,2) NOT NULL,
        pay_amount DECIMAL(18,2) NOT NULL,
        status INT NOT NULL,
        delete_status INT NOT NULL DEFAULT 0,
        payment_time DATETIME NULL,
        create_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
        UNIQUE KEY uk_order_sn (order_sn),
        KEY ix_member (member_id)""",
    "oms_order_item": """
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        order_id BIGINT NOT NULL,
        product_sku_id BIGINT NOT NULL,
        product_name VARCHAR(200) NOT NULL,
        product_price DECIMAL(18,2) NOT NULL,
        product_quantity INT NOT NULL,
        KEY ix_order (order_id)""",
    "outbox": """
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        group_key VARCHAR(64) NOT NULL,
        payload JSON NOT NULL,
        sent_at DATETIME(3) NULL,
        created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
        KEY ix_unsent (sent_at, id)""",
}
PAYMENT: Final = {
    "oms_order_payment": """
        provider VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        trade_no VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        order_id BIGINT NOT NULL,
        amount DECIMAL(18,2) NOT NULL,
        state VARCHAR(32) NOT NULL,
        create_time DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (provider, trade_no),
        KEY idx_order_id (order_id)"""
}


def make_stock(ground: Ground, skus: int, stock: int = PLENTY) -> None:
    """So many SKUs, numbered from 1, and no reservation."""
    make_tables(
        ground,
        STOCK,
        "INSERT INTO pms_sku_stock (id, sku_code, price, stock) "
        f"SELECT i, CONCAT('S', i), 9.90, {stock:d} FROM bench_number WHERE i <= {skus:d}",
    )


def make_held(ground: Ground, orders: int, skus: int) -> None:
    """Orders 1 to ``orders``, each with a hold of one piece, dealt over the SKUs."""
    make_stock(ground, skus)
    numbers = f"FROM bench_number WHERE i <= {orders:d}"
    make_tables(
        ground,
        {},
        "INSERT INTO ims_reservation (reservation_id, order_id, request_hash, state, expires_at) "
        f"SELECT CONCAT('r', i), i, SHA2(i, 256), 'RESERVED', NOW(3) + INTERVAL 1 DAY {numbers}",
        "INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity) "
        f"SELECT CONCAT('r', i), 1 + i % {skus:d}, 1 {numbers}",
        "UPDATE pms_sku_stock AS s JOIN (SELECT sku_id, SUM(quantity) AS held "
        "FROM ims_reservation_item GROUP BY sku_id) AS h ON h.sku_id = s.id "
        "SET s.lock_stock = h.held",
    )


def make_orders(ground: Ground, orders: int) -> None:
    """Unpaid orders 1 to ``orders`` of 9.90 each, and no payment."""
    make_tables(
        ground,
        ORDER | PAYMENT,
        "INSERT INTO oms_order (id, member_id, order_sn, total_amount, pay_amount, status) "
        f"SELECT i, i, CONCAT('O', i), 9.90, 9.90, 0 FROM bench_number "
        f"WHERE i <= {orders:d}",
    )
