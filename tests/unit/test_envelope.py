"""An answer is found and verified as the bytes that came, whatever stands in its strings.

Goal: the text between `"<method>_response":` and the end of that object, exactly, for every JSON
that a server may write. Method: properties over objects full of braces, quotes, backslashes and the
words that a search for text would fall for; each is found again and its signature holds.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local import alipay_sign
from lockstep.alipay.envelope import (
    AnswerUnreadable,
    as_json,
    content_to_sign,
    read_answer,
)
from lockstep.alipay.keys import is_signed

METHOD = "alipay.trade.query"
NAME = "alipay_trade_query_response"
KEY = alipay_sign.new_key()
KEYS = [KEY.public_key()]

# What a reader that searches for text would fall for.
TRAPS = [
    *("{", "}", "[", "]", '"', "\\", "\\\\", "/", "\\/", ",", ":", "},", '},"sign":"'),
    *('"sign":"AAAA"', "sign", NAME, f'"{NAME}":{{', '"}', "\\u0022", "\n", "支付", "\U0001f600"),
]
texts = st.lists(st.sampled_from(TRAPS) | st.text(max_size=3), max_size=6).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=4)


def holds(text, answer):
    return is_signed(text, answer.signature, KEYS)


def as_texts(value):
    """Numbers are read as the text that they were."""
    match value:
        case bool() | None | str():
            return value
        case int():
            return str(value)
        case list():
            return [as_texts(each) for each in value]
        case dict():
            return {name: as_texts(each) for name, each in value.items()}
    raise AssertionError(value)


def is_encodable(value):
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(
    objects.filter(is_encodable),
    objects.filter(is_encodable),
    st.sampled_from([(",", ":"), (", ", ": "), ("\n,\t", " :\r\n")]),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_object_is_found_as_it_was_written(
    fields, others, separators, ascii_only, slash, order
):
    def write(value):
        text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
        return text.replace("/", "\\/") if slash else text

    raw = write(fields)
    members = [(name, write(other)) for name, other in others.items() if name not in {NAME, "sign"}]
    members += [(NAME, raw), ("sign", '"AAAA"')]
    order.shuffle(members)
    body = " { " + " , ".join(f"{write(name)} : {text}" for name, text in members) + " } "
    answer = read_answer(body.encode(), METHOD)
    assert answer.signed == raw.encode()
    assert answer.fields == as_texts(fields)
    assert answer.signature == "AAAA"


@given(objects.filter(is_encodable), st.booleans())
def test_a_genuine_answer_verifies_whatever_it_holds(fields, slashes):
    body = alipay_sign.sign_response(METHOD, fields, KEY, escape_slashes=slashes)
    answer = read_answer(body, METHOD)
    assert holds(answer.signed, answer)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused(body):
    for text in (body, b'{"' + NAME.encode() + b'":{' + body + b'},"sign":"AAAA"}'):
        try:
            answer = read_answer(text, METHOD)
        except AnswerUnreadable:
            continue
        assert answer.signed in text


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_changed_byte_is_refused_or_does_not_verify(at, byte):
    body = alipay_sign.sign_response(METHOD, {"code": "10000", "total_amount": "9.90"}, KEY)
    changed = bytearray(body)
    changed[at % len(body)] = byte
    if changed == body:
        return
    try:
        answer = read_answer(bytes(changed), METHOD)
    except AnswerUnreadable:
        return
    if any(holds(text, answer) for text in answer.signed_texts):
        # A blank around a member, or in the padding of the base64: nothing of what was signed.
        assert answer.fields == {"code": "10000", "total_amount": "9.90"}


@pytest.mark.parametrize(
    "text", ['{"code":"10000","code":"40004"}', '{"a":{"b":1,"b":2}}', '{"a":' * 40_000]
)
def test_an_object_with_two_readings_or_without_an_end_is_refused(text):
    with pytest.raises(AnswerUnreadable):
        read_answer(f'{{"{NAME}":{text},"sign":"AAAA"}}'.encode(), METHOD)


def test_an_error_in_gbk_verifies_although_utf8_was_asked_for():
    # 0x5C and 0x7D, backslash and brace in ASCII, are second bytes of characters in GBK.
    text = "誠\u4e97}支付宝"
    fields = {"code": "40004", "sub_msg": text, "sub_code": "ACQ.X"}
    body = alipay_sign.sign_response(METHOD, fields, KEY, charset="gb18030")
    answer = read_answer(body, METHOD)
    assert answer.text("sub_msg") == text
    assert holds(answer.signed, answer)


@pytest.mark.parametrize("signs_what_it_sends", [True, False])
def test_a_signature_may_be_from_before_the_slashes_were_escaped(signs_what_it_sends):
    fields = {"qr_code": "https://qr.alipay.com/x"}
    body = alipay_sign.sign_response(METHOD, fields, KEY, escape_slashes=signs_what_it_sends)
    if not signs_what_it_sends:
        body = body.replace(b"https://qr.alipay.com/x", rb"https:\/\/qr.alipay.com\/x")
    answer = read_answer(body, METHOD)
    assert answer.text("qr_code") == "https://qr.alipay.com/x"
    held = [holds(text, answer) for text in answer.signed_texts]
    assert held == ([True, False] if signs_what_it_sends else [False, True])


def test_numbers_are_text_and_never_a_float():
    text = '{"a":9.90,"b":1e400,"c":123456789012345678901234567890,"d":-0.0}'
    answer = read_answer(f'{{"{NAME}":{text}}}'.encode(), METHOD)
    assert answer.fields == {
        "a": "9.90",
        "b": "1e400",
        "c": "123456789012345678901234567890",
        "d": "-0.0",
    }


@pytest.mark.parametrize("value", [None, True, False, [], {}, ["x"]])
def test_what_is_no_text_reads_as_absent(value):
    answer = read_answer(json.dumps({NAME: {"a": value}}).encode(), METHOD)
    assert answer.text("a") is None


def test_what_is_signed_is_sorted_whole_and_not_escaped():
    params = {"b": "2&c=3", "a": "é%26", "sign_type": "RSA2", "A": ""}
    assert content_to_sign(params) == "A=&a=é%26&b=2&c=3&sign_type=RSA2".encode()


def test_content_is_compact_json_in_its_own_words():
    assert as_json({"subject": '墨水 "黑"', "total_amount": "9.90"}) == (
        '{"subject":"墨水 \\"黑\\"","total_amount":"9.90"}'
    )


@pytest.mark.parametrize("name", ["null", "true", "[]"])
def test_an_object_with_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(AnswerUnreadable):
        read_answer(f'{{{name}:1,"{NAME}":{{}},"sign":"AAAA"}}'.encode(), METHOD)


def test_an_answer_in_no_known_charset_is_refused():
    with pytest.raises(AnswerUnreadable, match="neither utf-8 nor GBK"):
        read_answer(b'{"a":"\xff"}', METHOD)
