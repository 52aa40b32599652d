"""`make demo`: bring the whole system up on this machine, run the main job on it, tell what
happened.

Every request goes through the deployed template with a real token, every notice is really signed,
and every number is read from the tables. What ends otherwise than it should ends the demo.
"""

import sys
from typing import Any

from infra import migrate
from infra.local import invariants, parameters, stack, statements, stories
from infra.local.paths import LOCAL
from infra.local.shop import Shop
from infra.local.steps import SetupError


def main() -> None:
    try:
        up = stack.up(LOCAL, parameters.from_make())
    except (SetupError, migrate.MigrationRefused) as error:
        sys.exit(str(error))
    try:
        with Shop(up, home=LOCAL) as shop:
            _tell_all(shop, up["mysql"]["database"])
    except (stories.WentWrong, TimeoutError) as wrong:
        sys.exit(f"\nThis went wrong: {wrong}")
    _say_where(up)


def _tell_all(shop: Shop, schema: str) -> None:
    for number, story in enumerate(stories.ALL, start=1):
        print(f"\n{number}. {story.__doc__}")
        story(shop)
    print("\nWhat a transaction costs, in statements from BEGIN to COMMIT (some go together):")
    _tell_statements(shop, schema)
    print("\nThe whole database, once all is at rest:")
    _check_invariants(shop)


def _tell_statements(shop: Shop, schema: str) -> None:
    """Counted by the engine, on the deployed functions, whose connections are warm by now."""
    with statements.watched(LOCAL, schema) as watch:
        sku_id = shop.new_sku("Counted paper", "1.00", 10)
        stories.sold(shop, stories.MEI, sku_id)
        cancelled = stories.ordered(shop, stories.MEI, sku_id)
        shop.call("POST", f"/orders/{cancelled['order_no']}/cancel", stories.MEI)
        shop.wait_for_hold(cancelled["order_no"], "RELEASED")
    for name, how_many in watch.costs.items():
        print(f"   {name:<28} {how_many:>3}")


def _check_invariants(shop: Shop) -> None:
    broken = shop.broken_invariants()
    for invariant in invariants.INVARIANTS:
        rows = broken.get(invariant.name, [])
        print(f"   {'holds' if not rows else 'BROKEN'}   {invariant.name}")
        for row in rows[:5]:
            print(f"            {row}")
        if len(rows) > 5:
            print(f"            and {len(rows) - 5} more")
    if broken:
        raise stories.WentWrong(f"{len(broken)} invariants do not hold")


def _say_where(up: dict[str, Any]) -> None:
    print(f"""
Lockstep is up and stays up: {up["api_url"]}
   make -s token member=42      a token for a member
   curl -H "Authorization: Bearer $(make -s token member=42)" {up["api_url"]}/stock/1001
   open {up["alipay"]["cashier_url"]} in a browser: the local Alipay's cashier
   make down                    stop it; the data stays""")


if __name__ == "__main__":
    main()
