"""The fuzzer's own process: `python -m tests.proof.hostile_fuzzer <target> <libFuzzer's flags>`.

Coverage is that of the product and of what it reads a bill with; so it is loaded here, after the
instrumentation is in place. An uncaught exception ends the process, its input kept in a file.
"""

import logging
import sys
from unittest.mock import patch

import atheris

with atheris.instrument_imports(include=["lockstep", "zipfile"]):
    from tests.proof.hostile_targets import TARGETS

from lockstep.observability import logger, metrics


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    # Millions of refusals: nobody reads their log, and counts of them would only pile up.
    logger.setLevel(logging.CRITICAL)
    with patch.object(metrics, "add_metric"):
        atheris.Setup(sys.argv, target.trial)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
