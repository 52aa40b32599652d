"""The local issuer of members' and operators' tokens.

Its discovery document and public key are two static files behind a plain web server; the tokens are
signed here. `make -s token member=42` and `make -s token operator=alice` print one.
"""

import argparse
import base64
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from infra.local import processes
from infra.local.keys import rsa_key
from infra.local.paths import LOCAL
from infra.local.steps import SetupError, step

NAME = "token-issuer"
AUDIENCE = "lockstep"
OPERATOR_SCOPE = "lockstep/ops"
KEY_ID = "local"


def ensure(home: Path) -> str:
    """The issuer's URL, after starting its web server if need be."""
    running = processes.find(home, NAME)
    if running is None:
        port = processes.free_port()
        site = _write_site(home, _issuer(port))
        server = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]
        with step("Starting the token issuer"):
            running = processes.start(
                home, NAME, [*server, "--directory", site, str(port)], port, os.environ
            )
            processes.wait_until(home, NAME, lambda: processes.answers(port), seconds=20)
    return _issuer(running.port)


def stop(home: Path) -> bool:
    return processes.stop(home, NAME)


def mint(
    home: Path,
    sub: str,
    *,
    claims: Mapping[str, object] | None = None,
    scope: str | None = None,
    lifetime: int = 3600,
) -> str:
    """A token for `sub`, good for so many seconds; `claims` are added, or replace what is here."""
    running = processes.find(home, NAME)
    if running is None:
        raise SetupError("The token issuer is not running: make up")
    now = int(time.time())
    body: dict[str, object] = {
        "iss": _issuer(running.port),
        "aud": AUDIENCE,
        "sub": sub,
        "iat": now,
        "exp": now + lifetime,
    }
    if scope is not None:
        body["scope"] = scope
    return _sign(home, body | dict(claims or {}))


def _issuer(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _sign(home: Path, body: Mapping[str, object]) -> str:
    header = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
    signed = f"{_encode(json.dumps(header))}.{_encode(json.dumps(body))}"
    signature = rsa_key(_key_file(home)).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_encode(signature)}"


def _write_site(home: Path, issuer: str) -> Path:
    """The two documents that an API gateway fetches to check a token."""
    numbers = rsa_key(_key_file(home)).public_key().public_numbers()
    key = {
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": KEY_ID,
        "n": _encode(numbers.n.to_bytes(256)),
        "e": _encode(numbers.e.to_bytes(3)),
    }
    discovery = {"issuer": issuer, "jwks_uri": f"{issuer}/.well-known/jwks.json"}
    site = home / "tokens" / "site"
    folder = site / ".well-known"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openid-configuration").write_text(json.dumps(discovery))
    (folder / "jwks.json").write_text(json.dumps({"keys": [key]}))
    return site


def _key_file(home: Path) -> Path:
    return home / "tokens" / "signing-key.pem"


def _encode(value: str | bytes) -> str:
    raw = value.encode() if isinstance(value, str) else value
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _member(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError("a member is a number: make -s token member=42")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a token for the stack that `make up` made.")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--member", type=_member, help="a member's number")
    who.add_argument("--operator", help="an operator's name")
    asked = parser.parse_args()
    try:
        if asked.operator:
            print(mint(LOCAL, asked.operator, scope=OPERATOR_SCOPE))
        else:
            # Under the claim that the stack was told to look at, too.
            claim = json.loads((LOCAL / "stack.json").read_text())["member_id_claim"]
            print(mint(LOCAL, asked.member, claims={claim: asked.member}))
    except FileNotFoundError:
        sys.exit("Nothing is up: make up")
    except SetupError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
