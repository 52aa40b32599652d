"""Packets: the same statements in the same order as one by one, and the same end at an error."""

import pytest

from lockstep.db import connection
from lockstep.db.errors import DuplicateKey
from lockstep.db.packet import BYTES_MAX
from lockstep.db.transaction import RollBack, in_transaction
from lockstep.orders.model import Placed
from lockstep.orders.place import place
from tests.support.builders import a_sku, place_command
from tests.support.packets import taken_apart

RAISE_STOCK = "UPDATE ims_sku_stock SET stock = stock + 1 WHERE sku_id = %s"
READ_STOCK = "SELECT stock FROM ims_sku_stock WHERE sku_id = %s"
INSERT_TURN = "INSERT INTO ims_hot_turn (sku_id) VALUES (%s)"
INSERT_EVENT = (
    "INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason) "
    "VALUES (%s, 'NONE', 'RESERVING', 'member:1', %s)"
)


def round_trips() -> int:
    return connection.current().round_trips


def test_each_statement_has_its_own_answer(database):
    a_sku(database)

    def work(tx):
        with tx.packet() as packet:
            nothing = packet.execute(RAISE_STOCK, (9,))
            first = packet.insert(INSERT_EVENT, (1, "A; DROP TABLE oms_order; --"))
            packet.insert_many(INSERT_TURN, [(1,), (2,)])
            raised = packet.execute(RAISE_STOCK, (1001,))
            stock = packet.all(READ_STOCK, (1001,))
        return nothing.changed, first.new_id, raised.changed, stock.rows

    before = round_trips()
    nothing, first, raised, stock = in_transaction(work)
    assert round_trips() - before == 2
    assert (nothing, raised, stock) == (0, 1, [{"stock": 11}])
    assert database.one("SELECT id, reason FROM oms_order_event") == {
        "id": first,
        "reason": "A; DROP TABLE oms_order; --",
    }
    assert database.count("ims_hot_turn") == 2


@pytest.mark.parametrize("apart", [False, True])
def test_the_first_error_ends_it_and_the_transaction_goes_on_from_there(database, apart):
    """As in BEGIN; INSERT; INSERT: whoever expects the error knows what was done and what not."""
    a_sku(database)

    def send(tx):
        with tx.packet() as packet:
            packet.execute(RAISE_STOCK, (1001,))
            packet.insert(INSERT_TURN, (1,))
            packet.insert(INSERT_TURN, (1,))
            packet.execute(RAISE_STOCK, (1001,))

    def work(tx):
        with pytest.raises(DuplicateKey, match="PRIMARY"):
            send(tx)
        return tx.one(READ_STOCK, (1001,))

    if apart:
        with taken_apart():
            assert in_transaction(work) == {"stock": 11}
    else:
        assert in_transaction(work) == {"stock": 11}
    assert database.stock(1001) == (11, 0)
    assert database.count("ims_hot_turn") == 1


def test_what_raises_while_it_is_written_is_not_sent(database):
    a_sku(database)

    def work(tx):
        with tx.packet() as packet:
            packet.execute(RAISE_STOCK, (1001,))
            raise RollBack("no")

    before = round_trips()
    assert in_transaction(work) == "no"
    assert round_trips() == before


def test_no_answer_is_known_before_it_was_sent(database):
    def work(tx):
        with tx.packet() as packet:
            reply = packet.execute(RAISE_STOCK, (1001,))
            with pytest.raises(ValueError, match="not sent yet"):
                _ = reply.changed

    in_transaction(work)


def test_what_would_pin_a_proxys_connection_goes_in_several(database, monkeypatch):
    def work(tx):
        with tx.packet() as packet:
            events = [packet.insert(INSERT_EVENT, (n, "X" * 30)) for n in range(300)]
            packet.insert_many(INSERT_TURN, [(n,) for n in range(4000)])
        return [event.new_id for event in events]

    sent = []
    driver = connection.current()._session
    run = driver.query

    def query(text, *more):
        sent.append(len(text))
        return run(text, *more)

    monkeypatch.setattr(driver, "query", query)
    ids = in_transaction(work)
    assert ids == sorted(set(ids))
    assert len(ids) == database.count("oms_order_event") == 300
    assert database.count("ims_hot_turn") == 4000
    assert BYTES_MAX / 2 < max(sent) <= 16 * 1024
    assert len(sent) < 10


@pytest.mark.parametrize("hot", [False, True])
def test_an_order_comes_to_the_same_in_packets_and_one_by_one(database, hot):
    seen = []
    for member_id in (1, 2):
        a_sku(database, 1001, hot=hot)
        a_sku(database, 1002)
        command = place_command({1001: 2, 1002: 1}, member_id=member_id, key="k")
        if member_id == 1:
            placed = place(command)
        else:
            with taken_apart():
                placed = place(command)
        assert isinstance(placed, Placed)
        rows = database.dump(_WRITTEN)
        seen.append(
            {
                table: [
                    {name: value for name, value in row.items() if name not in _OF_ITS_OWN}
                    for row in found
                ]
                for table, found in rows.items()
            }
        )
        database.empty()
    assert seen[0] == seen[1]


_WRITTEN = (
    *("oms_order", "oms_order_item", "oms_order_request", "oms_order_event", "outbox"),
    *("ims_reservation", "ims_reservation_item", "ims_sku_stock"),
)
_OF_ITS_OWN = {
    *("id", "order_id", "order_no", "member_id", "reservation_id", "created_at", "updated_at"),
    *("expires_at", "actor", "request_hash", "message_id", "group_key", "payload", "next_at"),
}
