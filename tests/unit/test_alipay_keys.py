"""Keys as people have them: Alipay's tools write bare base64 on one line, others write PEM."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from infra.local import alipay_sign
from lockstep.alipay.keys import Keys, is_signed, load_keys, load_private_key

KEY = alipay_sign.new_key()
PKCS8, PKCS1 = PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL


def pem(key, form=PKCS8, encryption=None):
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()).decode()


def bare(key, form=PKCS8):
    return base64.b64encode(key.private_bytes(Encoding.DER, form, NoEncryption())).decode()


@pytest.mark.parametrize("form", [PKCS8, PKCS1])
@pytest.mark.parametrize("write", [pem, bare])
def test_a_private_key_is_read_in_each_form_that_tools_write(write, form):
    text = write(KEY, form)
    for written in (text, f"\n {text}\r\n"):
        assert load_private_key(written).private_numbers() == KEY.private_numbers()


def test_a_bare_key_may_be_wrapped():
    text = bare(KEY)
    wrapped = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    assert load_private_key(wrapped).private_numbers() == KEY.private_numbers()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        "支付宝",
        "AAAA",
        bare(KEY)[:-4],
        pem(KEY).replace("END", "", 1),
        pem(KEY, PKCS8, BestAvailableEncryption(b"password")),
        alipay_sign.public_key_base64(KEY),
        pem(ec.generate_private_key(ec.SECP256R1())),
        pem(ed25519.Ed25519PrivateKey.generate()),
        pem(rsa.generate_private_key(65537, 1024)),  # noqa: S505 - that is the point
    ],
    ids=range(11),
)
def test_what_is_no_private_key_is_refused_and_not_repeated(text):
    with pytest.raises(ValueError, match=r"^not an") as refused:
        load_private_key(text)
    assert len(text) < 8 or text[:40] not in str(refused.value)
    assert refused.value.__cause__ is None


def test_keys_do_not_show_themselves():
    keys = load_keys(pem(KEY), [alipay_sign.public_key_base64(KEY)])
    assert "own" not in repr(keys)


def test_what_is_signed_verifies_with_the_key_and_with_no_other():
    other = alipay_sign.new_key()
    keys = Keys(KEY, (other.public_key(),))
    signature = keys.sign(b"content")
    assert is_signed(b"content", signature, [KEY.public_key()])
    assert is_signed(b"content", signature, [other.public_key(), KEY.public_key()])
    assert not keys.is_alipays(b"content", signature)
    assert not is_signed(b"contents", signature, [KEY.public_key()])
    assert not is_signed(b"content", signature, [])


@pytest.mark.parametrize("signature", ["", "AAAA", "=", "é", "not base64", "AAAA AAAA"])
def test_what_is_no_signature_is_false_and_no_fault(signature):
    assert not is_signed(b"content", signature, [KEY.public_key()])


def test_sha1_is_not_taken():
    signature = base64.b64encode(KEY.sign(b"content", PKCS1v15(), SHA1())).decode()  # noqa: S303
    assert not is_signed(b"content", signature, [KEY.public_key()])


def test_a_public_key_of_a_certificate_is_not_taken_for_a_bare_one():
    der = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    keys = load_keys(pem(KEY), [base64.b64encode(der).decode()])
    assert keys.alipay[0] == KEY.public_key()
