"""Fetch and build what the tests need, so that their own time is only theirs: `make setup`."""

import argparse
import sys
import time

from infra.local import browser, build, mysql
from infra.local.paths import LOCAL, TEST_HOME
from infra.local.processes import locked
from infra.local.steps import SetupError, note


def main() -> None:
    parser = argparse.ArgumentParser(description="Prepare for the tests.")
    parser.add_argument("--since", type=float, required=True, help="when set-up began, Unix time")
    began = parser.parse_args().since
    try:
        mysql.ensure(TEST_HOME, durable=False)
        with locked(LOCAL, "build"):
            build.ensure()
        found = browser.ensure()
    except SetupError as error:
        sys.exit(str(error))
    if isinstance(found, str):
        note(f"The cashier's page will not be tested in a browser: {found}")
    print(f"Set-up took {max(0.0, time.time() - began):.0f} s; what follows is checks and tests.")


if __name__ == "__main__":
    main()
