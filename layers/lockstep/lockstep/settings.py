"""What the environment decides, read once per process and named when it is missing."""

import os
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final

from lockstep import secret
from lockstep.errors import SettingMissing

# A payment page is open for half an hour, as in most shops; a template parameter overrides it.
ORDER_TTL_SECONDS_DEFAULT: Final = 1800
# An expired order is closed first; its hold outlives it a little so that a payment which arrives in
# the last second still finds its stock.
HOLD_GRACE_SECONDS_DEFAULT: Final = 600
# A queued order waits for its turn at a hot SKU no longer than this.
RESERVING_LIMIT_SECONDS_DEFAULT: Final = 300
# Whoever opens a payment page needs this long to pay; Alipay itself takes no less than a minute.
PAYMENT_MARGIN_SECONDS_DEFAULT: Final = 90


def _required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SettingMissing(name)
    return value


def _listed(name: str) -> tuple[str, ...]:
    """The values that commas separate, at least one."""
    values = tuple(filter(None, map(str.strip, _required(name).split(","))))
    if not values:
        raise SettingMissing(name)
    return values


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
    """What a notice is held to: the app, the payees it may pay to, the keys it may be signed with:
    one, or two while Alipay's key is changed."""

    app_id: str
    seller_ids: frozenset[str]
    public_keys: tuple[str, ...]


@cache
def alipay() -> AlipaySettings:
    return AlipaySettings(
        app_id=_required("ALIPAY_APP_ID"),
        seller_ids=frozenset(_listed("ALIPAY_SELLER_IDS")),
        public_keys=_listed("ALIPAY_PUBLIC_KEY"),
    )


@dataclass(frozen=True, slots=True)
class AlipayAppSettings:
    """What it takes to call the gateway. Both serial numbers, or neither: they are sent where the
    app is set up with certificates instead of bare keys."""

    app_id: str
    gateway_url: str
    public_keys: tuple[str, ...]
    private_key: str = field(repr=False)
    app_cert_sn: str | None
    alipay_root_cert_sn: str | None


@cache
def alipay_app() -> AlipayAppSettings:
    """From the secret where one is named; the environment's own values are for one machine."""
    arn = os.environ.get("ALIPAY_SECRET_ARN")
    kept = secret.read(arn) if arn else _named_like_the_secret()
    private_key = kept.get("private_key")
    if not private_key:
        raise SettingMissing("private_key in ALIPAY_SECRET_ARN" if arn else "ALIPAY_PRIVATE_KEY")
    app_cert_sn, root_cert_sn = kept.get("app_cert_sn"), kept.get("alipay_root_cert_sn")
    if bool(app_cert_sn) != bool(root_cert_sn):
        raise SettingMissing("app_cert_sn" if root_cert_sn else "alipay_root_cert_sn")
    return AlipayAppSettings(
        app_id=_required("ALIPAY_APP_ID"),
        gateway_url=_required("ALIPAY_GATEWAY_URL"),
        public_keys=_listed("ALIPAY_PUBLIC_KEY"),
        private_key=private_key,
        app_cert_sn=app_cert_sn or None,
        alipay_root_cert_sn=root_cert_sn or None,
    )


def _named_like_the_secret() -> dict[str, str | None]:
    return {
        name: os.environ.get(variable)
        for name, variable in {
            "private_key": "ALIPAY_PRIVATE_KEY",
            "app_cert_sn": "ALIPAY_APP_CERT_SN",
            "alipay_root_cert_sn": "ALIPAY_ROOT_CERT_SN",
        }.items()
    }


@cache
def alipay_notify_url() -> str | None:
    """Where Alipay is told to send its notices; None: below the address that was asked."""
    return os.environ.get("ALIPAY_NOTIFY_URL") or None


@cache
def alipay_return_url() -> str | None:
    """Where Alipay sends a buyer back to; None: it keeps them."""
    return os.environ.get("ALIPAY_RETURN_URL") or None


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
def payment_margin_seconds() -> int:
    """With less of its time left than this, an order gets no new payment page. Never more than half
    of its time, so that every order can be paid."""
    margin = int(os.environ.get("PAYMENT_MARGIN_SECONDS", PAYMENT_MARGIN_SECONDS_DEFAULT))
    return min(margin, order_ttl_seconds() // 2)


@cache
def member_id_claim() -> str:
    return os.environ.get("MEMBER_ID_CLAIM", "sub")


def queue_url(queue: str) -> str | None:
    """The queue's address, or None where this process does not send to it (the relay will)."""
    return os.environ.get(f"{queue.upper()}_QUEUE_URL")
