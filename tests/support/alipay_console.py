"""The files that Alipay's console hands out, made by a small authority of the test's own."""

import base64
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

type Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

# From the country down, as the real ones are stored.
AUTHORITY = (
    (NameOID.COUNTRY_NAME, "CN"),
    (NameOID.ORGANIZATION_NAME, "Ant Financial"),
    (NameOID.ORGANIZATIONAL_UNIT_NAME, "Certification Authority"),
    (NameOID.COMMON_NAME, "Ant Financial Class 2 R1, a test's"),
)


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])


def certificate(
    key: Key,
    signed_by: Key,
    *,
    serial: int = 4711,
    days: int = 365,
    since: datetime | None = None,
    subject: str = "2021000100000001",
) -> x509.Certificate:
    begins = since or datetime.now(UTC) - timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(name((NameOID.COMMON_NAME, subject)))
        .issuer_name(name(*AUTHORITY))
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=days))
        .sign(signed_by, SHA256())
    )


def pem(*certificates: x509.Certificate) -> str:
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def unparsable() -> str:
    """A certificate of a kind that no library here reads."""
    text = base64.b64encode(b"\x30\x03\x02\x01\x05\x00\x00").decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"
