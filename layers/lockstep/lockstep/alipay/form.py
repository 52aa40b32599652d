"""The form that a notice arrives as: its bytes, its parameters, and the text that was signed.

Text here is "byte text": each character stands for one byte (latin-1). Only the form itself says
which charset it is in, and nothing it says may be believed before its signature is checked; byte
text loses nothing and turns back into the bytes that were signed, whatever their charset.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from lockstep.alipay.model import NoticeRefused, Refusal

# A genuine notice has some 30 parameters in 2 KB, 4 KB at its documented limits. The rest is room.
BODY_BYTES_MAX: Final = 64 * 1024
PARAMETERS_MAX: Final = 100


def body_bytes(event_body: str | None, is_base64: bool) -> bytes:
    """Take the body out of an HTTP API event (payload 2.0) as the bytes that were sent.

    AWS delivers a form as base64, emulators of it deliver text: only the event's own flag tells.
    Raises NoticeRefused (BODY_UNREADABLE).
    """
    try:
        sent = (event_body or "").encode("ascii")
        return base64.b64decode(sent, validate=True) if is_base64 else sent
    except ValueError as error:
        raise NoticeRefused(Refusal.BODY_UNREADABLE, str(error)) from error


def read_form(body: bytes) -> dict[str, str]:
    """Decode the form, exactly once, into byte text by name.

    Raises NoticeRefused (BODY_UNREADABLE, PARAMETER_DUPLICATED: which of two values would count?).
    """
    if len(body) > BODY_BYTES_MAX:
        raise NoticeRefused(Refusal.BODY_UNREADABLE, f"more than {BODY_BYTES_MAX} bytes")
    if b"=" not in body:
        raise NoticeRefused(Refusal.BODY_UNREADABLE, "no parameters")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,  # they are signed too
            encoding="latin-1",
            max_num_fields=PARAMETERS_MAX,
        )
    except ValueError as error:
        raise NoticeRefused(Refusal.BODY_UNREADABLE, str(error)) from error
    params = dict(pairs)
    if len(params) < len(pairs):
        raise NoticeRefused(Refusal.PARAMETER_DUPLICATED, "a parameter is given more than once")
    return params


def signed_content(params: Mapping[str, str]) -> bytes:
    """Rebuild the text that Alipay signed, by its scheme "V1" for notices of payments.

    Every parameter but sign and sign_type, blank and unknown ones included, sorted by bytes and
    not escaped: `getSignCheckContentV1` of Alipay's Java SDK.
    """
    signed = sorted(params.keys() - {"sign", "sign_type"})
    return "&".join(f"{name}={params[name]}" for name in signed).encode("latin-1")


def lasting_id(params: Mapping[str, str]) -> str:
    """Name a notice that has no notify_id of use: "sha256:" and 64 hex digits.

    Deliveries of one notice differ in notify_time alone (and so in sign), so all else names it.
    """
    lasting = {name: value for name, value in params.items() if name != "notify_time"}
    return f"sha256:{hashlib.sha256(signed_content(lasting)).hexdigest()}"


def unambiguous_fields(
    params: Mapping[str, str], deciding: Iterable[str], displayed: Iterable[str]
) -> dict[str, str]:
    """Pick the parameters that a notice is read from; "" stands for one that is absent.

    The signed text does not escape, so it does not show where a value ends: `body=a&refund_fee=9`
    is one parameter or two, and both readings verify. Whoever gets hold of a genuine notice could
    move the borders. Hence a name that is read may stand in the text only where it is a parameter,
    and a value that decides something may not reach into its neighbour. A displayed one may: shops
    do write "&" into a subject. Raises NoticeRefused (PARAMETER_AMBIGUOUS).
    """
    text = b"&" + signed_content(params)
    fields = {name: params.get(name, "") for name in (*deciding, *displayed)}
    for name in fields:
        if text.count(f"&{name}=".encode()) != int(name in params):
            raise NoticeRefused(Refusal.PARAMETER_AMBIGUOUS, f"{name} inside another parameter")
    for name in deciding:
        if "&" in fields[name]:
            raise NoticeRefused(Refusal.PARAMETER_AMBIGUOUS, f"another parameter inside {name}")
    return fields
