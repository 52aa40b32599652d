"""RSA keys made on the spot, kept for as long as the home is."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def rsa_key(file: Path) -> rsa.RSAPrivateKey:
    """The key in that PEM file, generated at the first call; its owner alone may read it."""
    if not file.exists():
        _write_new_key(file)
    key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{file} holds no RSA key")
    return key


def _write_new_key(file: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(pem)
