"""connect(): the right server, the session as every statement relies on it, one reconnect."""

from datetime import UTC, datetime

import pymysql
import pytest

from lockstep import settings
from lockstep.db import connection
from lockstep.db.connection import Row, UnsupportedServer, connect
from lockstep.db.errors import ConnectionLost, DuplicateKey, LockNotAvailable, ServerUnfit
from lockstep.db.transaction import in_transaction, read
from lockstep.errors import InvariantBroken, TryAgain
from tests.support.builders import a_sku
from tests.support.database import forget_settings
from tests.support.raw_rows import insert_row

READ_VARIABLES = """
SELECT @@time_zone AS time_zone, @@sql_mode AS sql_mode, @@autocommit AS autocommit,
       @@transaction_isolation AS isolation, @@innodb_lock_wait_timeout AS lock_wait,
       @@character_set_client AS charset
"""
SAME_STOCK = "UPDATE ims_sku_stock SET stock = stock WHERE sku_id = 1001"


def variables() -> Row:
    row = connection.current().one(READ_VARIABLES)
    assert row is not None
    return row


@pytest.mark.parametrize(
    "version",
    ["5.5.5-10.11.6-MariaDB-1", "11.4.2-MariaDB", "5.7.44", "5.7.44-log", "unknown"],
)
def test_a_server_that_will_not_do_is_refused_and_left(database, monkeypatch, version):
    sessions = []

    def tell(session):
        sessions.append(session)
        return version

    monkeypatch.setattr(pymysql.connections.Connection, "get_server_info", tell)
    with pytest.raises(UnsupportedServer, match=version):
        connect(settings.database())
    assert [session.open for session in sessions] == [False]


@pytest.mark.parametrize("version", ["8.0.42", "8.4.8", "9.7.0-commercial", "10.0.1"])
def test_mysql_8_and_later_are_taken(database, monkeypatch, version):
    monkeypatch.setattr(pymysql.connections.Connection, "get_server_info", lambda _: version)
    connect(settings.database()).close()


def test_the_session_is_what_every_statement_relies_on(database):
    session = variables()
    assert session["isolation"] == "READ-COMMITTED"
    assert session["time_zone"] == "+00:00"
    assert session["autocommit"] == 1
    assert session["charset"] == "utf8mb4"
    assert session["lock_wait"] == 3
    for mode in ("STRICT_ALL_TABLES", "NO_ZERO_DATE", "ONLY_FULL_GROUP_BY"):
        assert mode in session["sql_mode"].split(",")


def test_the_session_does_not_depend_on_the_servers_defaults(database):
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute(
            "SET SESSION time_zone = '+08:00', SESSION sql_mode = '', "
            "SESSION transaction_isolation = 'REPEATABLE-READ'"
        )
        cursor.execute(connection._session_variables(3))
        cursor.execute(READ_VARIABLES)
        assert cursor.fetchone() == variables() | {"autocommit": 1}


@pytest.mark.parametrize(("setting", "seconds"), [("1", 1), ("7", 7), ("0", None)])
def test_the_lock_wait_is_set_or_left_to_the_server(database, monkeypatch, setting, seconds):
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", setting)
    forget_settings()
    servers = database.value("SELECT @@global.innodb_lock_wait_timeout")
    assert variables()["lock_wait"] == (servers if seconds is None else seconds)


def test_an_update_that_changes_nothing_reports_no_row(database):
    a_sku(database)
    assert connection.current().execute(SAME_STOCK) == 0


def test_times_come_back_aware_and_json_decoded(database):
    insert_row(database, "oms_order", expires_at="2026-11-30 12:00:00.123", paid_at=None)
    insert_row(database, "oms_order_event", evidence='{"trade_no": "T1"}')
    order = connection.current().one("SELECT expires_at, paid_at FROM oms_order")
    assert order == {
        "expires_at": datetime(2026, 11, 30, 12, 0, 0, 123_000, tzinfo=UTC),
        "paid_at": None,
    }
    event = connection.current().one("SELECT evidence FROM oms_order_event")
    assert event == {"evidence": {"trade_no": "T1"}}


def test_an_aware_time_is_written_as_utc(database):
    insert_row(database, "oms_order")
    at = datetime(2026, 11, 30, 23, 59, 59, 999_000, tzinfo=UTC)
    connection.current().execute("UPDATE oms_order SET paid_at = %s", (at,))
    assert connection.current().one("SELECT paid_at FROM oms_order") == {"paid_at": at}
    text = database.value("SELECT CAST(paid_at AS CHAR) FROM oms_order")
    assert text == "2026-11-30 23:59:59.999"


def test_several_rows_where_one_was_expected_are_an_error(database):
    a_sku(database, 1001)
    a_sku(database, 1002)
    with pytest.raises(ValueError, match="2 rows"):
        connection.current().one("SELECT sku_id FROM ims_sku_stock")
    assert connection.current().one("SELECT sku_id FROM ims_sku_stock WHERE sku_id = 7") is None


def test_engine_errors_come_by_their_own_names(database):
    insert_row(database, "ims_sku_stock")
    session = connection.current()
    with pytest.raises(DuplicateKey) as duplicate:
        session.execute("INSERT INTO ims_sku_stock SELECT * FROM ims_sku_stock")
    assert duplicate.value.key == "PRIMARY"
    with pytest.raises(InvariantBroken, match="ck_sku_stock"):
        session.execute("UPDATE ims_sku_stock SET lock_stock = 11")
    with database.another_session() as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM ims_sku_stock FOR UPDATE")
        with pytest.raises(LockNotAvailable):
            session.one("SELECT * FROM ims_sku_stock FOR SHARE NOWAIT")


def test_two_statements_in_one_text_are_refused(database):
    session = connection.current()
    trips = session.round_trips
    for run in (session.execute, session.all, session.one, session.compose):
        with pytest.raises(ValueError, match="several statements"):
            run("SELECT 1; SELECT 2")
    assert session.round_trips == trips


def test_a_server_that_takes_no_writes_is_unfit(database):
    connection.current().execute("SET SESSION transaction_read_only = 1")
    with pytest.raises(ServerUnfit, match="1792"):
        connection.current().execute(SAME_STOCK)


def test_nobody_listening_is_a_lost_connection(database, monkeypatch):
    monkeypatch.setenv("DATABASE_PORT", "1")
    forget_settings()
    with pytest.raises(ConnectionLost, match="2003"):
        connection.current()


def test_a_read_is_repeated_once_on_a_new_session(database):
    a_sku(database)
    idle = connection.current()
    database.execute(f"KILL {idle.thread_id}")
    assert read(lambda reader: reader.one("SELECT stock FROM ims_sku_stock")) == {"stock": 10}
    assert connection.current() is not idle


def test_a_read_that_is_lost_twice_is_to_be_tried_again(database):
    looks = []

    def die(reader):
        looks.append(connection.current().thread_id)
        database.execute(f"KILL {looks[-1]}")
        return reader.one("SELECT 1")

    with pytest.raises(TryAgain):
        read(die)
    assert len(set(looks)) == 2


def test_each_thread_keeps_one_session(database):
    assert connection.current() is connection.current()
    first = connection.current()
    connection.discard()
    assert connection.current() is not first
    with pytest.raises(ConnectionLost):
        first.one("SELECT 1")


def test_a_server_that_cannot_be_reached_is_asked_once(database, monkeypatch):
    """To connect may take as long as a caller can wait: twice would be too long."""
    tried: list[object] = []

    def refuse(settings: object) -> None:
        tried.append(settings)
        raise ConnectionLost("2003: nobody there")

    monkeypatch.setattr(connection, "connect", refuse)
    connection.discard()
    with pytest.raises(TryAgain):
        read(lambda reader: reader.all("SELECT 1"))
    assert len(tried) == 1
    with pytest.raises(TryAgain):
        in_transaction(lambda tx: tx.all("SELECT 1"), within_seconds=0)
    assert len(tried) == 2
