"""The settings of an Alipay app as a person gives them, and what is found of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from lockstep.alipay.keys import load_private_key, load_public_key

CERTIFICATE_FILES: Final = (
    "AppCertificateFile",
    "AlipayCertificateFile",
    "AlipayRootCertificateFile",
)
NAMES: Final = frozenset(
    {
        *("AlipayAppId", "AlipaySellerIds", "AlipayPublicKey", "AlipayGatewayUrl"),
        *("AlipayNotifyUrl", "AlipayReturnUrl", "PrivateKeyFile"),
        *CERTIFICATE_FILES,
    }
)


@dataclass(frozen=True)
class Finding:
    is_ok: bool
    text: str


@dataclass(frozen=True)
class Given:
    """The values of a file, and the folder that its paths start from."""

    values: Mapping[str, str]
    folder: Path

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def content(self, name: str) -> str:
        """The text of the file that ``name`` names. Raises OSError, ValueError."""
        if not self.value(name):
            raise ValueError("it is not given")
        return (self.folder / self.value(name)).read_text(encoding="utf-8")

    @property
    def has_certificates(self) -> bool:
        return any(self.value(name) for name in CERTIFICATE_FILES)

    def own_public_key(self) -> RSAPublicKey | None:
        """Of the app's own key; None where that cannot be read."""
        try:
            return load_private_key(self.content("PrivateKeyFile")).public_key()
        except (OSError, ValueError):
            return None


def read_file(file: Path) -> Given:
    """NAME=value lines; # begins a comment. Raises OSError, ValueError."""
    values = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"line {number} of {file} is not NAME=value")
        if name.strip() not in NAMES:
            known = ", ".join(sorted(NAMES))
            raise ValueError(f"line {number}: {name.strip()} is none of {known}")
        values[name.strip()] = value.strip()
    return Given(values, file.resolve().parent)


def listed(text: str) -> list[str]:
    """The values that commas separate."""
    return [each.strip() for each in text.split(",") if each.strip()]


def public_key_finding(text: str, given: Given, name: str) -> Finding:
    try:
        key = load_public_key(text)
    except ValueError as fault:
        return Finding(False, f"{name}: {fault}. Copy 支付宝公钥 from the console, whole.")
    if key == given.own_public_key():
        return Finding(
            False,
            f"{name} is the app's own public key (应用公钥). Alipay's is meant (支付宝公钥), which "
            "the console shows once the app's is uploaded.",
        )
    return Finding(True, f"{name} is an RSA key of {key.key_size} bits, and not the app's own.")
