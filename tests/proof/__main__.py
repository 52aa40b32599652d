"""The proof's command.

make proof                                      every section, bounded: under ten minutes
make proof sections=crash,orders                only these
make proof seeds=20 minutes=60                  the long form: seed after seed, as long as that
make proof replay=<section>/<part>/<case>       one case again
"""

import argparse
import itertools
import sys
import time
from collections.abc import Sequence

from infra.local import mysql
from infra.local.paths import PROOF_HOME
from tests.proof import report, run
from tests.proof.report import Proved
from tests.proof.section import Extent, Form, Section
from tests.proof.sections import BY_NAME


def main(words: Sequence[str]) -> int:
    """0 where everything held."""
    wanted = _read(words)
    try:
        if wanted.replay:
            name, part, *case = wanted.replay.split("/", 2)
            run.replay(name, part, "".join(case))
            _say("It holds.")
            return 0
        names = wanted.sections or list(BY_NAME)
        return _prove([BY_NAME[name] for name in names], wanted)
    finally:
        mysql.stop(PROOF_HOME)


def _prove(sections: Sequence[Section], wanted: argparse.Namespace) -> int:
    began = time.monotonic()
    is_long = wanted.seeds is not None or wanted.minutes is not None
    until = began + wanted.minutes * 60 if wanted.minutes is not None else None
    found: list[Proved] = []
    for nth in itertools.count():
        extent = Extent(Form.LONG if is_long else Form.BOUNDED, wanted.seed + nth)
        for one in run.prove(sections, extent, until):
            found.append(one)
            for fault in one.tally.faults:
                _say(report.told(one, fault))
        is_over = until is not None and time.monotonic() > until
        if not is_long or is_over or nth + 1 == wanted.seeds:
            break
    _say(report.table(sections, found))
    broken = sum(len(one.tally.faults) for one in found)
    _say(
        f"{'Everything held' if not broken else f'{broken} did not hold'}: {nth + 1} seed(s) from "
        f"{wanted.seed} in {time.monotonic() - began:.0f} s."
    )
    return 1 if broken else 0


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make proof", description=__doc__)
    parser.add_argument("--sections", type=_names)
    parser.add_argument("--replay", default="")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, help="how many")
    parser.add_argument("--minutes", type=float)
    return parser.parse_args(words)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in BY_NAME]:
        raise argparse.ArgumentTypeError(f"no section {unknown}: there are {', '.join(BY_NAME)}")
    return names


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
