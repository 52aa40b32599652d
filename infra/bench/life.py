"""The whole life of orders, and a flash sale, through a stack of the benchmarks' own.

python -m infra.bench.life [--orders 5000] [--units 1000] [--clients 6] [--lives 400]

The stack is deployed from the template beside whatever else is up, on a durable MySQL, and ended.
Ends with 1 where the sale did not come out exactly, somebody waited too long, an invariant broke,
or the functions and we had more than 16 connections during the sale.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from infra.bench import flash_sale, life_stages
from infra.bench.flash_sale import Sale
from infra.bench.growth import keep
from infra.bench.life_stages import Stage
from infra.local import mysql, stack
from infra.local.paths import BENCH_STACK_HOME, LOCAL
from infra.local.shop import Shop
from infra.measuring.options import positive

CONNECTIONS_MOST: Final = 16
WRITTEN: Final = LOCAL / "bench.json"


@dataclass(frozen=True)
class Life:
    """``connections`` are the most that were open at a time during the sale, ours among them."""

    sale: Sale
    stages: Sequence[Stage]
    clients: int
    connections: int

    @property
    def wrong(self) -> list[str]:
        found = [f"flash sale: {text}" for text in self.sale.wrong]
        if self.connections > CONNECTIONS_MOST:
            found.append(f"{self.connections} connections were open at a time")
        return found

    def rows(self) -> list[dict[str, Any]]:
        """A row a stage, as the other benchmarks have them."""
        return [stage.document(self.clients) for stage in self.stages]

    def document(self) -> dict[str, Any]:
        return {
            "machine": f"{os.cpu_count()} cores; stack, queues and clients share them",
            "connections": self.connections,
            "flash_sale": self.sale.document(),
            "stages": self.rows(),
            "wrong": self.wrong,
        }

    def lines(self) -> list[str]:
        """For a terminal, and GitHub's markup as well."""
        sale = self.sale
        return [
            f"A flash sale through the deployed stack: {sale.orders:,} orders for {sale.units:,} "
            f"units, {sale.clients} at a time",
            "",
            f"{sale.held:,} have a hold; {sale.refused_at_once:,} were refused at the gate and "
            f"{sale.refused_in_line:,} in line.",
            f"The burst took {sale.burst:.1f} s ({sale.per_second:.0f} orders a second), the last "
            f"decision came {sale.until_last - sale.burst:.1f} s after it; the longest wait was "
            f"{sale.longest_wait:.1f} s, the longest answer {sale.longest_answer:.1f} s.",
            f"{sale.decisions:,} times orders were decided; {sale.asked_again:,} asks were "
            f"repeated; at most {self.connections} connections.",
            "",
            "| the whole life | a second | median, ms | p99, ms | orders |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(
                f"| {row['path']} | {row['per_second']:,.0f} | {row['p50_ms']:,.0f} "
                f"| {row['p99_ms']:,.0f} | {row['done']:,} |"
                for row in self.rows()
            ),
        ]


def measure(orders: int = 5000, units: int = 1000, clients: int = 6, lives: int = 400) -> Life:
    """Deploy, sell, live, and end the stack."""
    with _a_shop(clients) as shop:
        # Environments start once, and a small machine starts them slowly.
        flash_sale.hold(shop, 4 * clients, clients, clients)
        _forget_connections()
        sale = flash_sale.hold(shop, orders, units, clients)
        connections = _most_connections()
        life_stages.live(shop, 2 * clients, clients)
        stages = life_stages.live(shop, lives, clients)
        return Life(sale, stages, clients, connections)


@contextmanager
def _a_shop(clients: int) -> Iterator[Shop]:
    bounds = {"HttpConcurrencyMax": str(clients), "WorkerConcurrencyMax": "2"}
    try:
        up = stack.up(BENCH_STACK_HOME, bounds)
        with Shop(up, home=BENCH_STACK_HOME) as shop:
            yield shop
    finally:
        stack.down(BENCH_STACK_HOME)


def _forget_connections() -> None:
    with mysql.connect(mysql.ensure(BENCH_STACK_HOME)) as session:
        session.cursor().execute("FLUSH STATUS")


def _most_connections() -> int:
    with mysql.connect(mysql.ensure(BENCH_STACK_HOME)) as session, session.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")
        row = cursor.fetchone()
    return int(row[1]) if row else 0


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="make bench-life", description=__doc__)
    parser.add_argument("--orders", type=positive, default=5000)
    parser.add_argument("--units", type=positive, default=1000)
    parser.add_argument("--clients", type=positive, default=6)
    parser.add_argument("--lives", type=positive, default=400)
    found = measure(**vars(parser.parse_args(words)))
    keep(WRITTEN, "life", found.document())
    sys.stdout.write("\n".join(["", *found.lines(), ""]))
    if found.wrong:
        sys.exit("\n".join(["", "This must not be:", *found.wrong]))


if __name__ == "__main__":
    main(sys.argv[1:])
