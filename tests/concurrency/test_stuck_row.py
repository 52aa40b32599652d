"""Goal: a transaction that hangs on a hot row keeps nobody for ever, and costs nobody a connection.

Method: another session locks the SKU's row and goes to sleep. Fifty buyers come, each on a
connection of its own. Every one gets its answer while the row is still locked, and all can buy
once it is not.
"""

import time

import pytest

from lockstep.db import connection
from lockstep.orders import place as place_module
from lockstep.orders.model import InFlight, Placed
from lockstep.orders.place import place
from tests.support.builders import a_sku, assert_at_rest, place_command
from tests.support.threads import at_once

BUYERS = 50


def test_fifty_buyers_behind_a_stuck_transaction_are_answered(database, monkeypatch):
    a_sku(database, stock=BUYERS)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 2.0)
    commands = [place_command(member_id=member) for member in range(1, BUYERS + 1)]
    with database.another_session() as stuck, stuck.cursor() as cursor:
        cursor.execute("SELECT sku_id FROM ims_sku_stock WHERE sku_id = 1001 FOR UPDATE")
        began = time.monotonic()
        answers = at_once(*[lambda command=command: place(command) for command in commands])
        seconds = time.monotonic() - began
    assert answers == [InFlight()] * BUYERS
    # Its time, one lock wait that had begun, and what fifty threads on a busy machine need.
    assert seconds < 10
    connection.discard()
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 30.0)
    answers = at_once(*[lambda command=command: place(command) for command in commands])
    assert {type(answer) for answer in answers} == {Placed}
    assert database.stock(1001) == (BUYERS, BUYERS)
    assert_at_rest(database)


@pytest.mark.parametrize("table", ["oms_order", "ims_reservation", "outbox"])
def test_nothing_of_the_turned_away_is_left(database, monkeypatch, table):
    a_sku(database)
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 1.0)
    connection.discard()
    with database.another_session() as stuck, stuck.cursor() as cursor:
        cursor.execute("SELECT sku_id FROM ims_sku_stock WHERE sku_id = 1001 FOR UPDATE")
        assert place(place_command()) == InFlight()
    assert database.count(table) == 0
