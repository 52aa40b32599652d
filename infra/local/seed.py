"""The local database: an account that may use it alone, and a few SKUs to order."""

from decimal import Decimal

from pymysql.connections import Connection

PRICE = Decimal("9.90")

# sku_id, title, stock, hot
SKUS = [
    (1001, "Notebook", 1000, False),
    (1002, "Fountain pen", 1000, False),
    (1003, "Ink bottle", 1000, False),
    (1004, "Pencil case", 1000, False),
    (1005, "Desk lamp", 1000, False),
    (1006, "Reading stand", 20, False),
    (1007, "Last globe", 1, False),
    (2001, "Flash-sale keyboard", 1000, True),
]

# Names cannot be parameters of a statement; both come from `stack.py` and are plain words.
CREATE_DATABASE = "CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4"
CREATE_ACCOUNT = "CREATE USER IF NOT EXISTS `{name}`@'%%' IDENTIFIED BY %s"
ALTER_ACCOUNT = "ALTER USER `{name}`@'%%' IDENTIFIED BY %s"
GRANT = "GRANT ALL ON `{name}`.* TO `{name}`@'%'"

INSERT_SKU = """
    INSERT IGNORE INTO ims_sku_stock (sku_id, title, price, stock, lock_stock, hot, on_sale)
    VALUES (%s, %s, %s, %s, 0, %s, TRUE)
"""

INSERT_INITIAL = """
    INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
    VALUES (%s, 'INITIAL', %s, %s, 'system:seed', 'seeded by make up')
"""


def create_database(connection: Connection, name: str, password: str) -> None:
    """The database and an account of the same name with rights on nothing else."""
    with connection.cursor() as cursor:
        cursor.execute(CREATE_DATABASE.format(name=name))
        cursor.execute(CREATE_ACCOUNT.format(name=name), (password,))
        cursor.execute(ALTER_ACCOUNT.format(name=name), (password,))
        cursor.execute(GRANT.format(name=name))


def seed_skus(connection: Connection) -> None:
    """A SKU that is there already keeps its stock: it may have been sold from."""
    with connection.cursor() as cursor:
        for sku_id, title, stock, hot in SKUS:
            if cursor.execute(INSERT_SKU, (sku_id, title, PRICE, stock, hot)) == 1:
                cursor.execute(INSERT_INITIAL, (sku_id, stock, f"seed:{sku_id}"))
    connection.commit()
