"""What goes to the gateway and comes back, as text: parameters and their signature there, one JSON
object and its signature here. Pure: no clock, no network, no key.

A signature stands for bytes, so an answer is verified over the very bytes that came: writing the
object anew would lose blanks and `\\/`. Where it begins and ends is for a JSON reader to say: a
brace, a quote or the word "sign" may stand in any string.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

type Fields = Mapping[str, Any]

CHARSET: Final = "utf-8"
# RSASSA-PKCS1-v1_5 over SHA-256. Nothing else is asked for or taken.
SIGN_TYPE: Final = "RSA2"

_BLANK: Final = re.compile(r"[ \t\r\n]*")


class AnswerUnreadable(ValueError):
    """Not an answer to the call that was made."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Not to be believed before ``signature`` is found to be Alipay's, over ``signed``."""

    fields: Fields
    signed: bytes
    signature: str

    def text(self, name: str) -> str | None:
        """A field that is a text or a number, as text; None: absent or blank."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None

    @property
    def signed_texts(self) -> tuple[bytes, bytes]:
        """As it came and, where it writes `/` as `\\/`, as it was signed: before that was done to
        it. Alipay's own clients try both."""
        return self.signed, self.signed.replace(b"\\/", b"/")

    @property
    def code(self) -> str:
        return self.text("code") or ""

    @property
    def sub_code(self) -> str:
        return self.text("sub_code") or ""


def content_to_sign(params: Mapping[str, str]) -> bytes:
    """Every parameter of a request but sign itself, sign_type included, sorted and not escaped."""
    return "&".join(f"{name}={params[name]}" for name in sorted(params)).encode(CHARSET)


def as_json(content: Mapping[str, str]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def read_answer(body: bytes, method: str) -> Answer:
    """Find the object that answers ``method`` and what it was signed with, as the bytes that came.

    Numbers stay text: no amount ever is a float. Raises AnswerUnreadable, also for the gateway's
    `error_response`, which answers no call.
    """
    text, charset = _decoded(body)
    try:
        members = _members(text)
    except (ValueError, RecursionError) as error:  # RecursionError: a thousand brackets
        raise AnswerUnreadable(f"not JSON: {type(error).__name__}") from None
    name = f"{method.replace('.', '_')}_response"
    if name not in members:
        error_code = _error_code(members)
        raise AnswerUnreadable(f"no {name}" + (f", {error_code}" if error_code else ""))
    fields, raw = members[name]
    if not isinstance(fields, dict):
        raise AnswerUnreadable(f"{name} is not an object")
    signature, _ = members.get("sign", (None, ""))
    return Answer(fields, raw.encode(charset), signature if isinstance(signature, str) else "")


def _decoded(body: bytes) -> tuple[str, str]:
    """The text, and the charset that turns it back into the same bytes: errors may come in GBK,
    though utf-8 was asked for."""
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        try:
            return body.decode("gb18030"), "gb18030"
        except UnicodeDecodeError:
            raise AnswerUnreadable("neither utf-8 nor GBK") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=_refused
)


def _members(text: str) -> dict[str, tuple[Any, str]]:
    """Name, value and the value's own text of each member of the outermost object, none twice."""
    members: dict[str, tuple[Any, str]] = {}
    at = _after(text, 0, "{")
    while True:
        name, at = _READER.raw_decode(text, at)
        if not isinstance(name, str) or name in members:
            raise ValueError("not a name of its own")
        start = _after(text, at, ":")
        value, at = _READER.raw_decode(text, start)
        members[name] = (value, text[start:at])
        at = _skipped(text, at)
        if text[at : at + 1] != ",":
            break
        at = _skipped(text, at + 1)
    if _after(text, at, "}") != len(text):
        raise ValueError("something stands behind the object")
    return members


def _after(text: str, at: int, mark: str) -> int:
    """Past ``mark``, which must come next, and the blanks around it."""
    at = _skipped(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark}")
    return _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _error_code(members: Mapping[str, tuple[Any, str]]) -> str:
    """What the gateway says where it answers no call, for the log."""
    error, _ = members.get("error_response", ({}, ""))
    found = error.get("sub_code") or error.get("code") if isinstance(error, dict) else ""
    return found[:80] if isinstance(found, str) else ""
