"""A buyer at the cashier, without a browser: follows a pay link, and sends a form of the page."""

import urllib.error
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import override
from urllib.parse import urlencode, urljoin

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Form:
    address: str
    fields: dict[str, str]


@dataclass(frozen=True)
class Page:
    """``status`` and ``text`` as they came; ``forms`` by their id."""

    status: int
    text: str
    forms: dict[str, Form]

    def press(self, button: str, **typed: str) -> "Page":
        """Send the button's form with what was typed in; the page that follows. One that stayed
        open while things went on still has its buttons."""
        form = self.forms[button]
        return _load(form.address, urlencode(form.fields | typed).encode())


def follow(pay_url: str) -> Page:
    """Open a pay link; English, as nobody asks for Chinese."""
    return _load(pay_url, None)


def _load(url: str, body: bytes | None) -> Page:
    request = urllib.request.Request(url, body)  # noqa: S310 - loopback
    try:
        reply = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as refusal:
        reply = refusal
    with reply:
        text = reply.read().decode()
        forms = _Forms(reply.url)
    forms.feed(text)
    return Page(reply.status, text, forms.found)


class _Forms(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self._open: Form | None = None
        self.found: dict[str, Form] = {}

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(urljoin(self._base, said.get("action", "")), {})
            self.found[said.get("id", "")] = self._open
        elif tag == "input" and self._open is not None:
            self._open.fields[said.get("name", "")] = said.get("value", "")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
