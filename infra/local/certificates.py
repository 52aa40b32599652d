"""An authority and a certificate for 127.0.0.1, so that TLS is verified here as it is elsewhere.

mysqld makes certificates by itself, but they name no host, so nobody can check them for one.
"""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_LIFETIME = datetime.timedelta(days=3650)


@dataclass(frozen=True)
class Certificates:
    ca: Path
    certificate: Path
    key: Path


def ensure(folder: Path) -> Certificates:
    """The three files, made at the first call; the authority's own key is kept nowhere."""
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")
    if not files.key.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, key = (
            ec.generate_private_key(ec.SECP256R1()),
            ec.generate_private_key(ec.SECP256R1()),
        )
        name = _name("Lockstep local authority")
        ca = _begun(name, name, authority).add_extension(x509.BasicConstraints(True, 0), True)
        files.ca.write_bytes(ca.sign(authority, SHA256()).public_bytes(Encoding.PEM))
        host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        server = _begun(_name("Lockstep local MySQL"), name, key).add_extension(host, False)
        files.certificate.write_bytes(server.sign(authority, SHA256()).public_bytes(Encoding.PEM))
        files.key.touch(mode=0o600)
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _LIFETIME)
    )
