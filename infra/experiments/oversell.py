"""More buyers than stock: each takes one piece of one SKU until it is told that none is left."""

from collections.abc import Callable, Sequence
from typing import Final

from pymysql.cursors import Cursor

from infra.experiments import orders
from infra.experiments.threads import crowd
from infra.measuring.ground import Ground, Session
from infra.measuring.table import Table, Way

SKU: Final = 920_001
# To each piece: whoever writes what he read sells on and on, since others put back what was sold.
BUYERS: Final = 10
PLAIN: Final = (
    "DROP TABLE IF EXISTS plain_stock",
    "CREATE TABLE plain_stock (sku_id BIGINT PRIMARY KEY, qty INT NOT NULL)",
)
LOOK: Final = "SELECT qty FROM plain_stock WHERE sku_id = 1"
TAKE: Final = "UPDATE plain_stock SET qty = qty - 1 WHERE sku_id = 1"
WRITE: Final = "UPDATE plain_stock SET qty = %s WHERE sku_id = 1"
OF_OURS: Final = f"SELECT stock, lock_stock FROM ims_sku_stock WHERE sku_id = {SKU}"  # noqa: S608


def measure(ground: Ground, stock: int, threads: int) -> Table:
    overwritten = _on_plain(ground, stock, threads, _write_what_is_left)
    looking = _on_plain(ground, stock, threads, _look_then_take)
    guarded = _on_plain(ground, stock, threads, _take_if_there)
    ours = _on_ours(ground, stock, threads)
    return Table(
        f"More buyers than stock: {stock:,} pieces of one SKU for {stock * BUYERS:,} buyers, "
        f"{threads} sessions",
        ("sold", "sold too many", "left"),
        (
            Way("read, then write what is left", overwritten),
            Way("look, then take one", looking),
            Way("take one where one is there", guarded),
            Way("ours: orders placed", ours),
        ),
        f"Reading and writing sold {overwritten[1]:,} too many of {stock:,}, looking first "
        f"{looking[1]:,}; with the stock in the update's condition {guarded[1]}, and of ours "
        f"{ours[1]}.",
    )


def _on_plain(
    ground: Ground, stock: int, threads: int, take: Callable[[Session], bool]
) -> Sequence[int]:
    ground.execute(*PLAIN)
    ground.fill("INSERT INTO plain_stock VALUES (1, %s)", [(stock,)])
    buyers = stock * BUYERS
    sold = crowd(ground, threads, lambda session, n: n <= buyers and take(session))
    return sold, sold - stock, ground.row(LOOK)[0]


def _write_what_is_left(session: Session) -> bool:
    with session.cursor() as cursor:
        left = _look(cursor)
        return left > 0 and bool(cursor.execute(WRITE, (left - 1,)) or True)


def _look_then_take(session: Session) -> bool:
    with session.cursor() as cursor:
        return _look(cursor) > 0 and cursor.execute(TAKE) == 1


def _take_if_there(session: Session) -> bool:
    with session.cursor() as cursor:
        return cursor.execute(f"{TAKE} AND qty >= 1") == 1


def _look(cursor: Cursor) -> int:
    cursor.execute(LOOK)
    [[left]] = cursor.fetchall()
    return int(left)


def _on_ours(ground: Ground, stock: int, threads: int) -> Sequence[int]:
    orders.add_skus(ground, SKU, 1, stock)
    sold = crowd(ground, threads, lambda _, n: orders.buy(SKU, n, "oversell") is not None)
    on_hand, locked = ground.row(OF_OURS)
    return sold, sold - stock, on_hand - locked
