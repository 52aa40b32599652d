"""The signature on a request is checked, the one on an answer is made: RSA2, both ways."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives.asymmetric import rsa

from infra.local.alipay_gateway.shapes import Refused
from infra.local.alipay_sign import BEIJING, is_request_signed, sign_response

CLOCKS_APART = timedelta(minutes=15)
MISSING, INVALID = "40001", "40002"
# In the order in which they are missed.
NEEDED = {
    "method": "isv.missing-method",
    "app_id": "isv.missing-app-id",
    "sign_type": "isv.missing-signature-type",
    "sign": "isv.missing-signature",
    "timestamp": "isv.missing-timestamp",
    "version": "isv.missing-version",
}
MESSAGES = {
    "10000": "Success",
    "20000": "Service Currently Unavailable",
    "40001": "Missing Required Arguments",
    "40002": "Invalid Arguments",
    "40004": "Business Failed",
    "40005": "Call Limited",
}


class Untrusted(Refused):
    """Refused before it was clear who asks: such an answer carries no signature."""


@dataclass(frozen=True, slots=True)
class App:
    """Who may call: its id and its public key."""

    app_id: str
    public_key: rsa.RSAPublicKey


def read(query: str, body: bytes) -> dict[str, str]:
    """The parameters of a request, from the URL and from the form. Raises Untrusted.

    Only a charset in the URL counts: the form cannot be read before it is known.
    """
    in_url = dict(parse_qsl(query, keep_blank_values=True))
    if in_url.get("charset", "").lower() != "utf-8":
        raise Untrusted("isv.invalid-charset", "utf-8, in the URL", code=INVALID)
    in_form = parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True)
    return {**dict(in_form), **in_url}


def check(params: Mapping[str, str], app: App, now: datetime) -> None:
    """Whether the app itself asks, and asks now. Raises Untrusted, or Refused once it is known."""
    for name, sub_code in NEEDED.items():
        if not params.get(name):
            raise Untrusted(sub_code, name, code=MISSING)
    if params["app_id"] != app.app_id:
        raise Untrusted("isv.invalid-app-id", params["app_id"], code=INVALID)
    if params["sign_type"] != "RSA2":
        raise Untrusted("isv.invalid-signature-type", params["sign_type"], code=INVALID)
    if not is_request_signed(params, app.public_key):
        raise Untrusted("isv.invalid-signature", code=INVALID)
    if params.get("format", "JSON").upper() != "JSON":
        raise Refused("isv.invalid-format", params["format"], code=INVALID)
    if not _is_current(params["timestamp"], now):
        raise Refused("isv.invalid-timestamp", params["timestamp"], code=INVALID)


def _is_current(timestamp: str, now: datetime) -> bool:
    try:
        at = datetime.strptime(timestamp, "%Y-%m-%d %H:%M:%S").replace(tzinfo=BEIJING)
    except ValueError:
        return False
    return abs(now - at) <= CLOCKS_APART


def answer(
    method: str | None, fields: Mapping[str, object], key: rsa.RSAPrivateKey | None
) -> bytes:
    """The text of an answer, signed as it stands; without a key it is not signed."""
    name = method or "error"
    if key is not None:
        return sign_response(name, fields, key)
    return json.dumps({f"{name.replace('.', '_')}_response": fields}, ensure_ascii=False).encode()


def success(fields: Mapping[str, object]) -> dict[str, object]:
    return {"code": "10000", "msg": MESSAGES["10000"], **fields}


def refusal(refused: Refused) -> dict[str, object]:
    return {
        "code": refused.code,
        "msg": MESSAGES[refused.code],
        "sub_code": refused.sub_code,
        "sub_msg": refused.message or refused.sub_code,
    }
