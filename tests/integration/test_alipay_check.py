"""`make alipay-check`: each way to set an Alipay app up wrongly, and what a person is told of it.

Method: a gateway that is right about everything, settings that are, and one thing changed.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from infra import alipay_check, alipay_findings
from infra.local import alipay_sign
from infra.local.alipay_gateway import process
from tests.support import alipay_console as console
from tests.support.gateway_server import (
    APP_ID,
    alipay_key,
    answering,
    app_key,
    running,
    sending,
    sent,
    strangers_key,
)

NOT_EXIST = {"code": "40004", "msg": "Business Failed", "sub_code": "ACQ.TRADE_NOT_EXIST"}


@pytest.fixture
def server():
    with running(answering(NOT_EXIST)) as server:
        yield server


@pytest.fixture
def settings(server, tmp_path):
    """Settings that are right, with bare keys."""
    (tmp_path / "app.pem").write_bytes(alipay_sign.private_key_pem(app_key()))
    return {
        "AlipayAppId": APP_ID,
        "AlipaySellerIds": "2088000000000001",
        "AlipayPublicKey": alipay_sign.public_key_base64(alipay_key()),
        "AlipayGatewayUrl": server.url,
        "AlipayNotifyUrl": "https://shop.example/alipay/notify",
        "PrivateKeyFile": "app.pem",
    }


@pytest.fixture
def certified(settings, tmp_path):
    """Settings that are right, with certificates."""
    authority = alipay_sign.new_key()
    for name, content in {
        "app.crt": console.pem(console.certificate(app_key(), authority, serial=1)),
        "alipay.crt": console.pem(console.certificate(alipay_key(), authority, serial=2)),
        "root.crt": console.pem(console.certificate(authority, authority, serial=3))
        + console.unparsable(),
    }.items():
        (tmp_path / name).write_text(content)
    del settings["AlipayPublicKey"]
    return settings | {
        "AppCertificateFile": "app.crt",
        "AlipayCertificateFile": "alipay.crt",
        "AlipayRootCertificateFile": "root.crt",
    }


@pytest.fixture
def check(tmp_path, capsys):
    def run(values):
        """Whether all is well, and what was found wrong."""
        file = tmp_path / "alipay.env"
        lines = [f"{name} = {value}" for name, value in values.items() if value is not None]
        file.write_text("\n".join(["# a comment", "", *lines]), encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            alipay_check.main([str(file)])
        told = capsys.readouterr().out.splitlines()
        assert "PRIVATE KEY" not in "".join(told)
        wrong = [line.removeprefix("WRONG  ") for line in told if line.startswith("WRONG")]
        assert ended.value.code == (1 if wrong else 0)
        return told, wrong

    return run


def test_where_all_is_right_each_line_says_so(settings, check, server):
    told, wrong = check(settings)
    assert wrong == []
    assert [line[:7] for line in told] == ["ok     "] * 9
    assert told[-1] == "ok     Alipay took our signature, and we took its: the app can be used."
    [asked] = server.asked
    assert asked.params["method"] == "alipay.trade.query"
    assert alipay_sign.is_request_signed(asked.params, app_key().public_key())
    assert asked.content["out_trade_no"].startswith("CHECK_")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"AlipayAppId": "2088000000000001"}, "is a payee"),
        ({"AlipayAppId": None}, "AlipayAppId is missing"),
        ({"AlipayAppId": "2021"}, "2021 is not one"),
        ({"AlipaySellerIds": None}, "none is given"),
        ({"AlipaySellerIds": "2088000000000001, 2021"}, "AlipaySellerIds: 2021"),
        ({"AlipayPublicKey": None}, "AlipayPublicKey is missing"),
        ({"AlipayPublicKey": "MIIB"}, "not a public key"),
        ({"AlipayPublicKey": alipay_sign.public_key_base64(app_key())}, "the app's own public key"),
        (
            {"AlipayPublicKey": ",".join([alipay_sign.public_key_base64(alipay_key())] * 3)},
            "more than two keys",
        ),
        ({"PrivateKeyFile": None}, "PrivateKeyFile: it is not given"),
        ({"PrivateKeyFile": "nowhere.pem"}, "No such file"),
        ({"PrivateKeyFile": "alipay.env"}, "not an unencrypted private key"),
        ({"AlipayNotifyUrl": "http://shop.example/alipay/notify"}, "an absolute https address"),
        ({"AlipayNotifyUrl": "/alipay/notify"}, "an absolute https address"),
        ({"AlipayNotifyUrl": "https://shop.example/alipay/notify?id=1"}, "without ? or #"),
        ({"AlipayNotifyUrl": f"https://shop.example/{'n' * 240}"}, "Alipay takes 256"),
        ({"AlipayReturnUrl": "shop.example"}, "AlipayReturnUrl shop.example"),
    ],
)
def test_what_is_wrong_is_said_in_words(settings, check, changes, words):
    _, wrong = check(settings | changes)
    assert wrong
    assert words in wrong[0]


def test_a_key_that_is_too_short_is_said(settings, check, tmp_path):
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 - that is the point
    (tmp_path / "app.pem").write_bytes(alipay_sign.private_key_pem(short))
    _, wrong = check(settings)
    assert "not an RSA key of 2048 bits" in wrong[0]
    assert wrong[-1].startswith("The gateway was not asked")


@pytest.mark.parametrize(
    ("url", "app_id", "is_ok", "words"),
    [
        (alipay_findings.PRODUCTION, APP_ID, True, "production"),
        (alipay_findings.SANDBOX, "9021000123609320", True, "no real money"),
        (alipay_findings.PRODUCTION, "9021000123609320", False, "AlipayAppId is the sandbox's"),
        ("https://openapi.alipaydev.com/gateway.do", APP_ID, False, "the sandbox of old"),
        ("http://openapi.alipay.com/gateway.do", APP_ID, False, "not an https address"),
        ("gateway.do", APP_ID, False, "not an https address"),
        ("https://proxy.example/gateway.do", APP_ID, True, "none of the two"),
        ("http://127.0.0.1:8000/gateway.do", APP_ID, True, "on this machine"),
    ],
)
def test_production_and_sandbox_are_told_apart(url, app_id, is_ok, words):
    finding = alipay_findings._gateway_url(url, app_id)
    assert finding.is_ok is is_ok
    assert words in finding.text


# --- certificates ---------------------------------------------------------------------------------


def test_with_certificates_what_to_fill_in_is_computed(certified, check, server):
    told, wrong = check(certified)
    assert wrong == []
    filled = dict(
        line.removeprefix("fill in  ").split(" = ") for line in told if line.startswith("fill in")
    )
    assert filled["AlipayPublicKey"] == alipay_sign.public_key_base64(alipay_key())
    [asked] = server.asked
    assert asked.params["app_cert_sn"] == filled["app_cert_sn"]
    assert asked.params["alipay_root_cert_sn"] == filled["alipay_root_cert_sn"]
    assert len(filled["app_cert_sn"]) == len(filled["alipay_root_cert_sn"]) == 32


@pytest.mark.parametrize("name", ["app.crt", "alipay.crt"])
@pytest.mark.parametrize(("days", "words"), [(5, "expires on"), (-1, "expired on")])
def test_an_expiring_certificate_is_wrong(certified, check, tmp_path, name, days, words):
    key = app_key() if name == "app.crt" else alipay_key()
    since = datetime.now(UTC) - timedelta(days=100)
    certificate = console.certificate(key, key, since=since, days=100 + days)
    (tmp_path / name).write_text(console.pem(certificate))
    _, [wrong] = check(certified)
    assert words in wrong


def test_a_certificate_of_another_key_is_wrong(certified, check, tmp_path):
    certificate = console.certificate(strangers_key(), app_key())
    (tmp_path / "app.crt").write_text(console.pem(certificate))
    _, [wrong] = check(certified)
    assert "AppCertificateFile is not of the key" in wrong


def test_the_apps_own_certificate_in_the_place_of_alipays_is_wrong(certified, check):
    _, wrong = check(certified | {"AlipayCertificateFile": "app.crt"})
    assert "the app's own public key" in wrong[0]


def test_a_public_key_that_is_not_the_certificates_is_wrong(certified, check):
    other = alipay_sign.public_key_base64(strangers_key())
    _, [wrong] = check(certified | {"AlipayPublicKey": other})
    assert "not the key in AlipayCertificateFile" in wrong


def test_a_root_bundle_without_rsa_is_wrong(certified, check, tmp_path):
    curve = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "root.crt").write_text(console.pem(console.certificate(curve, curve)))
    _, [wrong] = check(certified)
    assert "holds no RSA certificate" in wrong


@pytest.mark.parametrize(
    "name", ["AppCertificateFile", "AlipayCertificateFile", "AlipayRootCertificateFile"]
)
@pytest.mark.parametrize("value", [None, "nowhere.crt", "app.pem"])
def test_all_three_files_are_needed(certified, check, name, value):
    _, wrong = check(certified | {name: value})
    assert wrong[0].startswith(name)


# --- what the gateway says ------------------------------------------------------------------------


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize(
    ("code", "sub_code", "words"),
    [
        ("40002", "isv.invalid-signature", "the app's public key in the console"),
        ("40002", "isv.invalid-app-id", "Alipay knows no such app here"),
        ("40003", "isv.missing-signature-config", "upload its public key"),
        ("40002", "isv.invalid-timestamp", "clock"),
        ("40002", "isv.app-cert-not-exist", "certificates"),
        ("40002", "isv.invalid-alipay-root-cert-sn", "certificates"),
        ("40006", "isv.insufficient-isv-permissions", "sign up for the payment product"),
        ("40002", "isv.something-new", "isv.something-new"),
        ("20000", "aop.unknow-error", "aop.unknow-error"),
    ],
)
def test_a_refusal_of_the_gateways_is_explained(
    settings, check, server, code, sub_code, words, is_signed
):
    fields = {"code": code, "sub_code": sub_code}
    server.behaviour = (
        answering(fields)
        if is_signed
        else sending(json.dumps({"alipay_trade_query_response": fields}).encode())
    )
    _, [wrong] = check(settings)
    assert words in wrong
    assert sub_code in wrong


def test_an_error_response_is_explained_too(settings, check, server):
    error = {"error_response": {"code": "40002", "sub_code": "isv.invalid-app-id"}}
    server.behaviour = sending(json.dumps(error).encode())
    _, [wrong] = check(settings)
    assert "Alipay knows no such app here" in wrong


def test_an_answer_by_another_key_is_explained(settings, check, server):
    server.behaviour = answering(NOT_EXIST, strangers_key())
    _, [wrong] = check(settings)
    assert "signed by another key than AlipayPublicKey" in wrong


def test_an_unsigned_not_exist_proves_nothing(settings, check, server):
    server.behaviour = sending(json.dumps({"alipay_trade_query_response": NOT_EXIST}).encode())
    _, [wrong] = check(settings)
    assert "unsigned" in wrong


@pytest.mark.parametrize("body", [b"<html>", b"{}", b""])
def test_what_is_no_answer_is_said(settings, check, server, body):
    server.behaviour = sending(body)
    _, [wrong] = check(settings)
    assert "no answer of Alipay's" in wrong


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/gateway.do", "http://127.0.0.1:x/"])
def test_a_gateway_that_is_not_there_is_said(settings, check, url):
    _, [wrong] = check(settings | {"AlipayGatewayUrl": url})
    assert "cannot be reached" in wrong


@pytest.mark.parametrize(
    ("minutes", "is_wrong"), [(-16, True), (-14, False), (14, False), (16, True)]
)
def test_a_clock_that_is_off_is_said(settings, check, server, minutes, is_wrong):
    def behave(handler, asked):
        then = datetime.now(UTC) + timedelta(minutes=minutes)
        handler.date_time_string = lambda: format_datetime(then.replace(microsecond=0), usegmt=True)
        sent(handler, alipay_sign.sign_response("alipay.trade.query", NOT_EXIST, alipay_key()))

    server.behaviour = behave
    _, wrong = check(settings)
    assert [("minutes off" in line) for line in wrong] == ([True] if is_wrong else [])


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [("AlipayAppId", "line 1"), ("\nAppId=1", "line 2: AppId is none of"), ("\0=", "line 1")],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, text, words):
    (tmp_path / "alipay.env").write_text(text)
    with pytest.raises(SystemExit, match=words):
        alipay_check.main([str(tmp_path / "alipay.env")])


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SystemExit, match="No such file"):
        alipay_check.main([str(tmp_path / "alipay.env")])


def test_without_a_file_the_local_stack_is_checked(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(alipay_check, "LOCAL", tmp_path)
    with pytest.raises(SystemExit, match="make up"):
        alipay_check.main([])
    monkeypatch.setattr(alipay_check, "find", lambda *_: os.getpid())
    try:
        with pytest.raises(SystemExit):
            alipay_check.main([])
    finally:
        process.stop(tmp_path)
    told = capsys.readouterr().out
    assert "is on this machine" in told
