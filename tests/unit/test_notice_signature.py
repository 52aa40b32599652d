"""A notice is believed only as far as Alipay signed it, and only in one reading.

Goal: what was changed after signing, signed by another, by another scheme or with another hash is
refused, and so is a genuine signature put under another reading of the text it covers.
Method: a signed payment of 9.90, changed on its way to us.
"""

import base64
from collections.abc import Mapping
from itertools import pairwise
from urllib.parse import parse_qsl, quote_plus, urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import MD5, SHA1, SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from infra.local import alipay_sign
from lockstep.alipay.keys import load_public_key
from lockstep.alipay.model import NoticeKind, NoticeRefused, Refusal
from tests.support.notices import APP_ID, SELLER_ID, NoticeSigner
from tests.support.reading import KEY, SIGNER, read, read_trade, refusal


def signed_as(text: str, params: Mapping[str, str], algorithm: HashAlgorithm) -> bytes:
    """Put a signature of exactly this text under these parameters."""
    sign = base64.b64encode(SIGNER.key.sign(text.encode(), padding.PKCS1v15(), algorithm))
    return urlencode({**params, "sign": sign}).encode()


# --- what is signed ------------------------------------------------------------------------------


def test_the_signed_text_is_every_other_parameter_sorted_and_not_escaped():
    text = (
        f'Zeta=1&app_id={APP_ID}&body=&charset=utf-8&fund_bill_list=[{{"amount":"9.90"}}]'
        f"&out_trade_no=O1&seller_id={SELLER_ID}&subject=a b%2B&total_amount=9.90&trade_no=T1"
        "&trade_status=TRADE_SUCCESS"
    )
    params = {"sign_type": "RSA2"}
    for pair in reversed(text.split("&")):
        name, _, value = pair.partition("=")
        params[name] = value
    assert read_trade(signed_as(text, params, SHA256())).subject == "a b%2B"


@pytest.mark.parametrize(
    "value",
    ["foobar ", " foobar", "", "&quot;", "a+b%20c", "100%", "%7B%22id%22%3A1%7D", "测试 🛒"],
)
@pytest.mark.parametrize("name", ["body", "passback_params", "subject", "a_new_parameter"])
def test_values_are_decoded_once_and_neither_trimmed_nor_dropped(name, value):
    notice = read_trade(SIGNER.body(**{name: value}))
    assert notice.subject == (value if name == "subject" else "Order O1")


def test_either_escape_of_a_space_is_the_same_notice():
    plus = SIGNER.encode(SIGNER.base(subject="a b"))
    assert read(plus.replace(b"subject=a+b", b"subject=a%20b")) == read(plus)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"total_amount=9.90", b"total_amount=0.01"),
        (b"out_trade_no=O1&", b"out_trade_no=O2&"),
        (b"TRADE_SUCCESS", b"TRADE_CLOSED"),
        (b"&version=1.0", b""),
        (b"&version=1.0", b"&version=1.0&extra="),
        (b"&version=1.0", b"&version=1.0&s=%2Fpay"),  # a query string that a router merged in
        (b"charset=utf-8", b"charset=UTF-8"),
        (b"notify_id=N1", b"notify_id=N2"),
    ],
)
def test_anything_changed_added_or_left_out_after_signing_is_refused(old, new):
    body = SIGNER.encode(SIGNER.base(), mangle=(old, new))
    assert refusal(body) is Refusal.SIGNATURE_INVALID


def test_the_other_scheme_which_signs_sign_type_is_refused():
    params = SIGNER.base() | {"sign_type": "RSA2"}
    text = "&".join(f"{name}={params[name]}" for name in sorted(params))
    assert refusal(signed_as(text, params, SHA256())) is Refusal.SIGNATURE_INVALID


def test_nothing_is_looked_at_before_the_signature():
    wrong = {"app_id": "x", "seller_id": "x", "charset": "x", "total_amount": "x", "trade_no": None}
    assert refusal(NoticeSigner().body(**wrong)) is Refusal.SIGNATURE_INVALID


# --- the signature itself ------------------------------------------------------------------------


def sign_of(body: bytes) -> str:
    return dict(parse_qsl(body.decode()))["sign"]


@pytest.mark.parametrize(
    "sign", [None, "", "abc", "%3D", "YWJj", "!" * 344, "%E7%AD%BE", "A" * 344, "A" * 9000]
)
def test_a_sign_that_is_no_signature_is_refused(sign):
    unsigned = SIGNER.body().rpartition(b"&sign=")[0]
    body = unsigned if sign is None else unsigned + f"&sign={sign}".encode()
    assert refusal(body) is Refusal.SIGNATURE_INVALID


def test_a_plus_in_sign_that_was_not_escaped_is_not_repaired():
    bodies = (SIGNER.body(notify_id=f"N{n}") for n in range(1000))
    body = next(body for body in bodies if "+" in sign_of(body))
    assert refusal(body.replace(b"%2B", b"+")) is Refusal.SIGNATURE_INVALID


@pytest.mark.parametrize("junk", ["%0A", "+", "*", "%00"])
def test_base64_with_junk_in_it_is_refused(junk):
    body = SIGNER.body()
    sign = quote_plus(sign_of(body))
    mangled = body.replace(sign.encode(), f"{sign[:-10]}{junk}{sign[-10:]}".encode())
    assert refusal(mangled) is Refusal.SIGNATURE_INVALID


def test_another_key_or_none_is_refused():
    assert refusal(NoticeSigner().body()) is Refusal.SIGNATURE_INVALID
    assert refusal(SIGNER.body(), keys=[]) is Refusal.SIGNATURE_INVALID


@pytest.mark.parametrize("sign_type", ["RSA", "rsa2", "", "MD5", "RSA2 "])
def test_another_sign_type_is_refused(sign_type):
    changed = f"sign_type={quote_plus(sign_type)}&".encode()
    body = SIGNER.encode(SIGNER.base(), mangle=(b"sign_type=RSA2&", changed))
    assert refusal(body) is Refusal.SIGN_TYPE_REFUSED


def test_a_missing_sign_type_means_the_required_one():
    params = SIGNER.base(subject="a+b c%20 测试")
    body = SIGNER.encode(params, mangle=(b"&sign_type=RSA2", b""))
    assert read(body).kind is NoticeKind.PAYMENT
    assert refusal(body.replace(b"9.90", b"9.91", 1)) is Refusal.SIGNATURE_INVALID


@pytest.mark.parametrize("weak", [SHA1(), MD5()])  # noqa: S303 - made to be refused
@pytest.mark.parametrize("sign_type", ["RSA2", None])
def test_a_weaker_hash_is_refused_whatever_sign_type_says(weak, sign_type):
    params = SIGNER.base()
    text = "&".join(f"{name}={params[name]}" for name in sorted(params))
    if sign_type:
        params["sign_type"] = sign_type
    assert refusal(signed_as(text, params, weak)) is Refusal.SIGNATURE_INVALID


# --- one reading only ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again", ["total_amount=0.01", "total_amount=9.90", "total%5Famount=0.01", "sign=", "x=&x="]
)
def test_a_parameter_given_twice_is_refused(again):
    assert refusal(SIGNER.body() + f"&{again}".encode()) is Refusal.PARAMETER_DUPLICATED


def resplit(signed: Mapping[str, str], reading: Mapping[str, str]) -> bytes:
    """Put the signature of some parameters under another reading of the same signed text."""
    sign = alipay_sign.sign(signed, SIGNER.key)
    assert alipay_sign.sign(reading, SIGNER.key) == sign, "the readings must be of one text"
    return urlencode({**reading, "sign_type": "RSA2", "sign": sign}).encode()


def test_an_amount_smuggled_in_through_the_subject_is_refused():
    """Signed: a subject chosen to hold another amount, and a tail that hides the true one."""
    signed = SIGNER.base(subject="x&total_amount=99.00&total_b=1")
    reading = signed | {"subject": "x", "total_amount": "99.00"}
    reading["total_b"] = f"1&total_amount={signed['total_amount']}"
    assert refusal(resplit(signed, reading)) is Refusal.PARAMETER_AMBIGUOUS


def test_a_status_that_swallows_its_neighbour_is_refused():
    """It would be an unknown status: stored, acknowledged, and the payment never seen again."""
    signed = SIGNER.base()
    reading = {name: value for name, value in signed.items() if name != "version"}
    reading["trade_status"] += "&version=1.0"
    assert refusal(resplit(signed, reading)) is Refusal.PARAMETER_AMBIGUOUS


def test_a_time_of_delivery_hidden_in_a_neighbour_is_refused():
    """It would give each delivery of a notice without a notify_id a name of its own."""
    signed = SIGNER.base(notify_id=None, n="1")
    reading = {name: value for name, value in signed.items() if name != "notify_time"}
    reading["n"] += f"&notify_time={signed['notify_time']}"
    assert refusal(resplit(signed, reading)) is Refusal.PARAMETER_AMBIGUOUS


REFUND = SIGNER.base(refund_fee="3.00", gmt_refund="2026-10-25 09:00:00", out_biz_no="R1", body="b")


@pytest.mark.parametrize(("name", "swallowed"), list(pairwise(sorted(REFUND))))
def test_no_moved_border_yields_another_notice(name, swallowed):
    reading = {key: value for key, value in REFUND.items() if key != swallowed}
    reading[name] += f"&{swallowed}={REFUND[swallowed]}"
    body = resplit(REFUND, reading)
    try:
        notice = read(body)
    except NoticeRefused:
        assert refusal(body) is Refusal.PARAMETER_AMBIGUOUS
    else:
        assert notice == read(SIGNER.encode(REFUND))


def test_an_ampersand_in_text_for_people_is_fine():
    assert read_trade(SIGNER.body(subject="A&W = 2", body="a&b=c")).subject == "A&W = 2"


# --- keys ----------------------------------------------------------------------------------------


def pem(key: rsa.RSAPublicKey | ed25519.Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def test_a_public_key_is_read_from_bare_base64_and_from_pem():
    bare = alipay_sign.public_key_base64(SIGNER.key)
    for text in (bare, f" {bare}\n", f"{bare[:64]}\r\n{bare[64:]}", pem(KEY), f"\n{pem(KEY)}\n"):
        assert load_public_key(text) == KEY


@pytest.mark.parametrize(
    "text",
    ["", "abc", "YWJj", "测试", "-----BEGIN 测试", "-----BEGIN PUBLIC KEY-----\nYWJj\n"],
)
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(ValueError, match="not a public key"):
        load_public_key(text)


def test_a_key_with_junk_in_it_is_refused():
    bare = alipay_sign.public_key_base64(SIGNER.key)
    with pytest.raises(ValueError, match="not a public key"):
        load_public_key(f"{bare[:9]}*{bare[9:]}")


def test_a_key_on_a_curve_that_nobody_knows_is_refused():
    known, unknown = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f")
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ValueError, match="not a public key"):
        load_public_key(base64.b64encode(der.replace(known, unknown)).decode())


def test_a_weak_key_or_one_of_another_kind_is_refused():
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - to be refused
    for key in (weak, ed25519.Ed25519PrivateKey.generate()):
        with pytest.raises(ValueError, match="not an RSA key of 2048"):
            load_public_key(pem(key.public_key()))


def test_a_private_key_survives_its_file(tmp_path):
    path = tmp_path / "signing.pem"
    path.write_bytes(alipay_sign.private_key_pem(SIGNER.key))
    assert NoticeSigner(alipay_sign.load_key(path)).body() == SIGNER.body()
