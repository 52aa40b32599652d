"""Which servers will do, and where packages would come from."""

import pytest

from infra.local import debian_packages, mysqld


@pytest.mark.parametrize(
    "version",
    [
        "mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
        "8.0.42 MySQL Community Server - GPL",
        "10.1.0 MySQL Community Server",
    ],
)
def test_mysql_8_and_later_will_do(version):
    assert mysqld.unsuitable(version) is None


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu", "MariaDB"),
        ("5.7.44 MySQL Community Server (GPL)", "older than 8.0"),
        ("cannot execute binary file", "does not tell its version"),
    ],
)
def test_others_are_passed_over_with_the_reason(version, reason):
    assert reason in (mysqld.unsuitable(version) or "")


def test_a_long_path_gets_a_short_socket(tmp_path):
    deep = tmp_path / ("d" * 100)
    assert mysqld.socket_path(tmp_path / "home") == tmp_path / "home" / "mysqld.sock"
    assert len(str(mysqld.socket_path(deep))) <= mysqld.SOCKET_PATH_MAX
    assert mysqld.socket_path(deep) == mysqld.socket_path(deep)


def test_the_archive_is_the_one_that_apt_uses_already():
    targets = (
        "Debian https://mirror.example/debian-security/\n"
        "Node Source https://node.example/\n"
        "Debian https://mirror.example/debian/\n"
    )
    assert debian_packages.find_archive(targets) == "https://mirror.example/debian/"
    assert debian_packages.find_archive("Ubuntu https://mirror.example/ubuntu/\n") is None
