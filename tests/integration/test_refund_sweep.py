"""The sweep brings refunds back: what is due, what was lost, what nobody ever asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial

import pytest

from functions import refund_payment
from lockstep.alipay import gateway
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken, SettingMissing
from lockstep.payments import store
from lockstep.payments.accept import accept
from lockstep.payments.give_back import GiveBack, give_back
from lockstep.payments.model import Result
from lockstep.payments.owe_refund import owe, owe_forgotten, owe_the_rest
from lockstep.upkeep.refund_sweep_store import DueRefund
from lockstep.upkeep.restage_refund import restage_refund
from lockstep.upkeep.store import Mark
from lockstep.upkeep.sweep import Swept
from tests.support.batches import a_record, batch, failed_ids
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, deliver_outbox
from tests.support.channel import cancel, sweep
from tests.support.database import Database
from tests.support.lambda_context import Context
from tests.support.notices import payment_state
from tests.support.refund_channel import (
    LOSE_THE_ANSWER,
    RefundChannel,
    refund_rows,
    the_refund,
    time_passes,
)


@pytest.fixture
def channel() -> RefundChannel:
    channel = RefundChannel()
    channel.paid()
    return channel


@pytest.fixture
def late(database: Database) -> int:
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    accept(a_trade_notice(order, trade_no="T1"))
    deliver_outbox(database)
    return the_refund(database)


def run() -> Swept:
    swept = sweep(lambda: True)
    assert swept.failed == []
    return swept


def staged(database: Database) -> int:
    return database.count("outbox", queue="refund")


def minutes_pass(database: Database, minutes: int) -> None:
    """For what was staged, and for the refunds: both are that much older."""
    database.execute("UPDATE outbox SET created_at = created_at - INTERVAL %s MINUTE", (minutes,))
    database.execute(
        "UPDATE oms_refund SET next_try_at = next_try_at - INTERVAL %s MINUTE, "
        "called_at = called_at - INTERVAL %s MINUTE",
        (minutes, minutes),
    )


def test_a_refund_whose_message_was_lost_is_said_again_more_and_more_slowly(database, late):
    assert run().restaged == 0
    waits = []
    for _ in range(9):
        for minute in range(1, 100):
            minutes_pass(database, 1)
            if run().restaged:
                waits.append(minute)
                break
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert staged(database) == 10


def test_each_try_begins_the_count_anew(database, channel, late):
    for _ in range(6):
        minutes_pass(database, 60)
        assert run().restaged == 1
    channel.faults.append(LOSE_THE_ANSWER)
    channel.try_refund(late)
    minutes_pass(database, 1)
    assert run().restaged == 1


@pytest.mark.parametrize("state", ["DUE", "CALLING", "UNKNOWN"])
def test_what_is_due_in_any_state_is_brought_back_and_what_is_not_is_not(database, late, state):
    minutes_pass(database, 2)
    database.execute("UPDATE oms_refund SET state = %s", (state,))
    database.execute("UPDATE oms_refund SET next_try_at = NOW(3) + INTERVAL 1 MINUTE")
    assert run().restaged == 0
    database.execute("UPDATE oms_refund SET next_try_at = NOW(3) - INTERVAL 1 MINUTE")
    assert run().restaged == 1


@pytest.mark.parametrize("state", ["DONE", "FAILED"])
def test_what_has_ended_stays_so(database, late, state):
    database.execute("UPDATE oms_refund SET state = %s", (state,))
    database.execute("UPDATE oms_order_payment SET state = 'REFUND_FAILED'")
    minutes_pass(database, 100)
    assert run().restaged == 0


def test_money_that_nobody_asked_back_for_is_asked_for(database, channel, late):
    """As earlier versions left it."""
    database.execute("DELETE FROM oms_refund")
    database.execute("DELETE FROM outbox")
    assert run().restaged == 1
    assert staged(database) == 1
    assert run().restaged == 0
    channel.work_off(database)
    assert payment_state(database)[0] == "REFUNDED"
    assert_at_rest(database)


def test_of_money_that_went_back_in_part_the_rest_is_asked_for(database, channel, late):
    database.execute(
        "UPDATE oms_refund SET out_request_no = 'X300', amount = 3.00, state = 'DONE', "
        "requested_by = 'alipay', next_try_at = NULL"
    )
    database.execute("UPDATE oms_order_payment SET refunded_amount = 3.00")
    payment = database.one("SELECT id, order_id FROM oms_order_payment")
    database.execute(
        "INSERT INTO oms_money_entry (order_id, payment_id, kind, amount, source) "
        "VALUES (%s, %s, 'REFUND', -3.00, 'refund:alipay:T1:X300')",
        (payment["order_id"], payment["id"]),
    )
    channel.console_refund("X300", "3.00")
    assert run().restaged == 1
    channel.work_off(database)
    assert [str(row[1]) for row in refund_rows(database)] == ["3.00", "6.90"]
    assert payment_state(database)[0] == "REFUNDED"
    assert_at_rest(database)


def test_nobody_asks_again_for_money_that_somebody_asked_back_for_meanwhile(database):
    """The sweep had found it; then an operator asked for a part, under a number of its own."""
    assert accept(a_trade_notice(trade_no="T1")) is Result.UNMATCHED
    give_back(GiveBack("T1", "alice", "nobody claims it", Decimal("4.00"), "k1"))
    payment_id = database.value("SELECT id FROM oms_order_payment")
    assert owe_forgotten(payment_id, within_seconds=1) is False
    assert [row[1] for row in refund_rows(database)] == [Decimal("4.00")]


def test_nobody_asks_back_for_money_that_is_not_to_go_back(database):
    a_sku(database)
    assert accept(a_trade_notice(an_order())) is Result.APPLIED
    payment_id = database.value("SELECT id FROM oms_order_payment")
    assert owe_forgotten(payment_id, within_seconds=1) is False
    assert refund_rows(database) == []


def test_a_refund_is_owed_once(database, late):
    trade_no = database.value("SELECT trade_no FROM oms_order_payment")

    def again(tx: Tx) -> bool:
        payment, _ = store.lock_payment(tx, "alipay", trade_no)
        assert payment is not None
        return owe_the_rest(tx, payment, "LATE_PAYMENT")

    assert in_transaction(again) is False
    assert (len(refund_rows(database)), staged(database)) == (1, 1)


def test_only_its_own_number_shows_that_a_refund_was_asked_for(database, late):
    """Another key must not pass for it, or the money is never owed."""
    payment_id = database.value("SELECT id FROM oms_order_payment")
    database.execute("ALTER TABLE oms_refund ADD UNIQUE KEY uk_other (payment_id)")
    ask = partial(
        owe,
        payment_id=payment_id,
        out_request_no="R2",
        amount=Decimal("1.00"),
        requested_by="operator:alice",
        reason="broken",
    )
    try:
        with pytest.raises(InvariantBroken, match="uk_other"):
            in_transaction(ask)
    finally:
        database.execute("ALTER TABLE oms_refund DROP KEY uk_other")


def test_two_sweeps_bring_it_back_once(database, late):
    minutes_pass(database, 2)
    assert run().restaged == 1
    assert run().restaged == 0


# --- the worker ----------------------------------------------------------------------------------


@contextmanager
def connected(monkeypatch: pytest.MonkeyPatch, channel: RefundChannel) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "connect", channel.connect)
        yield


def deliver(database: Database) -> object:
    """Give every staged try to the worker, as the queue would."""
    rows = database.rows(
        "SELECT id, payload, group_key FROM outbox WHERE queue = 'refund' ORDER BY id"
    )
    records = [a_record(f"m{row['id']}", row["payload"], group=row["group_key"]) for row in rows]
    return refund_payment.handler(batch(*records), Context())


def test_the_worker_tries_once_and_a_repeat_changes_nothing(database, channel, late, monkeypatch):
    with connected(monkeypatch, channel):
        for _ in range(3):
            assert deliver(database) == {"batchItemFailures": []}
    assert len(channel.calls) == 1
    assert refund_rows(database)[0][2] == "DONE"


def test_a_fault_is_acknowledged_and_the_row_brings_it_back(database, channel, late, monkeypatch):
    def not_configured():
        raise SettingMissing("ALIPAY_PRIVATE_KEY")

    monkeypatch.setattr(gateway, "connect", not_configured)
    assert deliver(database) == {"batchItemFailures": []}
    assert refund_rows(database)[0][2] == "DUE"
    minutes_pass(database, 2)
    assert run().restaged == 1
    time_passes(database)
    with connected(monkeypatch, channel):
        deliver(database)  # twice, since twice it was said
    assert [call for call, _ in channel.calls] == ["refund"]
    assert sum(channel.executed.values()) == 1
    assert payment_state(database)[0] == "REFUNDED"


def test_a_message_that_cannot_be_read_is_delivered_again(database, late):
    record = a_record("m", '{"v":1,"type":"RefundPayment"}', group="1")
    assert failed_ids(refund_payment.handler(batch(record), Context())) == ["m"]


@pytest.mark.parametrize(
    "changed", ["state = 'DONE'", "next_try_at = NOW(3) + INTERVAL 1 MINUTE"], ids=str
)
def test_a_refund_that_was_tried_since_it_was_found_is_not_brought_back(database, late, changed):
    minutes_pass(database, 2)
    payment_id = database.value("SELECT id FROM oms_order_payment")
    found = DueRefund(late, payment_id, Mark())
    database.execute(f"UPDATE oms_refund SET {changed}")  # noqa: S608
    assert not restage_refund(found)
    assert staged(database) == 1
