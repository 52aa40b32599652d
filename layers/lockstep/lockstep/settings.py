"""What the environment decides, read once per process and named when it is missing."""

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from lockstep.errors import SettingMissing

# A payment page is open for half an hour, as in most shops; a template parameter overrides it.
ORDER_TTL_SECONDS_DEFAULT: Final = 1800
# An expired order is closed first; its hold outlives it a little so that a payment which arrives in
# the last second still finds its stock.
HOLD_GRACE_SECONDS_DEFAULT: Final = 600
# A queued order waits for its turn at a hot SKU no longer than this.
RESERVING_LIMIT_SECONDS_DEFAULT: Final = 300


def _required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SettingMissing(name)
    return value


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where the database is. ``secret_arn`` wins over ``user`` and ``password``."""

    host: str
    port: int
    name: str
    user: str | None
    password: str | None
    secret_arn: str | None
    lock_wait_seconds: int | None
    """None where a proxy stands between: the variable would pin the connection."""
    tls: bool
    """False leaves the password and everything else readable on the way: on one machine only."""
    tls_ca: str | None
    """A file of certificates to trust instead of the system's."""
    timeout_seconds: int
    """For a connection to open, or a statement to answer: longer than any lock wait."""


@cache
def database() -> DatabaseSettings:
    lock_wait = int(os.environ.get("DATABASE_LOCK_WAIT_SECONDS", "3"))
    return DatabaseSettings(
        host=_required("DATABASE_HOST"),
        port=int(os.environ.get("DATABASE_PORT", "3306")),
        name=_required("DATABASE_NAME"),
        user=os.environ.get("DATABASE_USER"),
        password=os.environ.get("DATABASE_PASSWORD"),
        secret_arn=os.environ.get("DATABASE_SECRET_ARN"),
        lock_wait_seconds=lock_wait or None,
        # Anything but a clear no is a yes.
        tls=os.environ.get("DATABASE_TLS") != "off",
        tls_ca=os.environ.get("DATABASE_TLS_CA") or None,
        timeout_seconds=int(os.environ.get("DATABASE_TIMEOUT_SECONDS", "8")),
    )


@dataclass(frozen=True, slots=True)
class AlipaySettings:
    """Our side of the channel: the app, the payees it may pay to, the key its notices are signed
    with."""

    app_id: str
    seller_ids: frozenset[str]
    public_key: str


@cache
def alipay() -> AlipaySettings:
    return AlipaySettings(
        app_id=_required("ALIPAY_APP_ID"),
        seller_ids=frozenset(
            filter(None, map(str.strip, _required("ALIPAY_SELLER_IDS").split(",")))
        ),
        public_key=_required("ALIPAY_PUBLIC_KEY"),
    )


@cache
def order_ttl_seconds() -> int:
    return int(os.environ.get("ORDER_TTL_SECONDS", ORDER_TTL_SECONDS_DEFAULT))


@cache
def hold_grace_seconds() -> int:
    return int(os.environ.get("HOLD_GRACE_SECONDS", HOLD_GRACE_SECONDS_DEFAULT))


@cache
def reserving_limit_seconds() -> int:
    return int(os.environ.get("RESERVING_LIMIT_SECONDS", RESERVING_LIMIT_SECONDS_DEFAULT))


class LatePaymentPolicy(StrEnum):
    """What becomes of money that comes after its order expired."""

    REFUND = "REFUND"
    REINSTATE = "REINSTATE"


@cache
def late_payment_policy() -> LatePaymentPolicy:
    """Raises ValueError for a word that is neither."""
    return LatePaymentPolicy(os.environ.get("LATE_PAYMENT_POLICY", LatePaymentPolicy.REFUND))


@cache
def member_id_claim() -> str:
    return os.environ.get("MEMBER_ID_CLAIM", "sub")


def queue_url(queue: str) -> str | None:
    """The queue's address, or None where this process does not send to it (the relay will)."""
    return os.environ.get(f"{queue.upper()}_QUEUE_URL")
