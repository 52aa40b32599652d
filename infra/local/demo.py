"""`make demo`: bring the whole system up on this machine, and say where it is."""

import sys

from infra import migrate
from infra.local import parameters, stack
from infra.local.paths import LOCAL
from infra.local.steps import SetupError


def main() -> None:
    try:
        up = stack.up(LOCAL, parameters.from_make())
    except (SetupError, migrate.MigrationRefused) as error:
        sys.exit(str(error))
    print(f"\nLockstep is up: {up['api_url']}")
    print(f"""
  make -s token member=42      a token for a member
  curl -H "Authorization: Bearer $(make -s token member=42)" {up["api_url"]}/stock/1001
  make down                    stop it; the data stays
""")


if __name__ == "__main__":
    main()
