"""The HTTP API in front of the real functions, as a session of `requests`: whatever speaks HTTP by
one of those reaches them in process, through events of payload 2.0.

The authorizer is taken to have let the caller through: each route gets the claims that its own
callers have. What no route of the document matches is the API's to answer.
"""

import base64
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import requests
from requests.adapters import BaseAdapter
from urllib3 import HTTPHeaderDict, HTTPResponse

from functions import alipay_notify
from tests.support import api, http_events
from tests.support.http_events import Answer, Event, Handler

ADDRESS: Final = "https://api.example.com"
NOTIFY: Final = "post /alipay/notify"
HANDLERS: Final[Mapping[str, Handler]] = {NOTIFY: alipay_notify.handler, **api.HANDLERS}

# What the HTTP API hands on as text. All else comes as base64.
_TEXT: Final = re.compile(r"text/.*|application/(json|javascript|xml|.*\+json|.*\+xml)")


class Unrouted(Exception):
    """The API has no route for it and answers 404 itself."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way. ``is_decoded``: the API resolves the escapes of the address before it
    tells the function; emulators of it do not."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None
    is_decoded: bool = True

    @classmethod
    def of(cls, request: requests.PreparedRequest, *, is_decoded: bool = True) -> "Call":
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        body = request.body
        sent = body.encode("utf-8", errors="surrogatepass") if isinstance(body, str) else body
        assert sent is None or isinstance(sent, bytes)
        return cls(str(request.method), str(request.path_url), headers, sent, is_decoded)

    @property
    def route(self) -> str:
        """`post /orders`, as the document has it. Raises Unrouted."""
        called = f"{self.method.lower()} {urlsplit(self.target).path}"
        for route in HANDLERS:
            if _pattern(route).fullmatch(called):
                return route
        raise Unrouted(called)

    def event(self, claims: Mapping[str, object]) -> Event:
        address = urlsplit(self.target)
        event = http_events.request(
            self.method,
            unquote(address.path) if self.is_decoded else address.path,
            claims=claims,
            headers=self.headers,
        )
        event["rawQueryString"] = address.query
        if query := _joined(parse_qsl(address.query, keep_blank_values=True)):
            event["queryStringParameters"] = query
        return event | _carried(self.body, self.headers.get("content-type", ""))

    def send(self) -> Answer:
        """To the function of its route. Raises Unrouted, and whatever the function raises."""
        route = self.route
        is_operators = route.partition(" ")[2].startswith("/ops/")
        claims = http_events.as_operator() if is_operators else {"sub": "42"}
        return http_events.send(HANDLERS[route], self.event(claims))


class HttpApi(BaseAdapter):
    """``answered`` keeps what came."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[tuple[Call, Answer]] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        call = Call.of(request)
        answer = call.send()
        self.answered.append((call, answer))
        return responded(request, answer)

    def close(self) -> None:
        """Nothing is open."""

    def session(self) -> requests.Session:
        session = requests.Session()
        session.mount(ADDRESS, self)
        return session


@cache
def _pattern(route: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+}", "[^/]+", route))


def _joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """One value for each name: the API puts commas between those of a name that comes again."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _carried(body: bytes | None, content_type: str) -> Event:
    if not body:
        return {}
    if _TEXT.fullmatch(content_type.partition(";")[0].strip().lower()):
        try:
            return {"body": body.decode("utf-8"), "isBase64Encoded": False}
        except UnicodeDecodeError:
            pass
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def responded(request: requests.PreparedRequest, answer: Answer) -> requests.Response:
    """The answer as who sent ``request`` gets it."""
    body, headers = answer.text.encode(), dict(answer.headers)
    response = requests.Response()
    response.status_code = answer.status
    response.reason = HTTPStatus(answer.status).phrase
    response.headers.update(headers)
    response.raw = HTTPResponse(
        io.BytesIO(body), HTTPHeaderDict(headers), answer.status, preload_content=False
    )
    response.request = request
    response.url = str(request.url)
    return response
