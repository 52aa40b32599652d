"""The recipe for tokens signed with a shared secret: one test for each way to be wrong."""

import base64
import hashlib
import hmac
import json
import time

import boto3
import pytest
from moto import mock_aws

from infra.recipes.symmetric_tokens import authorizer
from lockstep.api.requests import read_member_id

SECRET = "c2hhcmVkIHNlY3JldA=="  # base64 of "shared secret"


@pytest.fixture(autouse=True)
def _configured(monkeypatch):
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        client = boto3.client("secretsmanager")
        arn = client.create_secret(Name="token", SecretString=SECRET)["ARN"]
        monkeypatch.setenv("TOKEN_SECRET_ARN", arn)
        authorizer._secret.cache_clear()
        yield
        authorizer._secret.cache_clear()


def encoded(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


AS_TEXT = SECRET.encode()


def token(secret=AS_TEXT, head=None, digest=hashlib.sha256, **claims):
    claims = {"sub": "42", "exp": time.time() + 60} | claims
    signed = f"{encoded({'alg': 'HS256'} if head is None else head)}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.new(secret, signed.encode(), digest).digest())}"


def ask(header):
    return authorizer.handler({"headers": {"authorization": header}}, None)


def test_a_good_token_is_let_through_with_its_claims():
    answer = ask(f"Bearer {token(member_id=7, admin=True, roles=['a'])}")
    assert answer["isAuthorized"] is True
    assert answer["context"] == {"sub": "42", "member_id": "7"}


def test_the_functions_find_the_member_in_what_it_hands_on():
    context = ask(f"Bearer {token()}")["context"]
    assert read_member_id({"requestContext": {"authorizer": {"lambda": context}}}) == 42


WRONG = {
    "no header": lambda: "",
    "no token": lambda: "Bearer",
    "no base64": lambda: "Bearer not.a.token",
    "two parts": lambda: "Bearer a.b",
    "another scheme": lambda: f"Basic {token()}",
    "another secret": lambda: f"Bearer {token(secret=b'another')}",
    "expired": lambda: f"Bearer {token(exp=time.time() - 60)}",
    "no expiry": lambda: f"Bearer {token(exp=None)}",
    "an expiry in words": lambda: f"Bearer {token(exp='tomorrow')}",
    "not yet": lambda: f"Bearer {token(nbf=time.time() + 600)}",
    "no algorithm": lambda: f"Bearer {token(head={'alg': 'none'})}",
    "another one": lambda: f"Bearer {token(head={'alg': 'HS512'}, digest=hashlib.sha512)}",
    "no header object": lambda: f"Bearer {token(head=[])}",
    "no signature": lambda: f"Bearer {token().rpartition('.')[0]}.",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_anything_else_is_refused(wrong):
    assert ask(WRONG[wrong]()) == authorizer.REFUSED


def test_a_changed_claim_breaks_the_signature():
    head, _, signature = token().split(".")
    body = encoded({"sub": "43", "exp": time.time() + 60})
    assert ask(f"Bearer {head}.{body}.{signature}") == authorizer.REFUSED


def test_the_secret_may_be_base64_and_the_algorithm_another(monkeypatch):
    monkeypatch.setenv("TOKEN_SECRET_FORM", "base64")
    monkeypatch.setenv("TOKEN_ALGORITHM", "HS512")
    good = token(secret=b"shared secret", head={"alg": "HS512"}, digest=hashlib.sha512)
    assert ask(f"Bearer {good}")["isAuthorized"] is True
    assert ask(f"Bearer {token(secret=b'shared secret')}") == authorizer.REFUSED


@pytest.mark.parametrize(("aud", "passes"), [("shop", True), (["x", "shop"], True), ("x", False)])
def test_an_audience_that_is_wanted_must_be_named(monkeypatch, aud, passes):
    monkeypatch.setenv("TOKEN_AUDIENCE", "shop")
    assert ask(f"Bearer {token(aud=aud)}")["isAuthorized"] is passes
    assert ask(f"Bearer {token()}")["isAuthorized"] is False
