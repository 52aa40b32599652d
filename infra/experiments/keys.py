"""What a primary key costs: so many rows in batches, with a unique number and an index beside."""

import random
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from infra.measuring.ground import Ground
from infra.measuring.table import Table, Way

BATCH: Final = 1000
MEMBERS: Final = 100_000
# The engine's own count, not what it remembers of an earlier one.
FRESH: Final = "SET SESSION information_schema_stats_expiry = 0"
SIZE: Final = """
SELECT data_length / 1048576, index_length / 1048576
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'keyed'
"""


@dataclass(frozen=True)
class Key:
    """``draw`` words a value in SQL."""

    name: str
    column: str
    draw: Callable[[], str]
    published: Sequence[float] = ()


# As published for 200,000 rows: milliseconds, MB of data, MB of secondary indexes, both.
KEYS: Final = (
    Key("BIGINT", "BIGINT AUTO_INCREMENT", lambda: "NULL", (1403, 11.5, 15.0, 26.5)),
    Key(
        "BINARY(16), UUID in order of time",
        "BINARY(16)",
        lambda: f"UUID_TO_BIN('{uuid.uuid1()}', 1)",
        (1725, 13.5, 18.1, 31.6),
    ),
    Key("BINARY(16), random UUID", "BINARY(16)", lambda: f"UUID_TO_BIN('{uuid.uuid4()}')"),
    Key(
        "CHAR(36), random UUID",
        "CHAR(36)",
        lambda: f"'{uuid.uuid4()}'",
        (2060, 28.6, 30.2, 58.8),
    ),
)


def measure(ground: Ground, rows: int, runs: int) -> Table:
    seconds: dict[str, list[float]] = {key.name: [] for key in KEYS}
    sizes: dict[str, tuple[float, float]] = {}
    for _ in range(runs):
        for key in KEYS:
            seconds[key.name].append(_insert(ground, key, rows))
            sizes[key.name] = _size(ground)
    took = {name: round(statistics.median(times) * 1000) for name, times in seconds.items()}
    ways = [
        Way(key.name, (took[key.name], *_rounded(*sizes[key.name])), key.published) for key in KEYS
    ]
    first, *_, last = ways
    return Table(
        f"What a primary key costs: {rows:,} rows in batches of {BATCH:,}, "
        f"median of {runs} (published: 200,000 rows, median of 3)",
        ("ms", "data MB", "index MB", "MB"),
        ways,
        f"Random CHAR(36) took {last.here[0] / first.here[0]:.2f} times as long as BIGINT and "
        f"{last.here[3] / first.here[3]:.2f} times its space (published: 1.47 and 2.22).",
    )


def _insert(ground: Ground, key: Key, rows: int) -> float:
    """Seconds, without the time that it takes to draw the rows."""
    ground.execute(
        "DROP TABLE IF EXISTS keyed",
        f"CREATE TABLE keyed (id {key.column} PRIMARY KEY, order_no CHAR(24) NOT NULL, "
        "user_id BIGINT NOT NULL, amount DECIMAL(18, 2) NOT NULL, "
        "UNIQUE KEY uk_order_no (order_no), KEY ix_user (user_id))",
    )
    members = random.Random(0)  # noqa: S311 - members, not secrets
    took = 0.0
    with ground.session() as session, session.cursor() as cursor:
        for first in range(0, rows, BATCH):
            batch = ", ".join(
                f"({key.draw()}, '{n:024d}', {members.randrange(MEMBERS)}, 9.90)"
                for n in range(first, min(first + BATCH, rows))
            )
            began = time.perf_counter()
            cursor.execute(f"INSERT INTO keyed VALUES {batch}")  # noqa: S608 - drawn here
            took += time.perf_counter() - began
    return took


def _size(ground: Ground) -> tuple[float, float]:
    with ground.session() as session, session.cursor() as cursor:
        cursor.execute("ANALYZE TABLE keyed")
        cursor.fetchall()
        cursor.execute(FRESH)
        cursor.execute(SIZE)
        [data, index] = cursor.fetchone() or (0, 0)
    return float(data), float(index)


def _rounded(data: float, index: float) -> Sequence[float]:
    return round(data, 1), round(index, 1), round(data + index, 1)
