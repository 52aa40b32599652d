"""Run the benchmarks, show what they measured, and keep it in .local/bench.json.

make bench [only=hot,confirm,place,release,notice,beside,thousand,scarce,cold]
           [repeats=5] [seconds=1.5]

Ends with 1 where ours oversold, leaked, or broke the order of arrival, and where a peer that
should not lose a piece lost one: then it was not measured as it is.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from infra.bench import oscar, our_notice, ratios, sections, shown, way
from infra.bench.cold import cold_import_ratio
from infra.bench.crowd import Crowd
from infra.local.paths import BENCH_HOME, LOCAL
from infra.local.steps import SetupError
from infra.measuring.ground import a_ground
from infra.measuring.options import above_zero, names_of, positive
from infra.measuring.table import say

SCHEMA: Final = "lockstep_bench"
WRITTEN: Final = LOCAL / "bench.json"
PART: Final = LOCAL / "bench-part.json"
COLD: Final = "cold"
EVERYTHING: Final = (*sections.SECTIONS, COLD)
OF_OSCAR: Final = {"beside", "thousand", "scarce"}


def main(words: Sequence[str]) -> None:
    sizes = _read(words)
    try:
        document, wrong = _measure(sizes)
    except SetupError as error:
        sys.exit(str(error))
    is_complete = set(sizes.only) == set(EVERYTHING)
    file = WRITTEN if is_complete else PART
    # What "bench-growth" and "bench-life" keep there stays.
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    text = json.dumps(kept | document, ensure_ascii=False, indent=1)
    file.write_text(text + "\n", encoding="utf-8")
    say("", *shown.ratio_lines(document["ratios"]), "", f"Written to {file.name}.")
    if wrong:
        sys.exit("\n".join(["", "This must not be:", *wrong]))


def _measure(sizes: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    if OF_OSCAR & set(sizes.only):
        oscar.ensure()
    cold = cold_import_ratio() if COLD in sizes.only else None
    with a_ground(BENCH_HOME, SCHEMA) as ground:
        machine = ground.says()
        say("", *machine, "")
        way.make_peers(ground)
        our_notice.let_notices_come()
        with Crowd() as crowd:
            bench = sections.Bench(ground, crowd, sizes.repeats, sizes.seconds, say)
            for name in sizes.only:
                if name != COLD:
                    sections.SECTIONS[name](bench)
    for table in shown.tables(bench.rows):
        say("", *table.lines())
    found = ratios.of_rows(bench.rows)
    values = {name: round(ratio.value, 3) for name, ratio in found.items()}
    if cold is not None:
        values["cold_import"] = round(cold, 3)
    document = {
        "machine": "; ".join(machine),
        # Whoever looks for a figure finds the one with the most runs first.
        "rows": [
            row.document()
            for row in sorted(bench.rows, key=lambda row: len(row.runs), reverse=True)
        ],
        "ratios": values,
        "pairs": {
            name: {"between": ratio.between, "ratios": [round(pair, 2) for pair in ratio.pairs]}
            for name, ratio in found.items()
        },
    }
    return document, [text for row in bench.rows for text in row.wrong]


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", type=names_of(EVERYTHING, "part"), default=list(EVERYTHING))
    parser.add_argument("--repeats", type=positive, default=5, help="of what is held to")
    parser.add_argument(
        "--seconds", type=above_zero(float), default=1.5, help="of each run, at most"
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    main(sys.argv[1:])
