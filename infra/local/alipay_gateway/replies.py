"""What goes back over HTTP."""

import json
from dataclasses import dataclass

HTML = "text/html;charset=utf-8"
JSON = "application/json;charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes = b""
    content_type: str = HTML
    location: str | None = None


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status, location=location)


def as_json(status: int, document: object) -> Reply:
    return Reply(status, json.dumps(document, ensure_ascii=False).encode(), JSON)
