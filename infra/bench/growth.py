"""Whether a long past slows the paths down: `make bench-growth`.

make bench-growth [rows=5000000] [past=10000] [repeats=7] [seconds=2] [pool=2048]
                  [only=place,notice,…] [keep=yes]

Two schemas on one durable server, one with ``past`` orders in it and one with ``rows``, measured in
turns. ``pool`` is the buffer pool in MB; ``keep`` leaves the long past for the next run with it.
The figures go into .local/bench.json under "growth". Ends with 1 where a run did not do what it
says; a threshold that is missed is shown.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from infra.bench import growth_fill, our_notice
from infra.bench.crowd import Crowd
from infra.bench.growth_pairs import BOUND_LEAST, MEDIAN_LEAST, Comparison, Pairs
from infra.bench.growth_paths import PATHS
from infra.bench.growth_present import Side
from infra.bench.growth_rows import ORDERS_EACH
from infra.local.paths import BENCH_GROWTH_HOME, LOCAL
from infra.local.steps import SetupError
from infra.measuring.ground import Ground, a_ground
from infra.measuring.options import names_of, positive
from infra.measuring.table import say

SHORT: Final = "lockstep_growth_short"
LONG: Final = "lockstep_growth_long"
WRITTEN: Final = LOCAL / "bench.json"
REDO_MB: Final = 1024
# What an order takes with its keys, and while they are sorted.
BYTES_EACH: Final = 6000


def main(words: Sequence[str]) -> None:
    sizes = _read(words)
    try:
        document, wrong = _measure(sizes)
    except SetupError as error:
        sys.exit(str(error))
    keep(WRITTEN, "growth", document)
    say("", f'Written to {WRITTEN.name} under "growth".')
    if wrong:
        sys.exit("\n".join(["", "This must not be:", *wrong]))


def keep(file: Path, key: str, value: Any) -> None:
    """Set ``key`` in ``file`` and leave the others as they are."""
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    text = json.dumps(found | {key: value}, ensure_ascii=False, indent=1)
    file.write_text(text + "\n", encoding="utf-8")


def measured(
    short: Side, long: Side, only: Sequence[str], repeats: int, seconds: float
) -> tuple[list[Pairs], list[str]]:
    """The pairs of each path, and what did not hold."""
    found = []
    with Crowd() as crowd:
        comparison = Comparison(crowd, short, long, seconds)
        for path in only:
            say(f"  {path}: {repeats} pairs …")
            found.append(comparison.measure(path, repeats))
    return found, comparison.wrong


def table(pairs: Sequence[Pairs], past: int, rows: int) -> list[str]:
    """For a terminal, and GitHub's markup as well."""
    asked = f"asked: {MEDIAN_LEAST:g}, {BOUND_LEAST:g}"
    return [
        f"| a second | with {past:,} | with {rows:,} | median ratio | lower bound | {asked} |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *(
            f"| {one.path} | {one.rates[0]:,.0f} | {one.rates[1]:,.0f} | "
            f"{one.median:.2f} | {one.bound:.2f} | {'holds' if one.holds else 'MISSED'} |"
            for one in pairs
        ),
    ]


def _measure(sizes: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    with a_ground(BENCH_GROWTH_HOME, SHORT) as ground:
        asked = {
            "innodb_buffer_pool_size": sizes.pool << 20,
            "innodb_redo_log_capacity": REDO_MB << 20,
            # What was cleared away is counted at once, so that a run can wait for it.
            "innodb_purge_rseg_truncate_frequency": 1,
        }
        with growth_fill.set_globally(ground, asked):
            short, long = _sides(ground, sizes)
            our_notice.let_notices_come()
            pairs, wrong = measured(short, long, sizes.only, sizes.repeats, sizes.seconds)
            machine, size = ground.says(), growth_fill.size_mb(long.ground)
            if not sizes.keep:
                ground.execute(f"DROP DATABASE {LONG}")
    say("", *machine, f"The long past takes {size:,} MB on the disk.", "")
    say(*table(pairs, short.past, long.past))
    document = {
        "machine": machine,
        "past": short.past,
        "rows": long.past,
        "long_mb": size,
        "pool_mb": sizes.pool,
        "members": short.members,
        "seconds": sizes.seconds,
        "asked": {"median": MEDIAN_LEAST, "lower_bound": BOUND_LEAST},
        "paths": [one.document() for one in pairs],
    }
    return document, wrong


def _sides(ground: Ground, sizes: argparse.Namespace) -> tuple[Side, Side]:
    long = replace(ground, schema=LONG)
    members = sizes.past // ORDERS_EACH
    growth_fill.make(ground, sizes.past)
    if not growth_fill.is_made(long, sizes.rows, like=ground):
        _make_room(ground, sizes.rows)
        seconds = growth_fill.make(long, sizes.rows, say)
        say(f"  {sizes.rows:,} past orders were made in {seconds:.0f} s")
    return Side(ground, sizes.past, members), Side(long, sizes.rows, members)


def _make_room(ground: Ground, orders: int) -> None:
    """A disk that fills up would stop everything on this machine."""
    is_ours = ground.server.socket is not None
    BENCH_GROWTH_HOME.mkdir(parents=True, exist_ok=True)
    free, wanted = shutil.disk_usage(BENCH_GROWTH_HOME).free, orders * BYTES_EACH
    if is_ours and free < wanted:
        raise SetupError(
            f"{orders:,} past orders want {wanted >> 30} GB of disk, and {free >> 30} GB are free"
        )


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-growth", description=__doc__)
    parser.add_argument("--rows", type=_orders, default=5_000_000)
    parser.add_argument("--past", type=_orders, default=10_000)
    parser.add_argument("--repeats", type=positive, default=7)
    parser.add_argument("--seconds", type=positive, default=2)
    parser.add_argument("--pool", type=positive, default=2048, help="the buffer pool, in MB")
    parser.add_argument("--only", type=names_of(PATHS, "path"), default=list(PATHS))
    parser.add_argument("--keep", choices=["yes"])
    sizes = parser.parse_args(words)
    if sizes.rows < sizes.past:
        parser.error("the long past is the shorter one")
    return sizes


def _orders(text: str) -> int:
    value = positive(text)
    if value % ORDERS_EACH:
        raise argparse.ArgumentTypeError(
            f"{text} is no multiple of {ORDERS_EACH}, a member's orders"
        )
    return value


if __name__ == "__main__":
    main(sys.argv[1:])
