"""Who asks, and under which key: refused by name before anything else is looked at.

No database is configured here, so a refusal also proves that none was asked.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep import settings
from lockstep.api.requests import check_key, read_place_order
from tests.support.api import ask
from tests.support.http_events import MISSING, get, post_order, request
from tests.support.reading import full_width

KEY_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"

BAD_KEYS = {
    "absent": MISSING,
    "empty": "",
    "65 characters": "k" * 65,
    "a space inside": "k 1",
    "a trailing space": "k1 ",  # C13: a padding collation would take it for k1
    "a leading space": " k1",
    "a trailing newline": "k1\n",
    "a tab": "k\t1",
    "NUL": "k\x001",
    "DEL": "k1\x7f",
    "a letter beyond ASCII": "ké1",
    "full-width digits": "k" + full_width("1"),
    "Arabic digits": "k\u0661",
    "an emoji": "k🔑",
    "the header given twice": "k1,k1",
    "a slash": "a/b",
    "an underscore is fine, a plus is not": "a_b+c",
    "a percent escape, which headers do not have": "k%31",
    "quotes, as the IETF draft has it": '"k1"',
}

BAD_MEMBERS = {
    "zero": "0",
    "negative": "-1",
    "a word": "abc",
    "leading zeros": "007",
    "19 digits": "1" * 19,
    "empty": "",
    "a space": " 42",
    "a trailing newline": "42\n",
    "a fraction": "42.0",
    "an exponent": "4e1",
    "full-width digits": full_width("42"),
    "two of them": "42,43",
    "a list": "[42]",
}

# Each wrong in other ways too: who asks is looked at first.
MEMBER_ROUTES = [
    ("POST", "/orders"),
    ("GET", "/orders"),
    ("GET", "/orders/%"),
    ("GET", "/orders/requests/%"),
    ("POST", "/orders/%/cancel"),
]


@pytest.fixture
def claim(monkeypatch):
    """Name another claim than `sub`."""

    def use(name: str) -> None:
        monkeypatch.setenv("MEMBER_ID_CLAIM", name)
        settings.member_id_claim.cache_clear()

    yield use
    monkeypatch.undo()
    settings.member_id_claim.cache_clear()


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_bad_key_is_refused_by_name(key):
    answer = ask(post_order(key=key))
    assert (answer.status, answer.code) == (400, "IDEMPOTENCY_KEY_INVALID")


@pytest.mark.parametrize("key", ["k", "k" * 64, KEY_CHARACTERS[:64], KEY_CHARACTERS[-64:], ".:-_"])
def test_a_good_key_is_taken_as_it_is(key):
    assert read_place_order(post_order(key=key)).idempotency_key == key


@given(st.text(max_size=70))
def test_a_key_passes_only_if_each_of_its_characters_may(key):
    good = 1 <= len(key) <= 64 and set(key) <= set(KEY_CHARACTERS)
    answer = ask(post_order("not JSON", key=key))
    assert answer.code == ("BODY_UNREADABLE" if good else "IDEMPOTENCY_KEY_INVALID")


@pytest.mark.parametrize("key", ["k" * 65, "k 1", "k1 ", "ké", "k%25", "k+1"])
def test_a_bad_key_in_the_address_is_refused_by_the_same_name(key):
    answer = ask(get(f"/orders/requests/{key}"))
    assert (answer.status, answer.code) == (400, "IDEMPOTENCY_KEY_INVALID")


def test_keys_differ_by_case():
    assert check_key("Abc") != check_key("abc")


@pytest.mark.parametrize(("method", "path"), MEMBER_ROUTES)
@pytest.mark.parametrize("member", BAD_MEMBERS.values(), ids=BAD_MEMBERS)
def test_a_token_that_names_no_member_is_refused_first(method, path, member):
    answer = ask(request(method, path, member=member))
    assert (answer.status, answer.code) == (403, "MEMBER_ID_INVALID")


@pytest.mark.parametrize(("method", "path"), MEMBER_ROUTES)
def test_a_token_without_the_claim_is_refused(method, path):
    answer = ask(request(method, path, claims={"iss": "https://issuer.example.com", "uid": "42"}))
    assert (answer.status, answer.code) == (403, "MEMBER_ID_INVALID")


@pytest.mark.parametrize("member", ["1", "42", "9" * 18])
def test_the_member_is_the_one_of_the_token(member):
    assert read_place_order(post_order(member=member)).member_id == int(member)


def test_the_claim_that_names_the_member_is_a_setting(claim):
    claim("uid")
    event = post_order()
    event["requestContext"]["authorizer"]["jwt"]["claims"] = {"sub": "alice", "uid": "7"}
    assert read_place_order(event).member_id == 7
    event["requestContext"]["authorizer"]["jwt"]["claims"] = {"sub": "7"}
    answer = ask(event)
    assert (answer.status, answer.code) == (403, "MEMBER_ID_INVALID")
