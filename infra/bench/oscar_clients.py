"""Run by django-oscar's interpreter: `prepare` makes its tables and stock records, `run` lets a
crowd allocate from them and prints what came of it as JSON."""

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final

import django
import pymysql
from django.conf import settings

from infra.bench.crowd import Client, Crowd, Seat

# They refer to each other, so all of them are there; two are used.
OF_OSCAR: Final = (
    "analytics checkout address shipping catalogue catalogue.reviews communication partner basket "
    "payment offer order customer search voucher wishlists dashboard dashboard.reports "
    "dashboard.users dashboard.orders dashboard.catalogue dashboard.offers dashboard.partners "
    "dashboard.pages dashboard.ranges dashboard.reviews dashboard.vouchers "
    "dashboard.communications dashboard.shipping"
)
APPS: Final = (
    *("django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"),
    *("django.contrib.sites", "django.contrib.flatpages", "django.contrib.messages"),
    *("oscar.config.Shop", "haystack", "treebeard", "django_tables2", "widget_tweaks"),
)


# The last two are looked into after each allocation.
TABLES: Final = (
    *("catalogue.ProductClass", "catalogue.Product", "partner.Partner", "partner.StockRecord"),
    *("partner.StockAlert", "customer.ProductAlert"),
)

_one_at_a_time = threading.Lock()


def set_up() -> None:
    """Django on the driver that everybody else here uses, so that the wait is the same."""
    with _one_at_a_time:
        if not settings.configured:
            _configure()


def _configure() -> None:
    pymysql.install_as_MySQLdb()
    from oscar import defaults  # noqa: PLC0415 - it reads Django's settings lazily

    settings.configure(
        **{name: getattr(defaults, name) for name in dir(defaults) if name.startswith("OSCAR")},
        INSTALLED_APPS=[*APPS, *map(_app_of_oscar, OF_OSCAR.split())],
        DATABASES={"default": _database()},
        SITE_ID=1,
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        HAYSTACK_CONNECTIONS={
            "default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}
        },
        LOGGING_CONFIG=None,
    )
    django.setup()


def _app_of_oscar(name: str) -> str:
    """The configuration of an app, as the documentation lists them."""
    module = f"oscar.apps.{name}.apps"
    *_, own = [
        key
        for key, value in vars(importlib.import_module(module)).items()
        # Of a lazy object isinstance would ask too much.
        if type(value) is type and value.__module__ == module
    ]
    return f"{module}.{own}"


def _database() -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.mysql",
        "HOST": os.environ["DATABASE_HOST"],
        "PORT": int(os.environ["DATABASE_PORT"]),
        "NAME": os.environ["DATABASE_NAME"],
        "USER": os.environ["DATABASE_USER"],
        "PASSWORD": os.environ["DATABASE_PASSWORD"],
        "OPTIONS": {"ssl_disabled": True, "charset": "utf8mb4"},
    }


def prepare(skus: int, stock: int) -> None:
    from django.db import connection  # noqa: PLC0415 - settings first
    from oscar.core.loading import get_model  # noqa: PLC0415

    tables = [get_model(*name.split(".")) for name in TABLES]
    # They refer to others, which nothing here is in.
    with connection.constraint_checks_disabled(), connection.schema_editor() as editor:
        for model in tables:
            editor.create_model(model)
    kinds, products, partners, records, *_ = tables
    kind = kinds.objects.create(name="a kind", slug="kind", track_stock=True)
    partner = partners.objects.create(name="a partner", code="partner")
    made = [
        products(id=i, title="a thing", slug=f"thing-{i}", product_class=kind)
        for i in range(1, skus + 1)
    ]
    products.objects.bulk_create(made)
    records.objects.bulk_create(
        records(id=p.id, product=p, partner=partner, partner_sku=f"S{p.id}", num_in_stock=stock)
        for p in made
    )


@dataclass(frozen=True)
class Allocating:
    skus: int

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        set_up()
        from django.db import connection, transaction  # noqa: PLC0415
        from oscar.apps.partner.availability import StockRequired  # noqa: PLC0415
        from oscar.core.loading import get_model  # noqa: PLC0415

        records = get_model("partner", "StockRecord")
        numbers = count(seat.number + 1, seat.clients)

        def allocate() -> int | None:
            with transaction.atomic():
                related = records.objects.select_related("product__product_class")
                record = related.get(pk=1 + next(numbers) % self.skus)
                allowed, _ = StockRequired(record.net_stock_level).is_purchase_permitted(1)
                if not allowed:
                    return None
                record.allocate(1)
            return 1

        connection.ensure_connection()
        try:
            yield Client(allocate)
        finally:
            connection.close()


def main(verb: str, told: dict[str, Any]) -> None:
    if verb == "prepare":
        set_up()
        prepare(told["skus"], told["stock"])
        outcome: dict[str, Any] = {}
    else:
        with Crowd() as crowd:
            acting = Allocating(told["skus"])
            outcome = asdict(crowd.run(acting, told["clients"], told["wait_ms"], told["seconds"]))
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
