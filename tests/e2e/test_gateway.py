"""Who is let through to the functions, decided by the deployed authorizer and routes."""

import urllib.error
import urllib.request

import pytest

from infra.local import tokens
from infra.local.paths import TEST_HOME


def status_of(deployed, method, path, token=None, body=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(
        deployed["api_url"] + path, data=body, headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_members_token_is_let_through(deployed):
    token = tokens.mint(TEST_HOME, "42")
    assert status_of(deployed, "GET", "/stock/1001", token) == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": 1},
        {"iss": "https://somebody.example"},
        {"aud": "another-system"},
    ],
)
def test_a_token_that_is_late_or_of_somebody_else_is_not(deployed, wrong):
    token = tokens.mint(TEST_HOME, "42", claims=wrong)
    assert status_of(deployed, "GET", "/stock/1001", token) == 401


def test_a_changed_token_is_not(deployed):
    header, body, signature = tokens.mint(TEST_HOME, "42").split(".")
    forged = ".".join([header, body[:-4] + "AAAA", signature])
    assert status_of(deployed, "GET", "/stock/1001", forged) == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/orders"),
        ("GET", "/orders"),
        ("GET", "/orders/20260101"),
        ("GET", "/orders/requests/key"),
        ("POST", "/orders/20260101/cancel"),
        ("POST", "/orders/20260101/payments"),
        ("GET", "/stock/1001"),
    ],
)
def test_without_a_token_every_members_route_is_closed(deployed, method, path):
    assert status_of(deployed, method, path) == 401


OPERATORS = [
    ("GET", "/ops/payments"),
    ("POST", "/ops/orders/20260101/refunds"),
    ("POST", "/ops/payments/T1/refund"),
    ("POST", "/ops/payments/T1/attach"),
]


@pytest.mark.parametrize(("method", "path"), OPERATORS)
def test_an_operators_route_is_closed_to_whoever_has_no_scope(deployed, method, path):
    body = b'{"reason":"x"}' if method == "POST" else None
    assert status_of(deployed, method, path, body=body) == 401
    member = tokens.mint(TEST_HOME, "42")
    assert status_of(deployed, method, path, member, body) == 403
    other = tokens.mint(TEST_HOME, "alice", scope="lockstep/reports")
    assert status_of(deployed, method, path, other, body) == 403


def test_an_operator_is_let_through(deployed):
    operator = tokens.mint(TEST_HOME, "alice", scope=tokens.OPERATOR_SCOPE)
    assert status_of(deployed, "GET", "/ops/payments", operator) == 200
    # Through to the function, which knows no such trade.
    path = "/ops/payments/T-nobody/refund"
    assert status_of(deployed, "POST", path, operator, b'{"reason":"x"}') == 404


def test_a_notice_needs_no_token(deployed):
    assert status_of(deployed, "POST", "/alipay/notify", body=b"out_trade_no=1") == 200
