"""The proof's command.

make proof                                      every section, bounded: under ten minutes
make proof sections=crash,model                 only these
make proof seeds=20 minutes=60                  the long form: seed after seed, as long as that
make proof replay=<section>/<part>/<case>       one case again
"""

import argparse
import itertools
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Final

from tests.proof import report, run
from tests.proof.report import Proved
from tests.proof.section import Extent, Form, Section, UnknownCase
from tests.proof.sections import BY_NAME

HELD: Final = 0
BROKEN: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130


def main(words: Sequence[str]) -> int:
    wanted = _read(words)
    try:
        with run.server_in_use():
            if wanted.replay:
                return _replay(wanted)
            names = wanted.sections or list(BY_NAME)
            return _prove([BY_NAME[name] for name in names], wanted)
    except KeyboardInterrupt:
        _say("Interrupted.")
        return INTERRUPTED


def _replay(wanted: argparse.Namespace) -> int:
    name, part, case = (*wanted.replay.split("/", 2), "", "")[:3]
    try:
        run.replay(name, part, case, _extent(wanted))
    except UnknownCase as unknown:
        sys.stderr.write(f"{unknown}\n")
        return MISUSED
    except Exception:
        _say(traceback.format_exc())
        return BROKEN
    _say("It holds.")
    return HELD


def _prove(sections: Sequence[Section], wanted: argparse.Namespace) -> int:
    began = time.monotonic()
    until = began + wanted.minutes * 60 if wanted.minutes is not None else None
    is_long = _extent(wanted).form is Form.LONG
    found: list[Proved] = []
    parts = 0
    for nth in itertools.count():
        parts += sum(len(section.parts(_extent(wanted, nth))) for section in sections)
        for one in run.prove(sections, _extent(wanted, nth), until):
            found.append(one)
            for fault in one.tally.faults:
                _say(report.told(one, fault))
        is_over = until is not None and time.monotonic() > until
        if not is_long or is_over or nth + 1 == wanted.seeds:
            break
    _say(report.table(sections, found))
    missed = parts - len(found)
    broken = sum(len(one.tally.faults) for one in found)
    held = "What was tried held" if missed else "Everything held"
    _say(
        f"{f'{broken} did not hold' if broken else held}: {nth + 1} seed(s) from "
        f"{wanted.seed} in {time.monotonic() - began:.0f} s"
        f"{f'; for {missed} of {parts} parts there was no time' if missed else ''}."
    )
    return BROKEN if broken else HELD


def _extent(wanted: argparse.Namespace, nth: int = 0) -> Extent:
    is_long = wanted.seeds is not None or wanted.minutes is not None
    return Extent(Form.LONG if is_long else Form.BOUNDED, wanted.seed + nth)


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make proof", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sections", type=_names)
    parser.add_argument("--replay", default="")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=_at_least_one, help="how many")
    parser.add_argument("--minutes", type=_some_time)
    return parser.parse_args(words)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in BY_NAME]:
        raise argparse.ArgumentTypeError(
            f"no section {', '.join(unknown)}: there are {', '.join(BY_NAME)}"
        )
    return names


def _some_time(text: str) -> float:
    if (minutes := float(text)) <= 0:
        raise argparse.ArgumentTypeError("more than none")
    return minutes


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least one")
    return number


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
