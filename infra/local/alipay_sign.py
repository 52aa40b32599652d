"""Alipay's side of notices and calls, for a laptop: its key, what it signs, what it checks.

Nothing here is deployed. It is written apart from the code that verifies, so that each checks the
other; tests, the demo and the local Alipay all speak through it.
"""

import base64
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

BEIJING = timezone(timedelta(hours=8))


def new_key() -> rsa.RSAPrivateKey:
    """Make a key pair as Alipay asks for: RSA, 2048 bits."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def load_key(path: Path) -> rsa.RSAPrivateKey:
    """Read a private key that `private_key_pem` wrote. Raises OSError, ValueError, TypeError."""
    key = load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{path} holds no RSA key")
    return key


def private_key_pem(key: rsa.RSAPrivateKey) -> bytes:
    """Write the private key as unencrypted PKCS#8 PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_key_base64(key: rsa.RSAPrivateKey) -> str:
    """Write the public key as Alipay's console shows it: bare base64 on one line."""
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode("ascii")


def sign(params: Mapping[str, str], key: rsa.RSAPrivateKey, charset: str = "utf-8") -> str:
    """Sign parameters as Alipay signs a notice (RSA2, scheme V1) and return base64.

    `charset` is the one that their bytes are taken in; a `charset` parameter is theirs to hold.
    """
    pairs = [(k.encode(charset), v.encode(charset)) for k, v in params.items()]
    signed = sorted((k, v) for k, v in pairs if k not in {b"sign", b"sign_type"})
    content = b"&".join(k + b"=" + v for k, v in signed)
    return base64.b64encode(key.sign(content, padding.PKCS1v15(), SHA256())).decode("ascii")


def form_body(params: Mapping[str, str], key: rsa.RSAPrivateKey, charset: str = "utf-8") -> bytes:
    """Sign parameters and encode them as the body of a notice, `sign_type` and `sign` last."""
    signed = {**params, "sign_type": "RSA2", "sign": sign(params, key, charset)}
    return urlencode(signed, encoding=charset).encode("ascii")


def sign_response(
    method: str,
    fields: Mapping[str, object],
    key: rsa.RSAPrivateKey,
    *,
    charset: str = "utf-8",
    escape_slashes: bool = True,
    before: str = "",
) -> bytes:
    """Answer a call as the gateway does: the object of its name, and a signature over that text.

    Slashes are written as `\\/`, as Alipay's JSON has them. `before` goes in front, for what else
    an answer may hold.
    """
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    if escape_slashes:
        text = text.replace("/", "\\/")
    signature = base64.b64encode(
        key.sign(text.encode(charset), padding.PKCS1v15(), SHA256())
    ).decode("ascii")
    name = method.replace(".", "_") + "_response"
    return f'{{{before}"{name}":{text},"sign":"{signature}"}}'.encode(charset)


def is_request_signed(params: Mapping[str, str], key: rsa.RSAPublicKey) -> bool:
    """Whether a request's `sign` is this app's, over everything else in it, sign_type included."""
    content = "&".join(f"{k}={v}" for k, v in sorted(params.items()) if k != "sign" and v != "")
    try:
        signature = base64.b64decode(params.get("sign", ""), validate=True)
        key.verify(signature, content.encode("utf-8"), padding.PKCS1v15(), SHA256())
    except (ValueError, InvalidSignature):
        return False
    return True


def beijing_text(at: datetime) -> str:
    """Write an aware time as Alipay does: Beijing time to the second, without an offset."""
    return at.astimezone(BEIJING).strftime("%Y-%m-%d %H:%M:%S")


def payment_notice(
    app_id: str,
    seller_id: str,
    out_trade_no: str,
    trade_no: str,
    amount: Decimal,
    *,
    notify_id: str | None = None,
    status: str = "TRADE_SUCCESS",
    paid_at: datetime | None = None,
) -> dict[str, str]:
    """Word the notice of a payment of `amount` yuan, not signed yet.

    By default it is paid now and has a notify_id of its own. Deliver the same mapping again for a
    repeat; change a copy of it for a refund, a close or anything else.
    """
    paid = beijing_text(paid_at or datetime.now(UTC))
    return {
        "notify_type": "trade_status_sync",
        "notify_id": notify_id or "".join(secrets.choice("0123456789") for _ in range(34)),
        "notify_time": paid,
        "app_id": app_id,
        "auth_app_id": app_id,
        "seller_id": seller_id,
        "out_trade_no": out_trade_no,
        "trade_no": trade_no,
        "trade_status": status,
        "total_amount": f"{amount:.2f}",
        "receipt_amount": f"{amount:.2f}",
        "buyer_pay_amount": f"{amount:.2f}",
        "subject": f"Order {out_trade_no}",
        "gmt_create": paid,
        "gmt_payment": paid,
        "fund_bill_list": f'[{{"amount":"{amount:.2f}","fundChannel":"ALIPAYACCOUNT"}}]',
        "charset": "utf-8",
        "version": "1.0",
    }
