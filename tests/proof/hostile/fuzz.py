"""Goal: no bytes make a reader of what comes from outside do anything but read or refuse.

Method: atheris, a fuzzer that keeps what reaches code not reached before, in a process of its own
with a number of runs and a seed, so that it ends and can be run again; from a corpus that the
targets make. The fixed share, and machines for which atheris has no wheel, change the same corpus
blindly, in this process. An input that a reader fails at is the case's name, in base64.
"""

import base64
import importlib.util
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Final
from unittest.mock import patch

from infra.local.paths import ROOT
from lockstep.observability import metrics
from tests.proof.hostile import targets
from tests.proof.hostile.targets import TARGETS, Target
from tests.proof.section import Extent, Form, Tally, naming
from tests.support.database import Database

PARTS: Final = tuple(f"fuzz-{name}" for name in TARGETS)
RUNS: Final = {Form.FIXED: 400, Form.BOUNDED: 15_000, Form.LONG: 150_000}
# A run takes a tenth of a millisecond to one: what takes as long is a hang.
RUN_SECONDS_MAX: Final = 5
# Of all runs together; the bounded form's take less.
SECONDS_MAX: Final = 90
# The process itself takes 90.
MEGABYTES_MAX: Final = 512
INPUT_BYTES_MAX: Final = 2_000
HAS_ATHERIS: Final = importlib.util.find_spec("atheris") is not None

_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*([0-9]+)")


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    tally.possible = None
    name = part.removeprefix("fuzz-")
    if extent.form is Form.FIXED or not HAS_ATHERIS:
        for changed in _blindly(TARGETS[name], extent):
            tally.attempt(named(changed), partial(_try, name, changed))
        return
    executed, found, told = fuzz(name, RUNS[extent.form], extent.seed)
    if found is not None:
        tally.attempt(named(found), partial(_fail, name, found, told))
    tally.tried = executed


def replay(database: Database, part: str, case: str) -> None:
    with naming(case):
        sent = base64.urlsafe_b64decode(case)
    _try(part.removeprefix("fuzz-"), sent)


def named(sent: bytes) -> str:
    return base64.urlsafe_b64encode(sent).decode()


def fuzz(
    name: str, runs: int, seed: int, module: ModuleType = targets
) -> tuple[int, bytes | None, str]:
    """(how many inputs were tried, the one that failed, what was said of it)."""
    with TemporaryDirectory() as folder:
        corpus, kept = Path(folder, "corpus"), Path(folder, "kept")
        corpus.mkdir()
        kept.mkdir()
        for n, sent in enumerate(module.TARGETS[name].seeds):
            (corpus / str(n)).write_bytes(sent)
        flags = {
            "runs": runs,
            # To libFuzzer 0 is a seed from the clock.
            "seed": seed + 1,
            "max_len": INPUT_BYTES_MAX,
            "timeout": RUN_SECONDS_MAX,
            "max_total_time": SECONDS_MAX,
            "rss_limit_mb": MEGABYTES_MAX,
            "artifact_prefix": f"{kept}/",
            "print_final_stats": 1,
        }
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "tests.proof.hostile.fuzzer"),
                *(module.__name__, name, str(kept)),
                *(f"-{flag}={value}" for flag, value in flags.items()),
                str(corpus),
            ],
            cwd=ROOT,
            env=os.environ
            | {"PYTHONPATH": f"{ROOT / 'layers' / 'lockstep'}:{ROOT}", "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return _read(kept, ended)


def _read(kept: Path, ended: "subprocess.CompletedProcess[str]") -> tuple[int, bytes | None, str]:
    told = ended.stderr[-4_000:]
    if (kept / "input").exists():
        executed = int((kept / "executed").read_text())
        return executed, (kept / "input").read_bytes(), (kept / "why").read_text()
    found = next((path.read_bytes() for path in kept.iterdir()), None)  # a hang, or too much memory
    counted = _EXECUTED.search(ended.stderr)
    assert counted, told
    assert (found is not None) == bool(ended.returncode), told
    return int(counted[1]), found, told


def _try(name: str, sent: bytes) -> None:
    with patch.object(metrics, "add_metric"):
        TARGETS[name].trial(sent)


def _fail(name: str, sent: bytes, told: str) -> None:
    """What the input does here; and where it does nothing here, it took too long or too much."""
    _try(name, sent)
    raise AssertionError(told)


def _blindly(target: Target, extent: Extent) -> Iterator[bytes]:
    chance = random.Random(extent.seed)
    yield from target.seeds
    for _ in range(RUNS[extent.form]):
        sent = bytearray(chance.choice(target.seeds))
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(sent) + 1)
            end = start + chance.choice((0, 0, 1, 1, 2, 8))
            sent[start:end] = chance.choice(
                (
                    b"",
                    chance.randbytes(1),
                    chance.randbytes(2),
                    sent[:start][-9:],
                    b"\x00",
                    b"9" * 30,
                )
            )
        yield bytes(sent)
