"""Alipay's side of the local stack: who pays, and the key that notices are signed with."""

import base64
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from infra.local.keys import rsa_key

# Invented, in the form of the real ones.
APP_ID = "2021000000000001"
SELLER_ID = "2088000000000001"


@dataclass(frozen=True)
class Alipay:
    app_id: str
    seller_id: str
    signing_key_file: Path
    public_key: str


def ensure(home: Path) -> Alipay:
    file = home / "alipay" / "signing-key.pem"
    public = (
        rsa_key(file)
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    # As Alipay's console shows it: base64 of the DER form, on one line, without PEM's frame.
    return Alipay(APP_ID, SELLER_ID, file, base64.b64encode(public).decode())
