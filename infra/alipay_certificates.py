"""The certificates of Alipay's console: their serial numbers, their keys, what is wrong with them.

A serial number is MD5 over the issuer's name and the certificate's own number; the root's are those
of every RSA certificate in its bundle, since the bundle holds others as well.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from infra.alipay_given import CERTIFICATE_FILES, Finding, Given, listed, public_key_finding

EXPIRES_SOON: Final = timedelta(days=30)

_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)
_SIGNED_BY_RSA: Final = "1.2.840.113549.1.1."


def load(text: str) -> x509.Certificate:
    """The first certificate of a PEM file. Raises ValueError."""
    found = _BLOCK.search(text)
    if not found:
        raise ValueError("not a certificate in PEM")
    return x509.load_pem_x509_certificate(found.group().encode("ascii"))


def serial_number(certificate: x509.Certificate) -> str:
    # The name is stored from the country down, and written from the common name up.
    issuer = ",".join(
        f"{part.rfc4514_attribute_name}={part.value!s}"
        for part in reversed(list(certificate.issuer))
    )
    text = f"{issuer}{certificate.serial_number}".encode()
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def root_serial_number(bundle: str) -> str:
    """The serial numbers of the RSA certificates among them; "" where there is none."""
    numbers = []
    for block in _BLOCK.findall(bundle):
        try:
            certificate = x509.load_pem_x509_certificate(block.encode("ascii"))
            if certificate.signature_algorithm_oid.dotted_string.startswith(_SIGNED_BY_RSA):
                numbers.append(serial_number(certificate))
        except ValueError:
            continue  # of another kind, such as SM2 with what no library here reads
    return "_".join(numbers)


def public_key(certificate: x509.Certificate) -> str:
    """As the console shows a key: base64 of its DER form, on one line."""
    der = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode("ascii")


def validity_fault(certificate: x509.Certificate, now: datetime | None = None) -> str | None:
    """What is wrong with its dates, in words."""
    at = now or datetime.now(UTC)
    if at < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}"
    if at > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if at > certificate.not_valid_after_utc - EXPIRES_SOON:
        return f"expires on {certificate.not_valid_after_utc:%Y-%m-%d}"
    return None


def findings(given: Given) -> Iterator[Finding]:
    for name in CERTIFICATE_FILES[:2]:
        try:
            certificate = load(given.content(name))
        except (OSError, ValueError) as fault:
            text = f"{name}: {fault}. Download it from the console; all three are needed."
            yield Finding(False, text)
            continue
        yield _validity(name, certificate)
        if name == "AppCertificateFile":
            yield _is_of_the_key(certificate, given)
        else:
            yield public_key_finding(public_key(certificate), given, f"The key of {name}")
            yield from _agreement(certificate, given)
    yield _root(given)


def _validity(name: str, certificate: x509.Certificate) -> Finding:
    if fault := validity_fault(certificate):
        return Finding(False, f"{name} {fault}: get a new one in the console.")
    return Finding(True, f"{name} is valid until {certificate.not_valid_after_utc:%Y-%m-%d}.")


def _is_of_the_key(certificate: x509.Certificate, given: Given) -> Finding:
    if certificate.public_key() == given.own_public_key():
        return Finding(True, "AppCertificateFile belongs to the key in PrivateKeyFile.")
    return Finding(
        False,
        "AppCertificateFile is not of the key in PrivateKeyFile: the key must be the one whose "
        "request (CSR) the certificate was made from.",
    )


def _agreement(certificate: x509.Certificate, given: Given) -> Iterator[Finding]:
    texts = listed(given.value("AlipayPublicKey"))
    if texts and public_key(certificate) not in texts:
        yield Finding(False, "AlipayPublicKey is not the key in AlipayCertificateFile: see below.")


def _root(given: Given) -> Finding:
    name = "AlipayRootCertificateFile"
    try:
        numbers = root_serial_number(given.content(name))
    except (OSError, ValueError) as fault:
        return Finding(False, f"{name}: {fault}. Download alipayRootCert.crt from the console.")
    if not numbers:
        return Finding(False, f"{name} holds no RSA certificate: it is not alipayRootCert.crt.")
    return Finding(True, f"{name} holds RSA certificates: {numbers.count('_') + 1}.")
