"""Run the experiments and show what they measured; it is written to .local/experiments.json too.

make experiments [only=twice,oversell,keys,hot_row]
                 [rounds=1000] [stock=200] [rows=200000] [runs=3] [threads=64] [seconds=5]
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from infra.experiments import hot_row, keys, oversell, twice
from infra.local.paths import EXPERIMENTS_HOME, LOCAL
from infra.local.steps import SetupError
from infra.measuring.ground import Ground, a_ground
from infra.measuring.options import names_of
from infra.measuring.table import Table, say

SCHEMA: Final = "lockstep_experiments"
SOURCE: Final = "published: the article 订单、库存与数据一致性 (MySQL 8.4.11, JDK 21)"
WRITTEN: Final = LOCAL / "experiments.json"
# More would hide in waiting what two sessions already show.
BUYERS: Final = 16

type Sizes = argparse.Namespace

EXPERIMENTS: Final[Mapping[str, Callable[[Ground, Sizes], Table]]] = {
    "twice": lambda ground, sizes: twice.measure(ground, sizes.rounds),
    "oversell": lambda ground, sizes: oversell.measure(ground, sizes.stock, BUYERS),
    "keys": lambda ground, sizes: keys.measure(ground, sizes.rows, sizes.runs),
    "hot_row": lambda ground, sizes: hot_row.measure(ground, sizes.threads, sizes.seconds),
}


def main(words: Sequence[str]) -> None:
    sizes = _read(words)
    try:
        with a_ground(EXPERIMENTS_HOME, SCHEMA) as ground:
            says = [*ground.says(), SOURCE]
            say("", *says)
            tables = {}
            for name in sizes.only:
                tables[name] = EXPERIMENTS[name](ground, sizes)
                say("", *tables[name].lines())
    except SetupError as error:
        sys.exit(str(error))
    documents = {name: table.document() for name, table in tables.items()}
    written = {"ground": says, "experiments": documents}
    WRITTEN.write_text(json.dumps(written, ensure_ascii=False, indent=1), encoding="utf-8")


def _read(words: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="make experiments", description=__doc__)
    parser.add_argument(
        "--only", type=names_of(EXPERIMENTS, "experiment"), default=list(EXPERIMENTS)
    )
    parser.add_argument("--rounds", type=int, default=1000, help="orders paid and closed at once")
    parser.add_argument("--stock", type=int, default=200, help="pieces to sell")
    parser.add_argument("--rows", type=int, default=200_000, help="of each primary key")
    parser.add_argument("--runs", type=int, default=3, help="of each primary key")
    parser.add_argument("--threads", type=int, default=64, help="at one row, or at a thousand")
    parser.add_argument("--seconds", type=float, default=5, help="at one row, or at a thousand")
    return parser.parse_args(words)


if __name__ == "__main__":
    main(sys.argv[1:])
