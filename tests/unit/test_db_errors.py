"""The engine's errors, by errno alone: PyMySQL's classes and texts say too little."""

import pymysql
import pytest

from lockstep.db.errors import (
    ConnectionLost,
    Contended,
    DatabaseFault,
    DuplicateKey,
    LockNotAvailable,
    ServerUnfit,
    translate,
)
from lockstep.errors import InvariantBroken, LockstepError, TimeShort, TryAgain

FAULTS: dict[int, type[Exception]] = {
    # lock wait time-out, deadlock
    1205: Contended,
    1213: Contended,
    # NOWAIT met a lock
    3572: LockNotAvailable,
    # PyMySQL's own 0, cannot connect, gone away, lost, out of sync, closed, shutdown, killed, idle
    0: ConnectionLost,
    2003: ConnectionLost,
    2006: ConnectionLost,
    2013: ConnectionLost,
    2014: ConnectionLost,
    2026: ConnectionLost,
    2055: ConnectionLost,
    1053: ConnectionLost,
    1927: ConnectionLost,
    4031: ConnectionLost,
    # read-only option, read-only transaction, read-only mode, too many connections, too many of one
    1290: ServerUnfit,
    1792: ServerUnfit,
    1836: ServerUnfit,
    1040: ServerUnfit,
    1203: ServerUnfit,
    # CHECK, foreign keys, out of range, unsigned below zero, too long, NULL, bad value, by zero
    3819: InvariantBroken,
    1451: InvariantBroken,
    1452: InvariantBroken,
    1264: InvariantBroken,
    1690: InvariantBroken,
    1406: InvariantBroken,
    1048: InvariantBroken,
    1366: InvariantBroken,
    1365: InvariantBroken,
}


@pytest.mark.parametrize(("errno", "fault"), FAULTS.items())
@pytest.mark.parametrize("raised_as", [pymysql.OperationalError, pymysql.IntegrityError])
def test_an_errno_means_the_same_whatever_class_carries_it(errno, fault, raised_as):
    translated = translate(raised_as(errno, "as the engine worded it"))
    assert type(translated) is fault
    if fault is InvariantBroken and errno not in {3819, 1451, 1452}:
        assert str(translated) == f"{errno}: a value was refused"  # which the text may quote
    else:
        assert str(translated) == f"{errno}: as the engine worded it" or errno == 3572


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("Duplicate entry '7-k' for key 'oms_order.uk_order_no'", "uk_order_no"),
        ("Duplicate entry '7-k' for key 'uk_order_no'", "uk_order_no"),  # before 8.0.19
        ("Duplicate entry '42-k1' for key 'oms_order_request.PRIMARY'", "PRIMARY"),
        ("Duplicate entry ' for key 'x.y'' for key 'oms_order.uk_order_no'", "uk_order_no"),
    ],
)
def test_a_duplicate_names_its_key(message, key):
    translated = translate(pymysql.IntegrityError(1062, message))
    assert isinstance(translated, DuplicateKey)
    assert translated.key == key


def test_a_duplicate_in_another_language_still_is_one():
    translated = translate(pymysql.IntegrityError(1062, "文字"))
    assert isinstance(translated, DuplicateKey)
    assert translated.key == ""


@pytest.mark.parametrize(
    "error",
    [
        pymysql.ProgrammingError(1064, "You have an error in your SQL syntax"),
        pymysql.ProgrammingError(1146, "Table does not exist"),
        pymysql.ProgrammingError("Cursor closed"),
        pymysql.MySQLError(),
    ],
)
def test_a_programming_error_stays_what_it_is(error):
    assert translate(error) is error


def test_a_server_that_cannot_write_is_left_like_a_lost_connection():
    assert issubclass(ServerUnfit, ConnectionLost)


def test_a_broken_invariant_is_no_database_fault_that_a_retry_could_catch():
    assert not issubclass(InvariantBroken, DatabaseFault)
    assert not issubclass(InvariantBroken, TryAgain)
    assert issubclass(TimeShort, TryAgain)
    assert issubclass(TryAgain, LockstepError)
