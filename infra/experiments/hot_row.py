"""One row that everybody updates, against a thousand; and what that does to orders."""

from functools import partial
from typing import Final

from infra.experiments import orders
from infra.experiments.threads import a_second
from infra.measuring.ground import Ground, Session
from infra.measuring.table import Table, Way

ROWS: Final = 1000
HOT_SKU, COLD_SKU, MARKED_SKU = 930_001, 940_001, 950_001
PLENTY: Final = 10**6
PLAIN: Final = (
    "DROP TABLE IF EXISTS plain_counter",
    "CREATE TABLE plain_counter (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
)
FILL: Final = "INSERT INTO plain_counter VALUES (%s, 0)"
ADD: Final = "UPDATE plain_counter SET n = n + 1 WHERE id = %s"


def measure(ground: Ground, threads: int, seconds: float) -> Table:
    ground.execute(*PLAIN)
    ground.fill(FILL, [(number,) for number in range(ROWS)])
    orders.add_skus(ground, HOT_SKU, 1, PLENTY)
    orders.add_skus(ground, COLD_SKU, ROWS, PLENTY)
    orders.add_skus(ground, MARKED_SKU, 1, PLENTY, hot=True)
    one, many = (a_second(ground, threads, seconds, partial(_add, rows=rows)) for rows in (1, ROWS))
    on_one, on_many, in_line = (
        a_second(ground, threads, seconds, partial(_buy, first=first, skus=skus))
        for first, skus in ((HOT_SKU, 1), (COLD_SKU, ROWS), (MARKED_SKU, 1))
    )
    return Table(
        f"One row or a thousand: {threads} sessions of one process, {seconds:g} s each",
        ("a second",),
        (
            Way("updates of one row", (one,), (2200,)),
            Way(f"updates of {ROWS:,} rows", (many,), (16420,)),
            Way("ours: orders for one SKU", (on_one,)),
            Way(f"ours: orders for {ROWS:,} SKUs", (on_many,)),
            Way("ours: orders for one SKU marked hot, taken in line", (in_line,)),
        ),
        f"A thousand rows took {many / max(one, 1):.1f} times as many updates as one (published: "
        f"7.5); orders for one SKU came {on_many / max(on_one, 1):.1f} times as fast once it was "
        f"a thousand, and {in_line / max(on_one, 1):.1f} times as fast once it was marked hot.",
    )


def _add(session: Session, n: int, *, rows: int) -> None:
    with session.cursor() as cursor:
        cursor.execute(ADD, (n % rows,))


def _buy(_: Session, n: int, *, first: int, skus: int) -> None:
    orders.buy(first + n % skus, n, f"hot-{first}")
