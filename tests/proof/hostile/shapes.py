"""Goal: what is large, deep, many, in another charset, or only nearly a name is read right or is
refused by name, and leaves nothing.

Method: enumerated, not drawn: each shape of body to each operation that takes one, as text and as
base64; each byte in a key and beside an order's number; each charset that Python knows; each
malformed message to each queue's function, among good ones. All against the real functions.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from lockstep.alipay.form import BODY_BYTES_MAX
from lockstep.api.requests import KEY as A_KEY
from tests.proof.hostile.charsets import charsets
from tests.proof.hostile.messages import messages
from tests.proof.hostile.shop import MEGABYTE, OPEN, PAID, a_shop, carried, rows_of
from tests.proof.section import Extent, Form, Tally, of_name
from tests.proof.world import World
from tests.support import api, http_events, notices
from tests.support.database import Database
from tests.support.http_events import Event
from tests.support.local_alipay import key_of

type Trial = Callable[[World], object]

# The fixed share is each so-manieth case.
STRIDE: Final = 7


def prove(database: Database, part: str, extent: Extent, tally: Tally) -> None:
    cases = _CASES[part]()
    tally.possible = len(cases)
    step = STRIDE if extent.form is Form.FIXED else 1
    with a_shop(database) as world:
        before = _rows(world)
        for name, trial in list(cases.items())[::step]:
            tally.attempt(name, partial(_hold, trial, world, before))


def replay(database: Database, part: str, case: str) -> None:
    with a_shop(database) as world:
        _hold(of_name(_CASES[part](), case), world, _rows(world))


def _hold(trial: Trial, world: World, before: Mapping[str, Any]) -> None:
    trial(world)
    assert _rows(world) == before, "it left something"


def _rows(world: World) -> Mapping[str, Any]:
    """But for the names by which commands were refused, which are kept."""
    return rows_of(world.database, but="message_refusal")


# --- bodies --------------------------------------------------------------------------------------

BODIES: Final[Mapping[str, bytes]] = {
    "nothing": b"",
    "1 MB of blanks": b" " * MEGABYTE,
    "1 MB of a string": b'{"note":"' + b"n" * MEGABYTE + b'"}',
    "1 MB of a name": b'{"' + b"n" * MEGABYTE + b'":1}',
    "1 MB of digits": b'{"lines":' + b"9" * MEGABYTE + b"}",
    "120 KB of digits": b'{"lines":' + b"9" * 120_000 + b"}",
    "120 KB of a fraction": b'{"lines":0.' + b"9" * 120_000 + b"}",
    "a huge exponent": b'{"lines":1e999999999}',
    "120 KB of brackets": b"[" * 120_000,
    "120 KB of lists": b"[" * 60_000 + b"]" * 60_000,
    "objects in objects": b'{"lines":' * 12_000 + b"1" + b"}" * 12_000,
    "1 MB of lines": b'{"lines":[' + b'{"sku_id":1001,"quantity":1},' * 36_000 + b"1]}",
    "4000 lines": b'{"lines":[' + b'{"sku_id":1001,"quantity":1},' * 4_000 + b"1]}",
    "2000 names": json.dumps({f"n{n}": n for n in range(2_000)}).encode(),
    "one name 2000 times": b"{" + b'"note":"a",' * 2_000 + b'"note":"a"}',
    "NUL": b"\x00",
    "a name with NUL": b'{"li\\u0000nes":1}',
    "half a surrogate pair": b'{"note":"\\ud800"}',
    "a surrogate as bytes": b'{"note":"\xed\xa0\x80"}',
    "an overlong encoding": b'{"note":"\xc0\xaf"}',
    "a byte alone": b'{"note":"\xff"}',
    "a form": b"lines=1&note=2",
    "a boundary": b"--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--",
    "XML": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
}
_TAKES_A_BODY: Final[Mapping[str, Callable[[], Event]]] = {
    "createOrder": lambda: http_events.post_order(key="k-hostile"),
    "startPayment": lambda: http_events.post_payment(OPEN),
    "refundOrder": lambda: http_events.refund_order(PAID),
    "giveMoneyBack": lambda: http_events.give_back("T1"),
    "attachPayment": lambda: http_events.attach("T1", OPEN),
}


def _bodies() -> dict[str, Trial]:
    return {
        f"{operation}, {shape}, {'base64' if is_base64 else 'text'}": partial(
            _refuse_body, make, body, is_base64
        )
        for operation, make in _TAKES_A_BODY.items()
        for shape, body in BODIES.items()
        for is_base64 in (False, True)
    }


def _refuse_body(make: Callable[[], Event], body: bytes, is_base64: bool, _: World) -> None:
    """`ask` holds the answer against the document."""
    answer = api.ask(make() | carried(body, is_base64))
    assert answer.code in {"BODY_UNREADABLE", "BODY_INVALID"}, answer
    assert len(answer.text) < 10_000 + 2 * len(max(body.split(b'"'), key=len)), "a long answer"


# --- names ---------------------------------------------------------------------------------------


def _names() -> dict[str, Trial]:
    """Each byte, as the API resolves the address and as it does not."""
    found: dict[str, Trial] = {"a key of 1 MB": partial(_try_key, "k" * MEGABYTE)}
    for number in range(256):
        found[f"key, {number:02x}"] = partial(_try_key, f"k{chr(number)}k")
        if chr(number) != "/":
            for place, text in (("behind", OPEN + chr(number)), ("before", chr(number) + OPEN)):
                found[f"order, {number:02x} {place}"] = partial(_try_number, text)
    for text in (
        OPEN.lower(),
        f"{OPEN}%00",
        f"{OPEN};x",
        "..",
        "%2e%2e",
        "*",
        "%",
        f"%4fPEN1{'x' * 40}",
    ):
        found[f"order, {text}"] = partial(_try_number, text)
    return found


def _try_key(key: str, _: World) -> None:
    placed = api.ask(http_events.post_order("no JSON", key=key))
    is_good = bool(A_KEY.fullmatch(key)) and key.isascii()
    assert placed.code == ("BODY_UNREADABLE" if is_good else "IDEMPOTENCY_KEY_INVALID"), placed
    if "/" not in key:
        for text in (key, quote(key, safe="")):
            probed = api.ask(http_events.get(f"/orders/requests/{text}"))
            assert probed.code == (None if is_good else "IDEMPOTENCY_KEY_INVALID"), probed


def _try_number(text: str, _: World) -> None:
    for path in {text, quote(text, safe="")}:
        for event in (
            http_events.get(f"/orders/{path}"),
            http_events.cancel_order(path),
            http_events.post_payment(path),
            http_events.refund_order(path),
        ):
            answer = api.ask(event)
            assert answer.code == "ORDER_NOT_FOUND", answer


# --- forms ---------------------------------------------------------------------------------------


def _forms() -> dict[str, Trial]:
    """Signed in earnest, and sent to the function."""
    tried: dict[str, dict[str, str | None]] = {
        "1 MB": {"body": "x" * MEGABYTE},
        "2000 fields": {f"p{n}": "" for n in range(2_000)},
        "101 fields": {f"p{n}": "" for n in range(101)},
        "64 KB": {"body": "x" * BODY_BYTES_MAX},
        **{f"an amount of {n} digits": {"total_amount": "9" * n} for n in (10, 400, 60_000)},
        "an app of 60 KB": {"app_id": "2" * 60_000},
    }
    return {
        f"{name}, {'base64' if is_base64 else 'text'}": partial(_refuse_form, changes, is_base64)
        for name, changes in tried.items()
        for is_base64 in (False, True)
    }


def _refuse_form(changes: Mapping[str, str | None], is_base64: bool, _: World) -> None:
    body = notices.NoticeSigner(key_of("alipay")).body(**changes)
    answer = notices.answer(notices.http_event(body, is_base64=is_base64))
    assert answer == notices.FAILURE


_CASES: Final[Mapping[str, Callable[[], dict[str, Trial]]]] = {
    "shapes-bodies": _bodies,
    "shapes-names": _names,
    "shapes-charsets": charsets,
    "shapes-forms": _forms,
    "shapes-messages": messages,
}
PARTS: Final = tuple(_CASES)
