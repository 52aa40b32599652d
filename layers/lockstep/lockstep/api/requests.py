"""What members may send. Everything is checked before any of it is used; nothing is coerced.

Powertools' own validation is not used: it reads bodies by their Content-Type, in which a retrying
client may err, and turns a form or a broken encoding into a server error.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lockstep import fingerprint, settings
from lockstep.api.problems import Problem
from lockstep.money import parse_yuan
from lockstep.orders.model import OrderStatus, PlaceOrder
from lockstep.payments.model import Product, StartPayment

QUANTITY_MAX: Final = 1_000_000
# The largest integer that every JSON reader keeps exact.
SKU_ID_MAX: Final = 2**53 - 1
# A hundred lines and a note take some 10 KB.
BODY_BYTES_MAX: Final = 128 * 1024
ERRORS_MAX: Final = 20

KEY: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)
_MEMBER_ID: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
ORDER_NO: Final = re.compile(r"[A-Za-z0-9]{1,32}", re.ASCII)
_SKU_ID: Final = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
_LIMIT: Final = re.compile(r"[1-9][0-9]?|100", re.ASCII)
_CURSOR: Final = re.compile(r"v1:([1-9][0-9]{0,17})", re.ASCII)

type Event = Mapping[str, Any]


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class OrderLineBody(Body):
    sku_id: Annotated[int, Field(ge=1, le=SKU_ID_MAX)]
    quantity: Annotated[int, Field(ge=1, le=QUANTITY_MAX)]


class PlaceOrderBody(Body):
    """The body of POST /orders."""

    lines: Annotated[list[OrderLineBody], Field(min_length=1, max_length=100)]
    expected_amount: Annotated[str, Field(pattern=r"^[0-9]{1,16}(\.[0-9]{1,2})?$")] | None = None
    note: Annotated[str, Field(max_length=200)] | None = None


class StartPaymentBody(Body):
    """The body of POST /orders/{order_no}/payments."""

    product: Product


@dataclass(frozen=True, slots=True)
class OrdersQuery:
    """The query of GET /orders. ``before`` is an order's internal id."""

    status: OrderStatus | None
    before: int | None
    limit: int


def read_place_order(event: Event) -> PlaceOrder:
    """POST /orders as a command. Raises Problem: the member, then the key, then the body."""
    member_id = read_member_id(event)
    key = check_key(event.get("headers", {}).get("idempotency-key", ""))
    body = read_body(event, PlaceOrderBody)
    lines = fingerprint.merge_lines((line.sku_id, line.quantity) for line in body.lines)
    too_many = [sku_id for sku_id, quantity in lines.items() if quantity > QUANTITY_MAX]
    if too_many:
        raise _invalid(
            [_error(["lines"], "less_than_equal", f"SKU {i}: too many in all") for i in too_many]
        )
    expected = None if body.expected_amount is None else parse_yuan(body.expected_amount)
    return PlaceOrder(member_id, key, lines, body.note, expected)


def read_start_payment(event: Event, order_no: str) -> StartPayment:
    """The command of POST /orders/{order_no}/payments. Raises Problem."""
    member_id = read_member_id(event)
    number = check_order_no(order_no)
    body = read_body(event, StartPaymentBody)
    notify_url = settings.alipay_notify_url() or f"{_our_address(event)}/alipay/notify"
    return StartPayment(member_id, number, body.product, notify_url)


def _our_address(event: Event) -> str:
    """Where this request came to: a function cannot be told the address of its own API, which
    refers to it."""
    asked = event["requestContext"]
    stage = "" if asked["stage"] == "$default" else f"/{asked['stage']}"
    return f"https://{asked['domainName']}{stage}"


def read_member_id(event: Event) -> int:
    """The member that the verified token names. Raises Problem MEMBER_ID_INVALID."""
    claim = str(read_claims(event).get(settings.member_id_claim(), ""))
    if not _MEMBER_ID.fullmatch(claim):
        raise Problem("MEMBER_ID_INVALID")
    return int(claim)


def read_claims(event: Event) -> Mapping[str, object]:
    """What the verified token says."""
    authorizer = event["requestContext"]["authorizer"]
    # A Lambda authorizer's context, where one stands in (infra/recipes/symmetric_tokens).
    found = authorizer["lambda"] if "lambda" in authorizer else authorizer["jwt"]["claims"]
    claims: Mapping[str, object] = found
    return claims


def check_key(text: str) -> str:
    """``text``, if it is an idempotency key. Raises Problem IDEMPOTENCY_KEY_INVALID."""
    if not KEY.fullmatch(text):
        raise Problem("IDEMPOTENCY_KEY_INVALID")
    return text


def check_order_no(text: str) -> str:
    """``text``, if it can be an order number. Raises Problem ORDER_NOT_FOUND."""
    if not ORDER_NO.fullmatch(text):
        raise Problem("ORDER_NOT_FOUND")
    return text


def check_sku_id(text: str) -> int:
    """``text`` as a sku_id. Raises Problem SKU_NOT_FOUND."""
    if not _SKU_ID.fullmatch(text) or int(text) > SKU_ID_MAX:
        raise Problem("SKU_NOT_FOUND")
    return int(text)


def read_orders_query(event: Event) -> OrdersQuery:
    """The query of GET /orders; an empty parameter is an absent one. Raises Problem
    QUERY_INVALID."""
    query = event.get("queryStringParameters") or {}
    status = query.get("status") or None
    if status is not None and status not in set(OrderStatus) - {OrderStatus.NONE}:
        raise bad_query("status", "not a status of an order")
    before, limit = read_page(query)
    return OrdersQuery(None if status is None else OrderStatus(status), before, limit)


def read_page(query: Mapping[str, str]) -> tuple[int | None, int]:
    """(before, limit): which page of a list is asked for. Raises Problem QUERY_INVALID."""
    cursor, limit = query.get("cursor") or None, query.get("limit") or "20"
    if not _LIMIT.fullmatch(limit):
        raise bad_query("limit", "not a number from 1 to 100")
    return None if cursor is None else _read_cursor(cursor), int(limit)


def write_cursor(before: int | None) -> str | None:
    """An opaque cursor that ``read_orders_query`` takes back."""
    return None if before is None else base64.urlsafe_b64encode(f"v1:{before}".encode()).decode()


def _read_cursor(cursor: str) -> int:
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise bad_query("cursor", "not a next_cursor that was given out")
    return int(found.group(1))


def bad_query(name: Literal["status", "state", "cursor", "limit"], message: str) -> Problem:
    """The refusal of one parameter."""
    return Problem("QUERY_INVALID", errors=[_error([name], "value_error", message)])


def read_body[B: Body](event: Event, model: type[B]) -> B:
    """The body as ``model`` wants it. Raises Problem BODY_UNREADABLE or BODY_INVALID."""
    sent = _body_bytes(event)
    try:
        body = model.model_validate_json(sent)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if any(item["type"] == "json_invalid" for item in found):
            raise Problem("BODY_UNREADABLE") from error
        raise _invalid(found) from error
    json.loads(sent, object_pairs_hook=_refuse_repeated_names)
    return body


def _refuse_repeated_names(members: list[tuple[str, object]]) -> None:
    """Of two values for one name the parser takes the last, another reader perhaps the first."""
    repeated = sorted(name for name, times in Counter(n for n, _ in members).items() if times > 1)
    if repeated:
        raise _invalid(
            [_error([name], "name_repeated", "given more than once") for name in repeated]
        )


def _error(loc: list[str], kind: str, message: str) -> dict[str, object]:
    return {"loc": loc, "type": kind, "msg": message}


def invalid_body(loc: list[str], kind: str, message: str) -> Problem:
    """The refusal of one member of a body."""
    return _invalid([_error(loc, kind, message)])


def _invalid(errors: Sequence[Mapping[str, object]]) -> Problem:
    """Enough to mend the request by; a hostile one does not choose the length of our answer."""
    return Problem("BODY_INVALID", errors=errors[:ERRORS_MAX])


def _body_bytes(event: Event) -> bytes:
    body = (event.get("body") or "").encode("utf-8", errors="surrogatepass")
    if event.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise Problem("BODY_UNREADABLE") from error
    if len(body) > BODY_BYTES_MAX:
        raise Problem("BODY_UNREADABLE")
    return body
