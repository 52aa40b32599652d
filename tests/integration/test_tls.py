"""TLS to the database: verified or refused, never quietly left out.

The tests' server shows a certificate for 127.0.0.1 by an authority of its own
(infra/local/certificates.py). Where the server is not ours to give one, only refusals can be seen.
"""

import pytest

from infra.local import certificates
from lockstep import settings
from lockstep.db import connection
from lockstep.db.connection import connect
from lockstep.db.errors import ConnectionLost
from tests.support import flaky_proxy
from tests.support.database import forget_settings

CIPHER = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"


@pytest.fixture
def opened(database, monkeypatch):
    """Connect with these settings on top; the cipher that is in use."""

    def cipher(**variables):
        monkeypatch.setenv("DATABASE_TLS", "verified")
        for name, value in variables.items():
            monkeypatch.setenv(f"DATABASE_{name}", str(value))
        forget_settings()
        session = connect(settings.database())
        try:
            return session.all(CIPHER)[0]["Value"]
        finally:
            session.close()

    return cipher


@pytest.fixture
def ca(database):
    if database.server.ca is None:
        pytest.skip("this server's certificate is not one of ours")
    return database.server.ca


def test_a_server_with_the_right_certificate_is_talked_to_in_cipher(opened, ca):
    assert opened(TLS_CA=ca)


def test_a_certificate_of_another_authority_is_refused(opened, tmp_path):
    other = certificates.ensure(tmp_path / "another").ca
    with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
        opened(TLS_CA=other)


def test_an_authority_that_the_system_does_not_know_is_refused(opened):
    with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
        opened()


def test_a_certificate_for_another_name_is_refused(opened, ca):
    with pytest.raises(ConnectionLost, match="not valid for 'localhost'"):
        opened(TLS_CA=ca, HOST="localhost")


def test_the_systems_authorities_vouch_for_a_name_and_not_for_any(opened, ca, monkeypatch):
    """What a proxy's certificate is checked by, and where PyMySQL would let any name pass."""
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    connection._trusting.cache_clear()
    try:
        assert opened()
        with pytest.raises(ConnectionLost, match="not valid for 'localhost'"):
            opened(HOST="localhost")
    finally:
        connection._trusting.cache_clear()


@pytest.mark.parametrize("with_ca", [True, False])
def test_a_server_that_offers_no_tls_is_refused(database, opened, tmp_path, with_ca):
    trusted = {"TLS_CA": certificates.ensure(tmp_path).ca} if with_ca else {}
    with (
        flaky_proxy.between(database) as proxy,
        pytest.raises(ConnectionLost, match="SSL is required"),
    ):
        opened(PORT=proxy.port, **trusted)


def test_a_file_of_authorities_that_is_not_there_is_an_error_of_its_own(opened):
    with pytest.raises(FileNotFoundError):
        opened(TLS_CA="/nowhere/ca.pem")


def test_tls_can_be_switched_off_by_name(opened):
    assert opened(TLS="off") == ""
