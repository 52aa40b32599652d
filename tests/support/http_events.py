"""Requests as the HTTP API hands them to a function (payload 2.0), and answers as it reads them."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote, urlencode

from aws_lambda_powertools.utilities.typing import LambdaContext

from tests.support.lambda_context import Context

type Event = dict[str, Any]
type Handler = Callable[[Event, LambdaContext], Mapping[str, Any]]

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"


class _Missing(Enum):
    """A value with a name: test ids must be the same in every worker."""

    MISSING = "missing"


MISSING = _Missing.MISSING


@dataclass(frozen=True)
class Answer:
    """What the caller gets. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)

    @property
    def content_type(self) -> str:
        return self.headers["content-type"]

    @property
    def code(self) -> str | None:
        """The code of a problem document, None on any other answer."""
        return self.document["code"] if self.content_type == PROBLEM_JSON else None


def send(handler: Handler, event: Event) -> Answer:
    answer = handler(event, Context())
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    assert answer["isBase64Encoded"] is False
    return Answer(answer["statusCode"], headers, answer["body"])


def request(
    method: str,
    path: str,
    *,
    member: object = 42,
    claims: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
) -> Event:
    """A request of ``member``; ``claims`` replaces the token's claims. ``body`` as bytes comes as
    base64, as the API sends what it does not take for text. ``path`` is not encoded."""
    event: Event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "headers": {"accept": "*/*", "host": "api.example.com"} | dict(headers or {}),
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "api",
            "authorizer": {
                "jwt": {
                    "claims": {"sub": str(member)} if claims is None else dict(claims),
                    "scopes": None,
                }
            },
            "domainName": "api.example.com",
            "domainPrefix": "api",
            "http": {
                "method": method,
                "path": quote(path, errors="surrogatepass"),
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "tests",
            },
            "requestId": "request-1",
            "routeKey": "$default",
            "stage": "$default",
            "time": "24/Oct/2026:02:00:05 +0000",
            "timeEpoch": 1792807205000,
        },
        "isBase64Encoded": isinstance(body, bytes),
    }
    if query:
        event["queryStringParameters"] = dict(query)
    if body is not None:
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return event


def an_order_body(**changes: object) -> dict[str, object]:
    """One of SKU 1001; ``changes`` replace or add members of the body, MISSING drops them."""
    body = {"lines": [{"sku_id": 1001, "quantity": 1}]} | changes
    return {name: value for name, value in body.items() if value is not MISSING}


def post_order(
    body: object = None, *, member: object = 42, key: object = "k1", in_base64: bool = False
) -> Event:
    """POST /orders. ``body``: text or bytes go as they are, anything else as JSON; the default is
    a good one. ``key`` MISSING sends no header."""
    sent = an_order_body() if body is None else body
    text = sent if isinstance(sent, str | bytes) else json.dumps(sent)
    if in_base64 and isinstance(text, str):
        text = text.encode("utf-8", errors="surrogatepass")
    headers = {} if key is MISSING else {"idempotency-key": str(key)}
    return request("POST", "/orders", member=member, headers=headers, body=text)


def cancel_order(order_no: str, *, member: object = 42) -> Event:
    return request("POST", f"/orders/{order_no}/cancel", member=member)


def post_payment(order_no: str, body: object = None, *, member: object = 42) -> Event:
    """POST /orders/{order_no}/payments. ``body``: text or bytes go as they are, anything else as
    JSON; the default asks for a page."""
    sent = {"product": "page"} if body is None else body
    text = sent if isinstance(sent, str | bytes) else json.dumps(sent)
    return request("POST", f"/orders/{order_no}/payments", member=member, body=text)


def as_operator(name: str = "alice", scope: str = "lockstep/ops") -> dict[str, str]:
    """The claims of an operator's token."""
    return {"sub": name, "scope": scope}


def refund_order(
    order_no: str,
    body: object = None,
    *,
    key: str = "k1",
    claims: Mapping[str, object] | None = None,
) -> Event:
    """POST /ops/orders/{order_no}/refunds; the default asks for all that is left."""
    sent = {"reason": "broken"} if body is None else body
    return request(
        "POST",
        f"/ops/orders/{order_no}/refunds",
        claims=as_operator() if claims is None else claims,
        headers={"idempotency-key": key},
        body=sent if isinstance(sent, str) else json.dumps(sent),
    )


def attach(trade_no: str, order_no: str, reason: str = "it is hers") -> Event:
    body = json.dumps({"order_no": order_no, "reason": reason})
    path = f"/ops/payments/{trade_no}/attach"
    return request("POST", path, claims=as_operator(), body=body)


def give_back(
    trade_no: str, reason: str = "nobody claims it", *, key: str = "k1", **body_fields: Any
) -> Event:
    body = json.dumps({"reason": reason, **body_fields})
    path = f"/ops/payments/{trade_no}/refund"
    headers = {"idempotency-key": key} if key else {}
    return request("POST", path, claims=as_operator(), headers=headers, body=body)


def get(path: str, *, member: object = 42, **query: str) -> Event:
    return request("GET", path, member=member, query=query)
