"""The body of a notice, before anything in it is believed, and after random damage.

Goal: whatever bytes arrive, the answer is the genuine notice or a named refusal, at bounded cost.
Method: the limits one by one; then hypothesis changes a signed body, or makes up a body.
The Content-Type and the query string, on which other systems failed, are never even passed in.
"""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.alipay.form import BODY_BYTES_MAX, PARAMETERS_MAX, body_bytes
from lockstep.alipay.model import NoticeKind, NoticeRefused, Refusal
from tests.support.notices import APP_ID
from tests.support.reading import SIGNER, read, refusal

# --- the body ------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"success", b"&&&", b"\x00"])
def test_a_body_without_parameters_is_unreadable(body):
    assert refusal(body) is Refusal.BODY_UNREADABLE


@pytest.mark.parametrize("raw", ["测试".encode(), "测试".encode("gbk"), b"\xff"])
def test_a_body_that_is_not_ascii_is_unreadable(raw):
    assert refusal(SIGNER.body() + b"&x=" + raw) is Refusal.BODY_UNREADABLE


def test_a_body_may_be_as_large_as_the_limit():
    body = SIGNER.body(body="b" * (BODY_BYTES_MAX - 2000))
    room = BODY_BYTES_MAX - len(body)
    largest = body.replace(b"b", b"%62", room // 2) + b"&" * (room % 2)
    assert len(largest) == BODY_BYTES_MAX
    assert read(largest).kind is NoticeKind.PAYMENT
    assert refusal(largest + b"&") is Refusal.BODY_UNREADABLE
    assert refusal(SIGNER.body(body="b" * 1_000_000)) is Refusal.BODY_UNREADABLE


def test_a_body_may_have_as_many_parameters_as_the_limit():
    room = PARAMETERS_MAX - len(SIGNER.base()) - len(("sign", "sign_type"))
    assert read(SIGNER.body(**{f"x{n}": "" for n in range(room)})).kind is NoticeKind.PAYMENT
    assert refusal(SIGNER.body(**{f"x{n}": "" for n in range(room + 1)})) is Refusal.BODY_UNREADABLE
    assert refusal(b"&".join(b"x%d=" % n for n in range(2000))) is Refusal.BODY_UNREADABLE


def test_a_refusal_names_its_code_and_quotes_nothing():
    with pytest.raises(NoticeRefused, match="SIGNATURE_INVALID") as refused:
        read(SIGNER.encode(SIGNER.base(), mangle=(b"notify_id=N1", b"notify_id=secret")))
    assert "secret" not in str(refused.value)


# --- the event -----------------------------------------------------------------------------------


def test_the_event_body_is_taken_by_its_flag():
    body = SIGNER.body()
    assert body_bytes(body.decode(), is_base64=False) == body
    assert body_bytes(base64.b64encode(body).decode(), is_base64=True) == body
    assert body_bytes(None, is_base64=False) == body_bytes(None, is_base64=True) == b""


@pytest.mark.parametrize(
    ("text", "is_base64"),
    [
        *((text, True) for text in ("abc", "YQ", "YQ==YQ==", "YW Jj", "YWJj\n", "Y_-j", "=")),
        *((text, True) for text in ("é", "\ud800", "a=1&b=2")),
        *((text, False) for text in ("subject=测试", "é", "\ud800")),
    ],
)
def test_an_event_body_that_is_not_what_its_flag_says_is_unreadable(text, is_base64):
    with pytest.raises(NoticeRefused) as refused:
        body_bytes(text, is_base64)
    assert refused.value.code is Refusal.BODY_UNREADABLE


# --- damage --------------------------------------------------------------------------------------

GENUINE_BODY = SIGNER.body(
    subject="测试 & more", refund_fee="3.00", gmt_refund="2026-10-25 09:00:00"
)
GENUINE = read(GENUINE_BODY)
LAST = len(GENUINE_BODY) - 1


def equal_or_refused(body: bytes) -> None:
    try:
        notice = read(body)
    except NoticeRefused:
        return
    assert notice == GENUINE


@given(at=st.integers(0, LAST), byte=st.integers(0, 255))
def test_one_byte_changed_is_the_same_notice_or_a_refusal(at, byte):
    equal_or_refused(GENUINE_BODY[:at] + bytes([byte]) + GENUINE_BODY[at + 1 :])


@given(
    start=st.integers(0, LAST),
    length=st.integers(0, 40),
    new=st.binary(max_size=8) | st.sampled_from([b"%26", b"&", b"%3D", b"=", b"%", b"+", b"%2B"]),
)
def test_a_piece_replaced_is_the_same_notice_or_a_refusal(start, length, new):
    equal_or_refused(GENUINE_BODY[:start] + new + GENUINE_BODY[start + length :])


def test_every_single_byte_left_out_is_the_same_notice_or_a_refusal():
    for at in range(len(GENUINE_BODY)):
        equal_or_refused(GENUINE_BODY[:at] + GENUINE_BODY[at + 1 :])


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(body):
    assert refusal(body)


@given(st.text(max_size=100), st.booleans())
def test_arbitrary_event_bodies_are_refused_or_are_bytes(text, is_base64):
    try:
        body = body_bytes(text, is_base64)
    except NoticeRefused:
        return
    assert isinstance(body, bytes)


@given(
    known=st.dictionaries(st.sampled_from(sorted(SIGNER.base())), st.text(max_size=20)),
    unknown=st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=5),
)
def test_whatever_alipay_signs_verifies_and_is_a_notice_or_a_refusal(known, unknown):
    body = SIGNER.encode(unknown | SIGNER.base() | known)
    try:
        notice = read(body)
    except NoticeRefused:
        assert refusal(body) is not Refusal.SIGNATURE_INVALID
    else:
        assert notice.app_id == APP_ID
