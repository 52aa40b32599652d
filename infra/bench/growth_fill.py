"""Fill a schema with a long past as fast as the server can, and leave it as if it had grown.

A table is loaded in the order of its primary key and without its other keys, which are then built
sorted, all of a table in one pass; it has to end with the very definition that it began with. While
that lasts nothing is written to the binlog, and the redo log is flushed once a second. Afterwards
every change is on the disk and the statistics are new: a run must not pay for the filling.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from infra import migrate
from infra.bench import growth_rows
from infra.bench.growth_rows import HOT_SKU, SKUS, STOCK, Rows
from infra.bench.way import WentWrong
from infra.local import mysql
from infra.measuring.ground import Ground, Session

CHUNK: Final = 50_000
# One a core: InnoDB fills two tables side by side without waiting.
THREADS: Final = 2
WHILE_FILLING: Final = {"innodb_flush_log_at_trx_commit": 0, "innodb_max_dirty_pages_pct": 90}
SESSION: Final = (
    "SET SESSION sql_log_bin = 0",
    "SET SESSION foreign_key_checks = 0",
    f"SET SESSION cte_max_recursion_depth = {CHUNK}",
    "SET SESSION innodb_ddl_threads = 2",
    "SET SESSION innodb_parallel_read_threads = 2",
    f"SET SESSION innodb_ddl_buffer_size = {256 << 20}",
)
KEYS: Final = ("KEY", "UNIQUE KEY", "CONSTRAINT")
SIZE: Final = """
SELECT SUM(file_size)
FROM information_schema.innodb_tablespaces
WHERE name LIKE CONCAT(DATABASE(), '/%')
"""
DIRTY: Final = """
SELECT variable_value
FROM performance_schema.global_status
WHERE variable_name = 'Innodb_buffer_pool_pages_dirty'
"""
SETTLE_SECONDS: Final = 300


def make(ground: Ground, orders: int, say: Callable[[str], None] = lambda _: None) -> float:
    """The schema anew, with a past of ``orders``; how many seconds that took."""
    began = time.monotonic()
    with mysql.connect(ground.server) as session, session.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {ground.schema}")
        cursor.execute(f"CREATE DATABASE {ground.schema}")
        session.select_db(ground.schema)
        migrate.load(session, migrate.SCHEMA.read_text(encoding="utf-8"))
    # A table's own statements come one after the other.
    tables = [
        list(rows) for _, rows in groupby(growth_rows.of_an_order(), key=lambda rows: rows.table)
    ]
    with set_globally(ground, WHILE_FILLING):
        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(_fill, ground, rows, orders, say) for rows in tables]:
                done.result()
        _stock(ground)
        _write_all(ground)
    return time.monotonic() - began


def is_made(ground: Ground, orders: int, like: Ground) -> bool:
    """Whether the schema has been made with so long a past, and with the tables of ``like``."""
    with mysql.connect(ground.server) as session, session.cursor() as cursor:
        if not cursor.execute("SHOW DATABASES LIKE %s", (ground.schema,)):
            return False
    if definitions(ground) != definitions(like):
        return False
    stocked = ground.row("SELECT COUNT(*) FROM ims_sku_stock")
    [longest] = ground.row("SELECT MAX(id) FROM oms_order")
    return bool(stocked == (HOT_SKU,) and longest == orders)


def definitions(ground: Ground) -> dict[str, str]:
    """Every table as the server says it, but for the next number."""
    with ground.session() as session, session.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        tables = [str(table) for (table,) in cursor.fetchall()]
        return {
            table: re.sub(r" AUTO_INCREMENT=\d+", "", _definition(session, table))
            for table in tables
        }


def size_mb(ground: Ground) -> int:
    """What the schema takes on the disk."""
    [size] = ground.row(SIZE)
    return int(size) >> 20


@contextmanager
def set_globally(ground: Ground, values: Mapping[str, int]) -> Iterator[None]:
    """As long as this lasts; the server may be somebody's own."""
    before = {name: ground.row(f"SELECT @@GLOBAL.{name}")[0] for name in values}
    try:
        ground.execute(*(f"SET GLOBAL {name} = {value}" for name, value in values.items()))
        yield
    finally:
        ground.execute(*(f"SET GLOBAL {name} = {value}" for name, value in before.items()))


def _fill(ground: Ground, rows: Sequence[Rows], orders: int, say: Callable[[str], None]) -> None:
    """One table, in chunks, each statement a transaction."""
    table, began = rows[0].table, time.monotonic()
    with ground.session() as session, session.cursor() as cursor:
        for statement in SESSION:
            cursor.execute(statement)
        before = _definition(session, table)
        keys = _keys(before)
        cursor.execute(f"ALTER TABLE {table} {', '.join(_dropped(key) for key in keys)}")
        for first in range(1, orders + 1, CHUNK):
            chunk = growth_rows.past(first, min(first + CHUNK - 1, orders), orders)
            for each in rows:
                cursor.execute(each.insert(chunk))
        cursor.execute(f"ALTER TABLE {table} {', '.join(f'ADD {key}' for key in keys)}")
        cursor.execute(f"ANALYZE TABLE {table}")
        if _keys(_definition(session, table)) != keys:
            raise WentWrong(f"{table} has other keys than before")
    say(f"    {table}: {time.monotonic() - began:.0f} s")


def _definition(session: Session, table: str) -> str:
    with session.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE {table}")
        row = cursor.fetchone()
    return str(row[1]) if row else ""


def _keys(definition: str) -> list[str]:
    """All but the primary key; of the constraints, those that need one."""
    lines = [line.strip().rstrip(",") for line in definition.splitlines()]
    return [
        line
        for line in lines
        if line.startswith(KEYS) and (not line.startswith("CONSTRAINT") or "FOREIGN KEY" in line)
    ]


def _dropped(key: str) -> str:
    kind = "FOREIGN KEY" if key.startswith("CONSTRAINT") else "KEY"
    return f"DROP {kind} `{key.split('`')[1]}`"


def _stock(ground: Ground) -> None:
    """So much is on hand of every SKU; what was sold came in, too."""
    ground.execute(
        f"SET SESSION cte_max_recursion_depth = {HOT_SKU}",
        "INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot) "
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {SKUS}) "
        f"SELECT i, CONCAT('of a benchmark, number ', i), 9.90, {STOCK}, i = {HOT_SKU} FROM n",
        "INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason) "
        "SELECT s.sku_id, 'INITIAL', s.stock + COALESCE(sold.pieces, 0), "
        "       CONCAT('bench:', s.sku_id), 'bench', 'bench' "
        "FROM ims_sku_stock AS s "
        "LEFT JOIN (SELECT i.sku_id, SUM(i.quantity) AS pieces "
        "           FROM oms_order AS o JOIN oms_order_item AS i ON i.order_id = o.id "
        "           WHERE o.status = 'PAID' GROUP BY i.sku_id) AS sold USING (sku_id)",
        f"INSERT INTO ims_hot_turn (sku_id) VALUES ({HOT_SKU})",
        "ANALYZE TABLE ims_sku_stock",
    )


def _write_all(ground: Ground) -> None:
    """Wait until the pages that were filled are on the disk."""
    with set_globally(ground, {"innodb_max_dirty_pages_pct": 0}):
        until = time.monotonic() + SETTLE_SECONDS
        while int(ground.row(DIRTY)[0]) > 1000 and time.monotonic() < until:
            time.sleep(0.5)
