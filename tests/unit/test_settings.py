"""Settings: read from the environment, and named when they are missing."""

import pytest

from lockstep import settings
from lockstep.errors import SettingMissing

COMPLETE = {
    "DATABASE_HOST": "db.example",
    "DATABASE_NAME": "shop",
    "ALIPAY_APP_ID": "2021000100000001",
    "ALIPAY_SELLER_IDS": "2088000000000001,2088000000000002",
    "ALIPAY_PUBLIC_KEY": "key",
}
OPTIONAL = (
    "DATABASE_PORT",
    "DATABASE_USER",
    "DATABASE_PASSWORD",
    "DATABASE_SECRET_ARN",
    "DATABASE_LOCK_WAIT_SECONDS",
    "ORDER_TTL_SECONDS",
    "HOLD_GRACE_SECONDS",
    "RESERVING_LIMIT_SECONDS",
    "MEMBER_ID_CLAIM",
    "RELEASE_QUEUE_URL",
)
CACHED = (
    settings.database,
    settings.alipay,
    settings.order_ttl_seconds,
    settings.hold_grace_seconds,
    settings.reserving_limit_seconds,
    settings.member_id_claim,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Only what is required is set, and nothing is remembered from another test."""
    for name in OPTIONAL:
        monkeypatch.delenv(name, raising=False)
    for name, value in COMPLETE.items():
        monkeypatch.setenv(name, value)
    for setting in CACHED:
        setting.cache_clear()
    yield
    for setting in CACHED:
        setting.cache_clear()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("DATABASE_HOST", settings.database),
        ("DATABASE_NAME", settings.database),
        ("ALIPAY_APP_ID", settings.alipay),
        ("ALIPAY_SELLER_IDS", settings.alipay),
        ("ALIPAY_PUBLIC_KEY", settings.alipay),
    ],
)
@pytest.mark.parametrize("empty", [False, True])
def test_a_missing_or_empty_setting_is_named(monkeypatch, name, read, empty):
    if empty:
        monkeypatch.setenv(name, "")
    else:
        monkeypatch.delenv(name)
    with pytest.raises(SettingMissing, match=name):
        read()


def test_without_optional_settings_the_defaults_hold():
    database = settings.database()
    assert (database.host, database.port, database.name) == ("db.example", 3306, "shop")
    assert (database.user, database.password, database.secret_arn) == (None, None, None)
    assert database.lock_wait_seconds == 3
    assert (database.tls, database.tls_ca) == (True, None)
    assert settings.order_ttl_seconds() == 1800
    assert settings.member_id_claim() == "sub"
    assert settings.queue_url("release") is None


def test_zero_leaves_the_lock_wait_to_the_proxy(monkeypatch):
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "0")
    assert settings.database().lock_wait_seconds is None


@pytest.mark.parametrize(("setting", "tls"), [("off", False), ("verified", True), ("OFF", True)])
def test_tls_is_left_out_only_where_it_is_switched_off_by_name(monkeypatch, setting, tls):
    monkeypatch.setenv("DATABASE_TLS", setting)
    assert settings.database().tls is tls


def test_every_optional_setting_is_taken(monkeypatch):
    for name, value in {
        "DATABASE_PORT": "3307",
        "DATABASE_SECRET_ARN": "arn:aws:secretsmanager:eu-west-1:1:secret:db",
        "DATABASE_LOCK_WAIT_SECONDS": "1",
        "DATABASE_TLS_CA": "/opt/certificates/rds.pem",
        "ORDER_TTL_SECONDS": "60",
        "MEMBER_ID_CLAIM": "member",
        "RELEASE_QUEUE_URL": "https://queue.example/release.fifo",
    }.items():
        monkeypatch.setenv(name, value)
    database = settings.database()
    assert (database.port, database.lock_wait_seconds) == (3307, 1)
    assert database.secret_arn == "arn:aws:secretsmanager:eu-west-1:1:secret:db"
    assert database.tls_ca == "/opt/certificates/rds.pem"
    assert settings.order_ttl_seconds() == 60
    assert settings.member_id_claim() == "member"
    assert settings.queue_url("release") == "https://queue.example/release.fifo"


def test_several_payees_are_separated_by_commas():
    assert settings.alipay().seller_ids == {"2088000000000001", "2088000000000002"}


def test_settings_are_read_once_per_process(monkeypatch):
    first = settings.database()
    monkeypatch.setenv("DATABASE_HOST", "elsewhere.example")
    assert settings.database() is first


@pytest.mark.parametrize("text", ["2088000000000001,", " 2088000000000001 ", ",2088000000000001,,"])
def test_a_stray_comma_or_blank_is_no_payee(monkeypatch, text):
    monkeypatch.setenv("ALIPAY_SELLER_IDS", text)
    assert settings.alipay().seller_ids == {"2088000000000001"}


def test_times_are_those_of_the_design_unless_they_are_set(monkeypatch):
    assert settings.hold_grace_seconds() == 600
    assert settings.reserving_limit_seconds() == 300
    settings.hold_grace_seconds.cache_clear()
    settings.reserving_limit_seconds.cache_clear()
    monkeypatch.setenv("HOLD_GRACE_SECONDS", "60")
    monkeypatch.setenv("RESERVING_LIMIT_SECONDS", "90")
    assert (settings.hold_grace_seconds(), settings.reserving_limit_seconds()) == (60, 90)
