"""The section that kills sees what it is there for."""

import re

import pytest

from infra.local import mysqld
from tests.proof.kills import outages
from tests.proof.kills import plants as kill_plants
from tests.proof.kills.lives import answered
from tests.proof.kills.section import DATABASE, SECTION
from tests.proof.kills.world import deployed
from tests.proof.section import Extent, Form, proved

FORGETFUL = {
    "orders": "UPDATE oms_order_request SET idempotency_key = 'k3' WHERE idempotency_key = 'k1'",
    "pages": "UPDATE oms_payment_attempt SET amount = amount + 1",
    "cancels": "UPDATE oms_order SET close_reason = 'EXPIRED' WHERE status = 'CLOSED'",
    "payments": "UPDATE oms_order_payment SET trade_no = 'another'",
    "returned": "UPDATE oms_order_payment SET refunded_amount = 0, state = 'APPLIED'",
    "refunds": "UPDATE oms_refund SET out_request_no = 'another'",
    "messages": "UPDATE ims_reservation SET state = 'RESERVED' WHERE state = 'CONFIRMED'",
}


def test_each_kind_of_promise_is_held_against_the_books(database):
    with deployed(database) as here:
        cancelled = here.world.place("k1").document["order"]["order_no"]
        assert answered(lambda: here.world.cancel(cancelled)).status == 200
        paid = here.world.place("k2").document["order"]["order_no"]
        here.world.pay(here.world.start(paid).document["out_trade_no"])
        here.world.settle()
        answered(lambda: here.refund(paid, "r1"))
        here.world.settle()
        assert here.promises.broken(database) == []
        for kind, forget in FORGETFUL.items():
            database.execute("BEGIN")
            assert database.execute(forget) > 0
            [broken, *_] = here.promises.broken(database)
            database.execute("ROLLBACK")
            assert broken.startswith(kind)


@pytest.mark.long
def test_a_server_that_does_not_flush_loses_what_was_acknowledged(database, monkeypatch):
    lazily = [option.replace("commit=1", "commit=0") for option in mysqld.DURABLE]
    monkeypatch.setattr(mysqld, "DURABLE", lazily)
    [fault] = proved(SECTION, DATABASE, database, Extent(Form.BOUNDED)).faults
    assert re.search(r"orders: \d+ was .+ and is None", fault.why), fault.why


@pytest.mark.long
def test_a_function_that_keeps_a_dead_connection_is_not_well_again(database, monkeypatch):
    monkeypatch.setattr(outages, "PATIENCE_SECONDS", 15)
    with pytest.raises(AssertionError, match="nothing is answered any more"):
        outages.survive("1.1", 1, kill_plants.keeps_a_dead_connection)
