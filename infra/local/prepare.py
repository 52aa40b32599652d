"""Fetch and build what the tests need, so that their own time is only theirs: `make setup`."""

import argparse
import sys
import time

from infra.local import build, mysql
from infra.local.paths import LOCAL, TEST_HOME
from infra.local.processes import locked
from infra.local.steps import SetupError


def main() -> None:
    parser = argparse.ArgumentParser(description="Prepare for the tests.")
    parser.add_argument("--since", type=float, required=True, help="when set-up began, Unix time")
    began = parser.parse_args().since
    try:
        mysql.ensure(TEST_HOME, durable=False)
        with locked(LOCAL, "build"):
            build.ensure()
    except SetupError as error:
        sys.exit(str(error))
    print(f"Set-up took {max(0.0, time.time() - began):.0f} s; what follows is checks and tests.")


if __name__ == "__main__":
    main()
