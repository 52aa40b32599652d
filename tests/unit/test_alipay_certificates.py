"""Serial numbers as Alipay counts them, over certificates of a test's own authority."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from infra import alipay_certificates as certificates
from infra.local import alipay_sign
from tests.support import alipay_console as console

KEY = alipay_sign.new_key()
AUTHORITY = alipay_sign.new_key()
ISSUER = "CN=Ant Financial Class 2 R1, a test's,OU=Certification Authority,O=Ant Financial,C=CN"


def number(serial):
    return hashlib.md5(f"{ISSUER}{serial}".encode(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("serial", [1, 4711, 2**158 + 1])
def test_a_serial_number_is_of_the_issuers_name_and_the_number_in_decimal(serial):
    certificate = console.certificate(KEY, AUTHORITY, serial=serial)
    text = f"a line of text\n{console.pem(certificate)}"
    assert certificates.serial_number(certificates.load(text)) == number(serial)


def test_the_roots_are_those_that_rsa_signed_in_their_order():
    by_curve = console.certificate(KEY, ec.generate_private_key(ec.SECP256R1()), serial=2)
    first, last = (console.certificate(KEY, AUTHORITY, serial=serial) for serial in (9, 3))
    bundle = console.pem(first, by_curve) + console.unparsable() + console.pem(last)
    assert certificates.root_serial_number(bundle) == f"{number(9)}_{number(3)}"


@pytest.mark.parametrize("bundle", ["", "text", console.unparsable()])
def test_a_bundle_without_rsa_has_no_serial_number(bundle):
    assert certificates.root_serial_number(bundle) == ""


def test_a_certificate_shows_its_key_as_the_console_does():
    certificate = console.certificate(KEY, AUTHORITY)
    assert certificates.public_key(certificate) == alipay_sign.public_key_base64(KEY)


@pytest.mark.parametrize("text", ["", "MIID", console.unparsable()])
def test_what_is_no_certificate_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whichever the library says
        certificates.load(text)


@pytest.mark.parametrize(
    ("at", "fault"),
    [
        (-1, "is not valid before 2026-01-01"),
        (0, None),
        (70 - 31, None),
        (70 - 29, "expires on 2026-03-12"),
        (71, "expired on 2026-03-12"),
    ],
)
def test_an_end_is_told_thirty_days_before(at, fault):
    since = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = console.certificate(KEY, AUTHORITY, since=since, days=70)
    assert certificates.validity_fault(certificate, since + timedelta(days=at)) == fault
