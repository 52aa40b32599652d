"""What the fuzzer calls with any bytes: each target raises where a reader breaks its promise.

A reader refuses by the names that it declares and by nothing else; what it reads it can write and
read again to the same meaning; the order of a form's parameters says nothing; and no signature is
taken for bytes that it was not made for.
"""

import base64
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import quote_from_bytes

from functions import query_orders
from lockstep.api import operator_requests, requests
from lockstep.api.problems import Problem
from lockstep.inventory import catalogue_file
from lockstep.messaging import consumer, contracts
from tests.proof.hostile import channel
from tests.support import http_events
from tests.support.batches import a_record, batch, failed_ids
from tests.support.lambda_context import Context

type Trial = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Target:
    trial: Trial
    seeds: Sequence[bytes]
    """What it begins with, so that the fuzzer need not find out what a form or JSON is."""


# --- messages ------------------------------------------------------------------------------------

_COMMANDS: Final[tuple[Any, ...]] = (
    contracts.ReserveStock,
    contracts.ConfirmStock,
    contracts.ReleaseStock,
    contracts.RefundPayment,
)


def message(sent: bytes) -> None:
    """A body among good ones: carried out or delivered again, and the others carried out."""
    body = sent.decode("utf-8", errors="surrogateescape")
    for model in _COMMANDS:
        read = None
        with suppress(ValueError):
            read = model.read(body)
            assert model.read(read.model_dump_json()) == read
            said, taken = json.loads(body), read.model_dump(exclude_unset=True)
            assert taken == {name: said[name] for name in taken}, "read as something else"
            assert (said["v"], said["type"]) == (1, model.__name__)
        good = _A_MESSAGE[model]
        done: list[object] = []
        records = [
            a_record(name, text, group=name)
            for name, text in (("a", good), ("b", body), ("c", good))
        ]
        reported = consumer.consume(batch(*records), Context(60_000), model, _to(done))
        assert failed_ids(reported) == ([] if read else ["b"])
        assert len(done) == (3 if read else 2)


def _to(done: list[object]) -> Callable[[object], None]:
    return done.append


_A_MESSAGE: Final = {
    model: model.model_validate(
        {"order_id": 1, "reservation_id": "20261024-1", "refund_id": 1}
    ).model_dump_json()
    for model in _COMMANDS
}


# --- a catalogue ---------------------------------------------------------------------------------


def catalogue(sent: bytes) -> None:
    """Any text: rows and named errors, and the rows written out are read as the same rows."""
    rows, errors = catalogue_file.parse(sent.decode("utf-8", errors="surrogateescape"))
    assert all(error.line >= 1 and error.code and error.detail for error in errors)
    assert len({row.sku_id for row in rows}) == len(rows)
    written = io.StringIO(newline="")
    table = csv.writer(written)
    table.writerow(catalogue_file.HEADER)
    for row in rows:
        cells = [row.sku_id, row.title, row.price, row.stock, row.hot, row.on_sale]
        table.writerow(["" if cell is None else str(cell) for cell in cells])
    again, wrong = catalogue_file.parse(written.getvalue())
    assert wrong == []
    assert [_but_its_line(row) for row in again] == [_but_its_line(row) for row in rows]


def _but_its_line(row: catalogue_file.CatalogueRow) -> list[object]:
    return [getattr(row, field.name) for field in fields(row) if field.name != "line"]


# --- requests ------------------------------------------------------------------------------------

_BODIES: Final = (
    requests.PlaceOrderBody,
    requests.StartPaymentBody,
    operator_requests.RefundOrderBody,
    operator_requests.GiveBackBody,
    operator_requests.AttachBody,
)
_OF_A_BODY: Final = {"BODY_UNREADABLE", "BODY_INVALID"}


def body(sent: bytes) -> None:
    """A body is what another reader of JSON takes it for, however it comes, or it is refused."""
    for model in _BODIES:
        read = _read_body(model, {"body": base64.b64encode(sent).decode(), "isBase64Encoded": True})
        if isinstance(read, str):
            assert read in _OF_A_BODY, read
            continue
        said = json.loads(sent)
        assert read.model_dump(exclude_unset=True) == said, "read as something else"
        assert model.model_validate_json(read.model_dump_json()) == read
        assert _read_body(model, {"body": sent.decode(), "isBase64Encoded": False}) == read


def _read_body(model: Any, event: Any) -> Any:
    try:
        return requests.read_body(event, model)
    except Problem as refusal:
        json.dumps(refusal.extra)
        return refusal.code


def address(sent: bytes) -> None:
    """A text as a key, a number, a cursor, a filter, a page and a claim; and in an address, where
    its operation looks at the member first."""
    text = sent.decode("utf-8", errors="surrogateescape")
    for check in (requests.check_key, requests.check_order_no, operator_requests.check_trade_no):
        with suppress(Problem):
            assert check(text) == text
            assert text.isascii()
    with suppress(Problem):
        assert str(requests.check_sku_id(text)) == text
    for name in ("status", "cursor", "limit", "state"):
        event = http_events.get("/orders") | {"queryStringParameters": {name: text}}
        with suppress(Problem):
            asked = requests.read_orders_query(event)
            if asked.before is not None:
                assert _page_of(requests.write_cursor(asked.before)) == asked.before
        event = http_events.request("GET", "/", claims=http_events.as_operator())
        with suppress(Problem):
            operator_requests.read_waiting_query(event | {"queryStringParameters": {name: text}})
    _check_claims(text)
    if text and "/" not in text:
        for path in (f"/orders/requests/{text}", f"/orders/requests/{quote_from_bytes(sent, '')}"):
            event = http_events.get("/", member="nobody") | {"rawPath": path}
            answered = query_orders.handler(event, Context())
            assert answered["statusCode"] == 403, answered


def _page_of(cursor: str | None) -> int | None:
    return requests.read_page({"cursor": cursor or ""})[0]


def _check_claims(text: str) -> None:
    with suppress(Problem):
        member = requests.read_member_id(http_events.get("/", member=text))
        assert str(member) == text
    claims = {"sub": "alice", "scope": text}
    with suppress(Problem):
        operator_requests.read_operator(http_events.request("GET", "/", claims=claims))
        assert operator_requests.SCOPE in text.split()


# --- all of them ---------------------------------------------------------------------------------


_ORDER: Final = {"lines": [{"sku_id": 1001, "quantity": 1}], "note": "n", "expected_amount": "9.90"}
_HEADER: Final = ",".join(catalogue_file.HEADER)

TARGETS: Final[Mapping[str, Target]] = {
    "notice": Target(channel.notice, channel.NOTICES),
    "answer": Target(channel.answer, channel.ANSWERS),
    "bill": Target(channel.a_bill, channel.BILLS),
    "message": Target(message, [text.encode() for text in _A_MESSAGE.values()]),
    "catalogue": Target(
        catalogue,
        [f'{_HEADER}\n1001,Tea,9.90,10,false,true\n1002,"a\n,b",1,,yes,no\n'.encode()],
    ),
    "body": Target(
        body,
        [
            json.dumps(_ORDER).encode(),
            b'{"product":"page"}',
            b'{"reason":"r","amount":"1.00","restock":[{"sku_id":1,"quantity":1}]}',
            b'{"order_no":"O1","reason":"r"}',
        ],
    ),
    "address": Target(
        address,
        [b"k1", b"1001", b"20", b"PAID", base64.b64encode(b"v1:17"), b"42", b"lockstep/ops"],
    ),
}
