"""Settings: read from the environment, and named when they are missing."""

import json

import boto3
import pytest
from moto import mock_aws

from lockstep import settings
from lockstep.errors import SettingMissing

COMPLETE = {
    "DATABASE_HOST": "db.example",
    "DATABASE_NAME": "shop",
    "ALIPAY_APP_ID": "2021000100000001",
    "ALIPAY_SELLER_IDS": "2088000000000001,2088000000000002",
    "ALIPAY_PUBLIC_KEY": "key",
    "ALIPAY_GATEWAY_URL": "https://gateway.example/gateway.do",
    "ALIPAY_PRIVATE_KEY": "own key",
}
OPTIONAL = (
    "DATABASE_PORT",
    "DATABASE_USER",
    "DATABASE_PASSWORD",
    "DATABASE_SECRET_ARN",
    "DATABASE_LOCK_WAIT_SECONDS",
    "ALIPAY_SECRET_ARN",
    "ALIPAY_APP_CERT_SN",
    "ALIPAY_ROOT_CERT_SN",
    "ALIPAY_NOTIFY_URL",
    "ALIPAY_RETURN_URL",
    "ORDER_TTL_SECONDS",
    "HOLD_GRACE_SECONDS",
    "RESERVING_LIMIT_SECONDS",
    "MEMBER_ID_CLAIM",
    "RELEASE_QUEUE_URL",
)
CACHED = (
    settings.database,
    settings.alipay,
    settings.alipay_app,
    settings.alipay_notify_url,
    settings.alipay_return_url,
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
        ("ALIPAY_APP_ID", settings.alipay_app),
        ("ALIPAY_PUBLIC_KEY", settings.alipay_app),
        ("ALIPAY_GATEWAY_URL", settings.alipay_app),
        ("ALIPAY_PRIVATE_KEY", settings.alipay_app),
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


@pytest.mark.parametrize(
    ("text", "keys"),
    [("one", ("one",)), ("one,two", ("one", "two")), (" one ,\ntwo,", ("one", "two"))],
)
def test_alipays_key_may_be_two_while_it_is_changed(monkeypatch, text, keys):
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", text)
    assert settings.alipay().public_keys == settings.alipay_app().public_keys == keys


@pytest.mark.parametrize("name", ["ALIPAY_PUBLIC_KEY", "ALIPAY_SELLER_IDS"])
def test_commas_alone_are_no_list(monkeypatch, name):
    monkeypatch.setenv(name, " , ")
    with pytest.raises(SettingMissing, match=name):
        settings.alipay()


def test_the_app_is_read_from_the_environment_on_one_machine(monkeypatch):
    app = settings.alipay_app()
    assert (app.private_key, app.app_cert_sn, app.alipay_root_cert_sn) == ("own key", None, None)
    assert "own key" not in repr(app)
    settings.alipay_app.cache_clear()
    monkeypatch.setenv("ALIPAY_APP_CERT_SN", "a")
    monkeypatch.setenv("ALIPAY_ROOT_CERT_SN", "b")
    app = settings.alipay_app()
    assert (app.app_cert_sn, app.alipay_root_cert_sn) == ("a", "b")


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("ALIPAY_APP_CERT_SN", "alipay_root_cert_sn"),
        ("ALIPAY_ROOT_CERT_SN", "app_cert_sn"),
    ],
)
def test_one_serial_number_is_half_a_certificate_mode(monkeypatch, given, missing):
    monkeypatch.setenv(given, "a")
    with pytest.raises(SettingMissing, match=f"^{missing} is"):
        settings.alipay_app()


@pytest.fixture
def secrets_manager(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield boto3.client("secretsmanager")


def named(monkeypatch, secrets_manager, content):
    arn = secrets_manager.create_secret(Name="alipay", SecretString=content)["ARN"]
    monkeypatch.setenv("ALIPAY_SECRET_ARN", arn)


def test_the_app_is_read_from_its_secret_which_wins_over_the_environment(
    monkeypatch, secrets_manager
):
    kept = {"private_key": "kept", "app_cert_sn": "a", "alipay_root_cert_sn": "b"}
    named(monkeypatch, secrets_manager, json.dumps(kept))
    app = settings.alipay_app()
    assert (app.private_key, app.app_cert_sn, app.alipay_root_cert_sn) == ("kept", "a", "b")
    assert settings.alipay_app() is app


def test_a_secret_without_the_key_does_not_fall_back_to_the_environment(
    monkeypatch, secrets_manager
):
    named(monkeypatch, secrets_manager, "{}")
    with pytest.raises(SettingMissing, match="private_key"):
        settings.alipay_app()


@pytest.mark.parametrize("content", ["no JSON", "[]"])
def test_a_secret_that_is_no_object_is_refused(monkeypatch, secrets_manager, content):
    named(monkeypatch, secrets_manager, content)
    with pytest.raises(ValueError):  # noqa: PT011 - whichever JSON says
        settings.alipay_app()


def test_addresses_that_are_not_given_are_none(monkeypatch):
    assert (settings.alipay_notify_url(), settings.alipay_return_url()) == (None, None)
    settings.alipay_notify_url.cache_clear()
    settings.alipay_return_url.cache_clear()
    monkeypatch.setenv("ALIPAY_NOTIFY_URL", "https://shop.example/alipay/notify")
    monkeypatch.setenv("ALIPAY_RETURN_URL", "https://shop.example/paid")
    assert settings.alipay_notify_url() == "https://shop.example/alipay/notify"
    assert settings.alipay_return_url() == "https://shop.example/paid"


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
