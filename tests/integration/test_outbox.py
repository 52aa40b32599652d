"""The outbox: staged with the change, sent after its commit, kept where the send fails."""

import json

from lockstep.db import connection
from lockstep.db.transaction import RollBack, in_transaction
from lockstep.inventory.model import Refusal, Refused
from lockstep.inventory.release import release
from lockstep.messaging import outbox, store
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock, StockCommand
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, an_order
from tests.support.channel import cancel
from tests.support.dying import count_round_trips, die_at
from tests.support.flows import a_notice
from tests.support.holds import reserve_alone
from tests.support.queues import GONE, drain, receive

HOLD = "202611300100000000420001-1"
COMMAND = ReleaseStock(reservation_id=HOLD, order_id=1, correlation_id="c-1")


def stage(command: StockCommand = COMMAND) -> None:
    in_transaction(lambda tx: outbox.stage(tx, command))


def test_a_staged_command_arrives_with_its_group_its_own_id_and_its_body(database, sqs):
    stage()
    row = database.one("SELECT * FROM outbox")
    [message] = receive(sqs)
    assert message["Attributes"]["MessageGroupId"] == HOLD
    assert message["Attributes"]["MessageDeduplicationId"] == row["message_id"]
    assert ReleaseStock.model_validate_json(message["Body"]) == COMMAND
    assert json.loads(row["payload"]) == json.loads(message["Body"])
    assert (row["queue"], row["group_key"]) == ("release", HOLD)


def test_a_sent_command_is_marked_and_is_not_due(database, sqs):
    stage()
    row = database.one("SELECT sent_at, attempts FROM outbox")
    assert row["sent_at"] is not None
    assert row["attempts"] == 1


def test_each_command_goes_to_its_own_queue(database, sqs):
    stage(ConfirmStock(reservation_id=HOLD, order_id=1))
    assert len(receive(sqs, "confirm")) == 1
    assert receive(sqs, "release") == []


def test_a_fresh_row_is_left_to_its_own_sender_for_ten_seconds(database):
    stage()
    left = database.value("SELECT TIMESTAMPDIFF(MICROSECOND, created_at, next_at) FROM outbox")
    assert 9_990_000 <= left <= 10_010_000


def test_without_a_queue_of_its_own_a_process_leaves_the_row_to_the_relay(database, monkeypatch):
    monkeypatch.delenv("RELEASE_QUEUE_URL", raising=False)
    asked: list[int] = []
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: asked.append(1))
    stage()
    assert asked == []
    assert database.one("SELECT sent_at, attempts FROM outbox") == {"sent_at": None, "attempts": 0}


def test_a_send_that_fails_leaves_the_row_and_never_raises(database, sqs, monkeypatch):
    monkeypatch.setenv("RELEASE_QUEUE_URL", GONE)
    stage()
    assert database.one("SELECT sent_at, attempts FROM outbox") == {"sent_at": None, "attempts": 0}


def test_a_mark_that_fails_after_the_send_leaves_the_row_and_never_raises(
    database, sqs, monkeypatch
):
    def fail(*_):
        raise ConnectionError("gone")

    monkeypatch.setattr(store, "mark_sent", fail)
    stage()
    assert database.value("SELECT sent_at FROM outbox") is None
    assert len(receive(sqs)) == 1


def test_one_failed_send_does_not_keep_the_next_from_being_sent(database, sqs, monkeypatch):
    monkeypatch.setenv("RELEASE_QUEUE_URL", GONE)

    def work(tx):
        outbox.stage(tx, COMMAND)
        outbox.stage(tx, ConfirmStock(reservation_id=HOLD, order_id=1))

    in_transaction(work)
    assert len(receive(sqs, "confirm")) == 1
    unsent = database.rows("SELECT queue FROM outbox WHERE sent_at IS NULL")
    assert unsent == [{"queue": "release"}]


def test_a_transaction_that_rolls_back_neither_keeps_nor_sends_its_command(database, sqs):
    def work(tx):
        outbox.stage(tx, COMMAND)
        raise RollBack(None)

    in_transaction(work)
    assert database.count("outbox") == 0
    assert receive(sqs) == []


def test_nothing_is_sent_before_the_commit(database, sqs):
    seen = []

    def work(tx):
        outbox.stage(tx, COMMAND)
        seen.append(receive(sqs))

    in_transaction(work)
    assert seen == [[]]
    assert len(receive(sqs)) == 1


def test_two_commands_never_share_an_id_and_one_row_keeps_its_own(database, sqs):
    """SQS drops a repeated id: the same row sent twice arrives once, another row is another."""
    stage()
    row = database.one("SELECT * FROM outbox")
    outbox._send(row["message_id"], row["queue"], row["group_key"], row["payload"])
    stage()
    ids = [row["message_id"] for row in database.rows("SELECT message_id FROM outbox")]
    assert len(set(ids)) == 2
    arrived = [message["Attributes"]["MessageDeduplicationId"] for message in drain(sqs)]
    assert sorted(arrived) == sorted(ids)


def test_a_mark_is_made_once(database, sqs):
    stage()
    message_id = database.value("SELECT message_id FROM outbox")
    marked = in_transaction(lambda tx: store.mark_sent(tx, message_id))
    assert not marked
    assert database.value("SELECT attempts FROM outbox") == 1


def test_a_death_anywhere_between_the_commit_and_the_mark_leaves_the_row_to_the_relay(
    database, sqs
):
    """Sent or not: a row that is not marked is sent again, which is harmless."""
    trips = count_round_trips(stage)
    assert trips == 6  # BEGIN, INSERT, COMMIT; then BEGIN, UPDATE, COMMIT
    for trip, after in ((2, True), (3, False), (4, False), (4, True), (5, False)):
        database.empty()
        die_at(stage, trip, after=after)
        connection.discard()
        assert database.one("SELECT sent_at FROM outbox") == {"sent_at": None}, trip


def test_a_release_that_overtakes_its_reserve_wins(database, sqs):
    """Delivered in reverse: the tombstone is there first, and the late reserve is refused."""
    a_sku(database, 1001)
    release(HOLD, 1)
    assert reserve_alone({1001: 1}) == Refused(Refusal.RESERVATION_ALREADY_RELEASED)
    assert database.stock(1001) == (10, 0)


def test_a_cancel_and_a_payment_each_send_one_command_in_the_group_of_their_hold(database, sqs):
    a_sku(database, 1001)
    paid = an_order(member_id=1)
    accept(a_notice(database))
    cancelled = an_order(member_id=2)
    cancel(2, cancelled.order_no)
    [confirm], [released] = receive(sqs, "confirm"), receive(sqs, "release")
    assert confirm["Attributes"]["MessageGroupId"] == paid.reservation_id
    assert released["Attributes"]["MessageGroupId"] == cancelled.reservation_id
    assert database.count("outbox", sent_at=None) == 0
