"""What can be said of an Alipay app's settings without asking anybody."""

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit

from infra import alipay_certificates as certificates
from infra.alipay_given import Finding, Given, listed, public_key_finding
from lockstep.alipay.keys import Keys, load_private_key, load_public_key
from lockstep.settings import AlipayAppSettings

PRODUCTION: Final = "https://openapi.alipay.com/gateway.do"
SANDBOX: Final = "https://openapi-sandbox.dl.alipaydev.com/gateway.do"
_OLD_SANDBOX_HOST: Final = "openapi.alipaydev.com"
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def of_settings(given: Given) -> Iterator[Finding]:
    """In the order in which a person would mend them."""
    yield _app_id(given.value("AlipayAppId"))
    yield from map(_seller_id, listed(given.value("AlipaySellerIds")) or [""])
    yield _private_key(given)
    yield from certificates.findings(given) if given.has_certificates else _public_keys(given)
    yield _gateway_url(given.value("AlipayGatewayUrl") or PRODUCTION, given.value("AlipayAppId"))
    yield _notify_url(given.value("AlipayNotifyUrl"))
    yield _return_url(given.value("AlipayReturnUrl"))


def app(given: Given) -> tuple[AlipayAppSettings, Keys] | None:
    """What a deployment would call with; None where a key cannot be read."""
    try:
        filled = to_fill_in(given)
        public = listed(filled.get("AlipayPublicKey") or given.value("AlipayPublicKey"))
        keys = Keys(
            load_private_key(given.content("PrivateKeyFile")), tuple(map(load_public_key, public))
        )
    except (OSError, ValueError):
        return None
    settings = AlipayAppSettings(
        app_id=given.value("AlipayAppId"),
        gateway_url=given.value("AlipayGatewayUrl") or PRODUCTION,
        public_keys=tuple(public),
        private_key="",
        app_cert_sn=filled.get("app_cert_sn"),
        alipay_root_cert_sn=filled.get("alipay_root_cert_sn"),
    )
    return (settings, keys) if public else None


def to_fill_in(given: Given) -> dict[str, str]:
    """What is computed from certificates: the parameter, and two values of the secret."""
    if not given.has_certificates:
        return {}
    found = {}
    for name, file, read in _READERS:
        try:
            found[name] = read(given.content(file))
        except (OSError, ValueError):
            continue
    return {name: value for name, value in found.items() if value}


_READERS: Final[tuple[tuple[str, str, Callable[[str], str]], ...]] = (
    (
        "AlipayPublicKey",
        "AlipayCertificateFile",
        lambda text: certificates.public_key(certificates.load(text)),
    ),
    (
        "app_cert_sn",
        "AppCertificateFile",
        lambda text: certificates.serial_number(certificates.load(text)),
    ),
    ("alipay_root_cert_sn", "AlipayRootCertificateFile", certificates.root_serial_number),
)


def _app_id(value: str) -> Finding:
    if re.fullmatch(r"2088[0-9]{12}", value):
        return Finding(False, f"AlipayAppId {value} is a payee (PID). The app's own id is meant.")
    if not re.fullmatch(r"[0-9]{16}", value):
        said = f"{value} is not one" if value else "is missing"
        return Finding(False, f"AlipayAppId {said}: the console shows 16 digits.")
    return Finding(True, f"AlipayAppId {value} has the form of one.")


def _seller_id(value: str) -> Finding:
    if not re.fullmatch(r"2088[0-9]{12}", value):
        return Finding(
            False,
            f"AlipaySellerIds: {value or 'none is given'}; a payee is 2088 and twelve more digits.",
        )
    return Finding(True, f"AlipaySellerIds: {value} has the form of a payee.")


def _private_key(given: Given) -> Finding:
    try:
        key = load_private_key(given.content("PrivateKeyFile"))
    except (OSError, ValueError) as fault:
        return Finding(
            False, f"PrivateKeyFile: {fault}. It is the app's key, from Alipay's key tool."
        )
    return Finding(True, f"PrivateKeyFile holds an RSA key of {key.key_size} bits.")


def _public_keys(given: Given) -> Iterator[Finding]:
    texts = listed(given.value("AlipayPublicKey"))
    if not texts:
        yield Finding(False, "AlipayPublicKey is missing: 支付宝公钥 in the console.")
    if len(texts) > 2:
        yield Finding(
            False, "AlipayPublicKey: more than two keys. The old one, while it is changed."
        )
    for text in texts:
        yield public_key_finding(text, given, "AlipayPublicKey")


def _gateway_url(url: str, app_id: str) -> Finding:
    parts = urlsplit(url)
    if parts.hostname in _THIS_MACHINE:
        return Finding(True, f"AlipayGatewayUrl {url} is on this machine.")
    if parts.hostname == _OLD_SANDBOX_HOST:
        return Finding(False, f"AlipayGatewayUrl is the sandbox of old, now {SANDBOX}.")
    if parts.scheme != "https" or not parts.hostname:
        return Finding(False, f"AlipayGatewayUrl {url} is not an https address: {PRODUCTION}.")
    if url == PRODUCTION and app_id.startswith("9021"):
        return Finding(
            False, f"AlipayAppId is the sandbox's and AlipayGatewayUrl is not: {SANDBOX}."
        )
    kind = {PRODUCTION: "production", SANDBOX: "the sandbox: no real money"}.get(url)
    return Finding(
        True, f"AlipayGatewayUrl is {kind or f'{url}, none of the two that Alipay names'}."
    )


def _notify_url(url: str) -> Finding:
    if not url:
        return Finding(
            True, "AlipayNotifyUrl is empty: notices go to the API's own /alipay/notify."
        )
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        return Finding(
            False, f"AlipayNotifyUrl {url}: an absolute https address without ? or # is needed."
        )
    if len(url) > 256:
        return Finding(False, f"AlipayNotifyUrl has {len(url)} characters; Alipay takes 256.")
    return Finding(True, f"AlipayNotifyUrl {url} has the form that Alipay takes.")


def _return_url(url: str) -> Finding:
    if url and (urlsplit(url).scheme not in {"https", "http"} or len(url) > 256):
        return Finding(
            False, f"AlipayReturnUrl {url}: an absolute address of at most 256 characters."
        )
    return Finding(True, f"AlipayReturnUrl {url or 'is empty: a buyer stays at Alipay'}.")
