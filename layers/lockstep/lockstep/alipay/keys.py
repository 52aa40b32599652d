"""Keys, and what they sign: RSA2 in Alipay's words, and nothing else.

The only module that loads cryptography: whoever may turn out to need no key imports it late.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

type PublicKey = RSAPublicKey

# What Alipay asks for.
KEY_BITS_MIN: Final = 2048


@dataclass(frozen=True, slots=True)
class Keys:
    """Our key, which signs what we ask, and Alipay's, which its answers may be signed with: one,
    or two while Alipay's key is changed."""

    own: RSAPrivateKey = field(repr=False)
    alipay: tuple[RSAPublicKey, ...]

    def sign(self, content: bytes) -> str:
        """Base64, as every signature here."""
        return base64.b64encode(self.own.sign(content, PKCS1v15(), SHA256())).decode("ascii")

    def is_alipays(self, content: bytes, signature: str) -> bool:
        return is_signed(content, signature, self.alipay)


def load_keys(private_key: str, public_keys: Sequence[str]) -> Keys:
    """Raises ValueError, as the loading of each does."""
    return Keys(load_private_key(private_key), tuple(map(load_public_key, public_keys)))


def load_public_key(text: str) -> RSAPublicKey:
    """Read a public key: the bare base64 that Alipay's console shows, or PEM.

    Raises ValueError if the text is neither, or not an RSA key of at least 2048 bits.
    """
    try:
        if _is_pem(text):
            key = load_pem_public_key(text.encode("ascii"))
        else:
            key = load_der_public_key(_bare(text))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"not a public key: {error}") from error
    if not isinstance(key, RSAPublicKey) or key.key_size < KEY_BITS_MIN:
        raise ValueError(f"not an RSA key of {KEY_BITS_MIN} bits or more")
    return key


def load_private_key(text: str) -> RSAPrivateKey:
    """Read a private key, PKCS#8 or PKCS#1: the bare base64 that Alipay's key tool writes, or PEM.

    Raises ValueError if the text is neither, or not an RSA key of at least 2048 bits; what the text
    was does not stand in it.
    """
    try:
        if _is_pem(text):
            key = load_pem_private_key(text.encode("ascii"), password=None)
        else:
            key = load_der_private_key(_bare(text), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        raise ValueError("not an unencrypted private key in PKCS#8 or PKCS#1") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < KEY_BITS_MIN:
        raise ValueError(f"not an RSA key of {KEY_BITS_MIN} bits or more")
    return key


def is_signed(content: bytes, signature: str, keys: Sequence[RSAPublicKey]) -> bool:
    """Whether ``signature``, in base64, is one of these keys' over ``content``."""
    try:
        decoded = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    return any(_verifies(key, decoded, content) for key in keys)


def _verifies(key: RSAPublicKey, signature: bytes, content: bytes) -> bool:
    try:
        key.verify(signature, content, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _is_pem(text: str) -> bool:
    return "-----BEGIN" in text


def _bare(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)
