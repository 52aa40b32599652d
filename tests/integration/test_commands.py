"""The commands of operators: make catalogue, make purge, and the database that they work on."""

import json
import time

import pytest

from infra import catalogue, purge
from infra import database as target
from lockstep.db import connection
from tests.support.builders import a_sku
from tests.support.database import forget_settings

HEADER = "sku_id,title,price,stock,hot,on_sale"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "skus.csv"


def test_a_catalogue_is_loaded_and_told(database, file, capsys):
    file.write_text(f"\ufeff{HEADER}\r\n1001,墨水,9.90,5,no,yes\r\n", encoding="utf-8")
    catalogue.main([str(file), "--actor", "operator:alice", "--load", "monday"])
    assert capsys.readouterr().out == "Load monday: 1 new, 0 repriced, 0 restocked, 0 unchanged\n"
    entry = database.one("SELECT source, actor, reason FROM ims_stock_entry")
    assert entry == {
        "source": "catalogue:monday:1001",
        "actor": "operator:alice",
        "reason": "catalogue load",
    }
    catalogue.main([str(file), "--load", "monday"])
    assert capsys.readouterr().out.startswith(
        "Load monday was done before (1 new, 0 repriced, 0 restocked, 0 unchanged); nothing was"
    )


def test_a_wrong_file_is_told_by_line_and_fails(database, file):
    a_sku(database)
    file.write_text(f"{HEADER}\n1001,a,1e1,5,0,1\n1002,b,1,5,0\n")
    with pytest.raises(SystemExit) as ended:
        catalogue.main([str(file)])
    assert str(ended.value).splitlines() == [
        "line 2: PRICE_INVALID: price '1e1': not an amount in yuan with at most two decimals",
        "line 3: COLUMNS_WRONG: 5 columns instead of 6",
        f"Nothing was changed: 2 errors in {file}",
    ]
    assert database.stock(1001) == (10, 0)


def test_a_file_in_another_encoding_is_told_by_line(database, file):
    file.write_bytes(f"{HEADER}\n1,a,1,1,0,1\n2,笔记本,1,1,0,1\n".encode("gbk"))
    with pytest.raises(SystemExit, match=r"^line 3: not UTF-8"):
        catalogue.main([str(file)])


def test_a_file_that_is_not_there_is_told(database, file):
    with pytest.raises(SystemExit, match=r"skus\.csv cannot be read: No such file or directory"):
        catalogue.main([str(file)])


def test_a_load_that_cannot_be_is_told(database, file):
    file.write_text(f"{HEADER}\n")
    with pytest.raises(SystemExit, match="Nothing was changed: a load id is"):
        catalogue.main([str(file), "--load", "a b"])


def test_a_purge_is_told(database, capsys):
    database.execute(
        "INSERT INTO message_refusal (message_id, type, code, created_at) "
        "VALUES ('m', 'ReserveStock', 'X', NOW(3) - INTERVAL 40 DAY)"
    )
    purge.main([])
    assert capsys.readouterr().out == ("Deleted: 0 messages, 0 notices, 0 tombstones, 0 refusals\n")
    purge.main(["--refusal_days", "30"])
    assert capsys.readouterr().out == ("Deleted: 0 messages, 0 notices, 0 tombstones, 1 refusals\n")
    purge.main(["--seconds", "0"])
    assert capsys.readouterr().out.endswith("; there is more: run it again\n")


def test_a_retention_that_breaks_a_promise_is_refused_and_told(database):
    with pytest.raises(SystemExit, match="outbox_days is 10, and 22 is the least that is safe"):
        purge.main(["--outbox_days", "10"])


def test_the_database_is_the_one_in_the_environment_before_the_local_one(
    database, monkeypatch, tmp_path
):
    monkeypatch.setattr(target, "STACK", tmp_path / "absent.json")
    target.reach()
    assert connection.current().one("SELECT DATABASE() AS name") == {"name": database.name}


def test_a_database_that_does_not_answer_is_told_at_once(database, monkeypatch, file):
    connection.discard()
    monkeypatch.setenv("DATABASE_PORT", "1")
    forget_settings()
    file.write_text(f"{HEADER}\n")
    began = time.monotonic()
    with pytest.raises(SystemExit, match=r"^The database at 127\.0\.0\.1 cannot be used: 2003"):
        catalogue.main([str(file)])
    assert time.monotonic() - began < 5


def test_without_one_in_the_environment_it_is_the_local_stacks(database, monkeypatch, tmp_path):
    server = database.server
    stack = tmp_path / "stack.json"
    mysql = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "database": database.name,
        "socket": "",
        "ca": server.ca and str(server.ca),
    }
    stack.write_text(json.dumps({"mysql": mysql}))
    monkeypatch.setattr(target, "STACK", stack)
    monkeypatch.setenv("DATABASE_TLS_CA", "")  # so that it is put back
    for name in ("HOST", "PORT", "NAME", "USER", "PASSWORD", "TLS"):
        monkeypatch.delenv(f"DATABASE_{name}")
    forget_settings()
    a_sku(database)
    file = tmp_path / "skus.csv"
    file.write_text(f"{HEADER}\n1001,a,1,7,0,1\n")
    catalogue.main([str(file)])
    assert database.stock(1001) == (7, 0)


def test_without_any_database_it_is_told_how_to_have_one(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_HOST", raising=False)
    monkeypatch.setattr(target, "STACK", tmp_path / "absent.json")
    with pytest.raises(SystemExit, match="make up"):
        target.reach()
