"""The fuzzer's own process:

    python -m tests.proof.hostile.fuzzer <module with TARGETS> <target> <folder> <libFuzzer's flags>

Coverage is that of the product and of what it reads a bill with; so it is loaded here, after the
instrumentation is in place. An uncaught exception ends the process: its input, its traceback and
the number of inputs until then are kept in the folder.
"""

import importlib
import itertools
import logging
import os
import sys
import traceback
from pathlib import Path
from unittest.mock import patch

import atheris

MODULE, NAME, FOLDER = (sys.argv.pop(1) for _ in range(3))

with atheris.instrument_imports(include=["lockstep", "zipfile", MODULE]):
    target = importlib.import_module(MODULE).TARGETS[NAME]
    from lockstep.observability import logger, metrics

executed = itertools.count(1)


def trial(sent: bytes) -> None:
    number = next(executed)
    try:
        target.trial(sent)
    except BaseException:
        kept = {"input": sent, "why": traceback.format_exc().encode(), "executed": b"%d" % number}
        for name, content in kept.items():
            Path(FOLDER, name).write_bytes(content)
        os._exit(1)


if __name__ == "__main__":
    # Millions of refusals: nobody reads their log, and counts of them would only pile up.
    logger.setLevel(logging.CRITICAL)
    with patch.object(metrics, "add_metric"):
        atheris.Setup(sys.argv, trial)
        atheris.Fuzz()
