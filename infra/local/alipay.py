"""Alipay's side of the local stack, and the app that the shop has there: both key pairs."""

import base64
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from infra.local.keys import rsa_key

# Invented, in the form of the real ones.
APP_ID = "2021000000000001"
SELLER_ID = "2088000000000001"


@dataclass(frozen=True)
class Alipay:
    app_id: str
    seller_id: str
    signing_key_file: Path
    """Alipay's own: it signs notices and answers."""
    public_key: str
    app_key_file: Path
    """The app's: it signs what is asked."""
    app_public_key: str
    gateway_url: str


def ensure(home: Path) -> Alipay:
    """Made at the first call, and kept for as long as the home is."""
    signing, app = (home / "alipay" / f"{whose}-key.pem" for whose in ("signing", "app"))
    return Alipay(
        app_id=APP_ID,
        seller_id=SELLER_ID,
        signing_key_file=signing,
        public_key=_shown(rsa_key(signing)),
        app_key_file=app,
        app_public_key=_shown(rsa_key(app)),
        # Nobody answers there: until there is an Alipay to run here, every outcome is unknown.
        gateway_url="http://127.0.0.1:1/gateway.do",
    )


def _shown(key: RSAPrivateKey) -> str:
    """The public key as Alipay's console shows it: base64 of its DER form, on one line."""
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(public).decode()
