"""Who may import whom: functions -> api, upkeep -> payments -> orders -> inventory -> messaging,
db -> the small modules. Handlers never see a transaction, and only whoever talks to Alipay needs
cryptography."""

import pytest

from tests.support import sources
from tests.support.sources import Source

SMALL = {
    "settings",
    "money",
    "beijing",
    "order_no",
    "fingerprint",
    "errors",
    "secret",
    "observability",
}

# From the top down; each may import itself, the small modules and what is named.
ARROWS: dict[str, set[str]] = {
    "functions": {
        "infra",
        "api",
        "upkeep",
        "payments",
        "orders",
        "inventory",
        "messaging",
        "alipay",
    },
    "api": {"payments", "orders", "inventory"},
    "upkeep": {"payments", "orders", "inventory", "messaging", "db", "alipay"},
    "payments": {"orders", "inventory", "messaging", "db", "alipay"},
    "orders": {"inventory", "messaging", "db"},
    "inventory": {"messaging", "db"},
    "messaging": {"db"},
    "db": set(),
    "infra": {"db"},
    "alipay": set(),
    "small": set(),
}
# Parts of a package that fewer may import than the package as a whole.
NARROWER = {
    "infra": {"functions/migrate.py"},
    "lockstep.alipay.notice": {"functions"},
    "lockstep.alipay.form": {"functions", "payments", "alipay"},
    # What it loads is loaded late by whoever may not need it: tests/contract/test_imports.py.
    "lockstep.alipay.keys": {"functions/alipay_notify.py", "alipay"},
    "cryptography": {"alipay/keys.py"},
    "boto3": {"secret.py", "messaging/sqs.py"},
    "pymysql": {"db/connection.py", "db/errors.py"},
    "aws_lambda_powertools": {"functions", "api", "messaging/consumer.py", "observability.py"},
}


def target(module: str) -> str | None:
    """The package that an import leads to; None outside of this repository."""
    first, _, rest = module.partition(".")
    if first != "lockstep":
        return first if first in {"functions", "infra", "tests"} else None
    part = rest.partition(".")[0]
    return "small" if part in SMALL or not part else part


def wrong_imports(source: Source) -> list[str]:
    allowed = ARROWS[source.package] | {source.package, "small", None}
    return [
        module
        for module in source.imports()
        if target(module) not in allowed or _too_far(source, module)
    ]


def _too_far(source: Source, module: str) -> bool:
    return any(
        f"{module}.".startswith(f"{part}.") and not {source.package, source.name} & importers
        for part, importers in NARROWER.items()
    )


@pytest.mark.parametrize("source", sources.all_of_them(), ids=lambda source: source.name)
def test_imports_go_along_the_arrows(source):
    assert wrong_imports(source) == []


def test_every_package_has_its_place():
    assert {source.package for source in sources.layer()} <= ARROWS.keys()
    small = {source.path.stem for source in sources.layer() if source.package == "small"}
    assert small - {"__init__"} == SMALL


def test_there_is_no_way_round():
    """Following the arrows never leads back."""

    def below(package: str, path: tuple[str, ...] = ()) -> None:
        assert package not in path, (*path, package)
        for lower in ARROWS[package]:
            below(lower, (*path, package))

    for package in ARROWS:
        below(package)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inventory/reserve.py", "from lockstep.orders import store"),
        ("inventory/reserve.py", "import lockstep.orders.store"),
        ("money.py", "from lockstep.db import connection"),
        ("db/errors.py", "from lockstep.messaging.outbox import stage"),
        ("orders/pay.py", "def pay():\n    from lockstep.payments import store"),
        ("functions/create_order.py", "from lockstep.db.transaction import in_transaction"),
        ("payments/accept.py", "from lockstep.alipay.notice import verify_and_parse"),
        ("payments/accept.py", "from lockstep.alipay import notice"),
        ("payments/accept.py", "from cryptography.hazmat import primitives"),
        ("orders/place.py", "import boto3"),
        ("orders/store.py", "import pymysql"),
        ("orders/model.py", "from lockstep import api"),
        ("api/app.py", "from functions import create_order"),
        ("functions/create_order.py", "from infra.local.paths import ROOT"),
    ],
)
def test_an_import_against_the_arrows_is_found(name, text):
    assert wrong_imports(sources.of(text, name))
