"""A Lambda authorizer for shops that sign members' tokens with a shared secret (HS256 and up).

The HTTP API's own authorizer checks RS256 tokens against an issuer's published keys; a symmetric
token has none. This one checks the signature, the expiry and the audience, and hands the claims on
where the functions look for them. The algorithm is the one that is configured, never the one that a
token names.

TOKEN_SECRET_ARN   Secrets Manager secret whose text is the shared secret
TOKEN_SECRET_FORM  text, or base64 where the shop's library decodes its secret first (jjwt does)
TOKEN_ALGORITHM    HS256 (default), HS384 or HS512
TOKEN_AUDIENCE     audience that a token must name; empty where the shop's tokens name none
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import time
from functools import cache
from typing import Any, Final

HASHES: Final = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}
# Clocks of the shop and of Lambda differ by a little.
LEEWAY_SECONDS: Final = 30
REFUSED: Final = {"isAuthorized": False, "context": {}}


def handler(event: dict[str, Any], _: object) -> dict[str, Any]:
    """The simple answer of payload format 2.0."""
    header = event.get("headers", {}).get("authorization", "")
    scheme, _, token = header.partition(" ")
    claims = verified(token) if scheme.lower() == "bearer" else None
    return REFUSED if claims is None else {"isAuthorized": True, "context": claims}


def verified(token: str) -> dict[str, str] | None:
    """The claims that are texts or whole numbers, as texts; None unless all about it is right."""
    try:
        head, body, signature = token.split(".")
        algorithm = os.environ.get("TOKEN_ALGORITHM", "HS256")
        if json.loads(_decoded(head))["alg"] != algorithm:
            return None
        expected = hmac.new(_secret(), f"{head}.{body}".encode(), HASHES[algorithm]).digest()
        if not hmac.compare_digest(expected, _decoded(signature)):
            return None
        claims = json.loads(_decoded(body))
        if not _is_current(claims) or not _is_for_us(claims):
            return None
    except (ValueError, TypeError, AttributeError, LookupError, binascii.Error):
        return None
    return {
        name: str(value)
        for name, value in claims.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    }


def _is_current(claims: dict[str, Any]) -> bool:
    now = time.time()
    starts, ends = claims.get("nbf", 0), claims["exp"]
    return bool(starts - LEEWAY_SECONDS <= now < ends + LEEWAY_SECONDS)


def _is_for_us(claims: dict[str, Any]) -> bool:
    wanted, named = os.environ.get("TOKEN_AUDIENCE", ""), claims.get("aud", [])
    return not wanted or wanted in ([named] if isinstance(named, str) else named)


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


@cache
def _secret() -> bytes:
    import boto3  # noqa: PLC0415 - once for each execution environment

    client = boto3.client("secretsmanager")
    text = client.get_secret_value(SecretId=os.environ["TOKEN_SECRET_ARN"])["SecretString"]
    if os.environ.get("TOKEN_SECRET_FORM") == "base64":
        return base64.b64decode(text)
    return str(text).encode()
