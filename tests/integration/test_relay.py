"""The relay: what no handler got rid of goes out, entry by entry, whatever dies or is refused."""

import json
import secrets
from collections.abc import Iterable

import pytest

from functions import relay_outbox
from lockstep.db import connection
from lockstep.db.transaction import in_transaction
from lockstep.messaging import relay as relay_module
from lockstep.messaging import store
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock
from lockstep.messaging.relay import CLAIM_MAX, Relayed, relay
from lockstep.payments.accept import accept
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.channel import cancel
from tests.support.database import Database
from tests.support.dying import count_round_trips, die_at
from tests.support.lambda_context import Context
from tests.support.queues import GONE, Refusing, drain, receive
from tests.support.threads import Meeting, at_once


def unlimited() -> bool:
    return True


def unsent(database: Database, *groups: str, queue: str = "release") -> list[str]:
    """Rows that are due, one for each of ``groups``; their bodies say which and in what order."""
    bodies = [json.dumps({"group": group, "nth": nth}) for nth, group in enumerate(groups)]
    ids = [secrets.token_hex(16) for _ in groups]

    def work(tx):
        for message_id, group, body in zip(ids, groups, bodies, strict=True):
            store.insert_outbox(tx, message_id, queue, f"{group}-1", body)

    in_transaction(work)
    database.execute("UPDATE outbox SET next_at = created_at WHERE message_id IN %s", (ids,))
    return bodies


def make_due(database: Database) -> None:
    database.execute("UPDATE outbox SET next_at = NOW(3) - INTERVAL 1 SECOND WHERE sent_at IS NULL")


def parsed(bodies: Iterable[str]) -> list[tuple[str, int]]:
    found = [json.loads(body) for body in bodies]
    return [(message["group"], message["nth"]) for message in found]


def test_what_the_handlers_sent_is_not_the_relays(database, sqs):
    a_sku(database)
    cancel(42, an_order().order_no)
    assert database.count("outbox", sent_at=None) == 0
    assert relay(unlimited) == Relayed(sent=0, failed=0, left=0)


def test_what_was_sent_is_not_sent_again_though_its_time_comes(database, sqs):
    unsent(database, "a")
    assert relay(unlimited).sent == 1
    database.execute("UPDATE outbox SET next_at = NOW(3) - INTERVAL 1 SECOND")
    assert relay(unlimited) == Relayed(sent=0, failed=0, left=0)


def test_each_row_goes_to_its_queue_in_its_group_under_its_own_id(database, sqs, monkeypatch):
    for queue in ("CONFIRM", "RELEASE"):
        monkeypatch.setenv(f"{queue}_QUEUE_URL", GONE)
    a_sku(database)
    paid, closed = an_order(), an_order()
    accept(a_trade_notice(paid))
    cancel(42, closed.order_no)
    assert database.count("outbox", sent_at=None) == 2
    for queue in ("confirm", "release"):
        url = sqs.get_queue_url(QueueName=f"{queue}.fifo")["QueueUrl"]
        monkeypatch.setenv(f"{queue.upper()}_QUEUE_URL", url)
    assert relay(unlimited).sent == 0, "they are their senders' for ten seconds"
    make_due(database)
    assert relay_outbox.handler({}, Context(milliseconds=50_000)) == {
        "sent": 2,
        "failed": 0,
        "left": 0,
    }
    [confirm], [release] = receive(sqs, "confirm"), receive(sqs, "release")
    assert ConfirmStock.read(confirm["Body"]).reservation_id == paid.reservation_id
    assert ReleaseStock.read(release["Body"]).order_id == closed.id
    for message, order in ((confirm, paid), (release, closed)):
        row = database.one("SELECT * FROM outbox WHERE group_key = %s", (order.reservation_id,))
        assert message["Attributes"]["MessageGroupId"] == row["group_key"]
        assert message["Attributes"]["MessageDeduplicationId"] == row["message_id"]
        assert row["sent_at"] is not None
        assert row["attempts"] == 1


def test_it_goes_on_until_nothing_is_due(database, sqs):
    unsent(database, *[f"g{n}" for n in range(2 * CLAIM_MAX + 5)])
    assert relay(unlimited) == Relayed(sent=2 * CLAIM_MAX + 5, failed=0, left=0)
    assert len(drain(sqs)) == 2 * CLAIM_MAX + 5
    assert database.count("outbox", sent_at=None) == 0


def test_it_stops_when_time_is_short_and_says_what_is_left(database, sqs):
    unsent(database, *[f"g{n}" for n in range(CLAIM_MAX + 5)])
    time = iter([True, False])
    assert relay(lambda: next(time)) == Relayed(sent=CLAIM_MAX, failed=0, left=5)
    assert relay_outbox.handler({}, Context(milliseconds=4_000)) == {
        "sent": 0,
        "failed": 0,
        "left": 5,
    }


# --- what SQS refuses ----------------------------------------------------------------------------


def test_a_refused_entry_stays_and_the_others_are_marked(database, sqs, monkeypatch):
    bodies = unsent(database, "a", "b", "c")
    monkeypatch.setattr(
        "lockstep.messaging.sqs.client", lambda: Refusing(sqs, lambda body: '"b"' in body)
    )
    assert relay(unlimited) == Relayed(sent=2, failed=1, left=0)
    left = database.one("SELECT payload FROM outbox WHERE sent_at IS NULL")
    assert parsed([left["payload"]]) == [("b", 1)]
    assert parsed(m["Body"] for m in drain(sqs)) == parsed([bodies[0], bodies[2]])


def test_a_broken_groups_later_messages_wait_and_other_groups_go_on(database, sqs, monkeypatch):
    """The first of "a" fails: its second and third are not even tried; "b" goes out whole."""
    unsent(database, "a", "b", "a", "b", "a", "c")
    refusing = Refusing(sqs, lambda body: json.loads(body) == {"group": "a", "nth": 0})
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: refusing)
    assert relay(unlimited) == Relayed(sent=3, failed=3, left=0)
    tried = [entry for call in refusing.calls for entry in parsed(call)]
    assert tried == [("a", 0), ("b", 1), ("c", 5), ("b", 3)]
    make_due(database)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: sqs)
    assert relay(unlimited) == Relayed(sent=3, failed=0, left=0)
    of_a = [one for one in parsed(m["Body"] for m in drain(sqs)) if one[0] == "a"]
    assert of_a == [("a", 0), ("a", 2), ("a", 4)]


def test_a_group_that_broke_stays_broken_for_the_rest_of_the_run(database, sqs, monkeypatch):
    """Its second message is far behind, in another claim."""
    monkeypatch.setattr(relay_module, "CLAIM_MAX", 2)
    unsent(database, "a", "b", "c", "a")
    refusing = Refusing(sqs, lambda body: json.loads(body) == {"group": "a", "nth": 0})
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: refusing)
    assert relay(unlimited) == Relayed(sent=2, failed=2, left=0)
    assert [entry for call in refusing.calls for entry in parsed(call)] == [
        ("a", 0),
        ("b", 1),
        ("c", 2),
    ]


def test_one_group_of_two_queues_is_two_groups(database, sqs, monkeypatch):
    unsent(database, "a", queue="confirm")
    unsent(database, "a", queue="release")
    monkeypatch.setenv("CONFIRM_QUEUE_URL", GONE)
    assert relay(unlimited) == Relayed(sent=1, failed=1, left=0)
    assert len(drain(sqs)) == 1


def test_a_queue_that_is_gone_or_unknown_does_not_hold_up_the_others(database, sqs, monkeypatch):
    unsent(database, "a", queue="reserve")
    unsent(database, "b", queue="confirm")
    unsent(database, "c", queue="release")
    monkeypatch.delenv("RESERVE_QUEUE_URL")
    monkeypatch.setenv("CONFIRM_QUEUE_URL", GONE)
    assert relay(unlimited) == Relayed(sent=1, failed=2, left=0)
    assert len(drain(sqs)) == 1


def test_a_queue_that_this_process_does_not_know_is_not_called(database, monkeypatch):
    asked: list[int] = []
    monkeypatch.delenv("RELEASE_QUEUE_URL", raising=False)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: asked.append(1))
    unsent(database, "a")
    assert relay(unlimited) == Relayed(sent=0, failed=1, left=0)
    assert asked == []


def test_the_relay_ends_as_soon_as_nothing_is_due(database):
    looks = iter([True])
    assert relay(lambda: next(looks)) == Relayed(sent=0, failed=0, left=0)


def test_a_message_that_fails_again_and_again_is_tried_less_and_less_often(
    database, sqs, monkeypatch
):
    unsent(database, "a")
    monkeypatch.setenv("RELEASE_QUEUE_URL", GONE)
    pauses = []
    for attempts in range(1, 13):
        assert relay(unlimited) == Relayed(sent=0, failed=1, left=0)
        row = database.one(
            "SELECT attempts, TIMESTAMPDIFF(SECOND, NOW(3), next_at) + 1 AS pause FROM outbox"
        )
        assert row["attempts"] == attempts
        pauses.append(row["pause"])
        make_due(database)
    assert pauses == [60, 120, 240] + [300] * 9


def test_a_body_is_sent_as_it_was_staged(database, sqs):
    body = {"v": 1, "type": "ReleaseStock", "reservation_id": "x-1", "note": '热点 "🔥"\n'}
    in_transaction(lambda tx: store.insert_outbox(tx, "0" * 32, "release", "x-1", json.dumps(body)))
    make_due(database)
    relay(unlimited)
    [message] = drain(sqs)
    assert json.loads(message["Body"]) == body


# --- what dies, and what comes late --------------------------------------------------------------


def test_a_relay_that_dies_anywhere_leaves_every_row_to_the_next(database, sqs):
    """Between claim and send the row is due again after its lease; between send and mark it is
    sent again under the same id, which the queue drops."""

    def run() -> Relayed:
        return relay(unlimited)

    unsent(database, "a", "b", "a")
    trips = count_round_trips(run)
    assert trips == 13
    drain(sqs)
    for trip in range(trips):
        for after in (False, True):
            database.empty()
            bodies = unsent(database, "a", "b", "a")
            die_at(run, trip, after=after)
            connection.discard()
            leased = database.value(
                "SELECT COUNT(*) FROM outbox WHERE sent_at IS NULL "
                "AND next_at > NOW(3) + INTERVAL 61 SECOND"
            )
            assert leased == 0, trip
            make_due(database)
            relay(unlimited)
            assert database.count("outbox", sent_at=None) == 0, trip
            assert sorted(parsed(m["Body"] for m in drain(sqs))) == sorted(parsed(bodies)), trip


def test_while_a_lease_runs_no_other_relay_takes_the_row(database, sqs):
    unsent(database, "a")
    die_at(lambda: relay(unlimited), 3, after=True)  # claimed, not sent
    connection.discard()
    assert relay(unlimited) == Relayed(sent=0, failed=0, left=0)
    database.execute("UPDATE outbox SET next_at = next_at - INTERVAL 60 SECOND")
    assert relay(unlimited) == Relayed(sent=1, failed=0, left=0)


def test_a_row_that_commits_late_is_sent_though_younger_ones_were(database, sqs):
    late = (
        "INSERT INTO outbox (message_id, queue, group_key, payload, next_at) VALUES "
        "(%s, 'release', 'late-1', '{\"group\": \"late\", \"nth\": 0}', NOW(3))"
    )
    with database.another_session() as session, session.cursor() as cursor:
        cursor.execute(late, ("f" * 32,))
        unsent(database, "a")
        assert relay(unlimited) == Relayed(sent=1, failed=0, left=0)
        ids = database.one("SELECT id FROM outbox")
        assert ids["id"] > cursor.lastrowid
        session.commit()
    assert relay(unlimited) == Relayed(sent=1, failed=0, left=0)
    assert [group for group, _ in parsed(m["Body"] for m in drain(sqs))] == ["a", "late"]


def test_two_relays_at_once_send_each_row_once(database, sqs, monkeypatch):
    monkeypatch.setattr(relay_module, "CLAIM_MAX", 10)
    unsent(database, *[f"g{n}" for n in range(100)])
    monkeypatch.setattr(store, "lock_due", Meeting().after(store.lock_due))
    calls = Refusing(sqs, lambda _: False)
    monkeypatch.setattr("lockstep.messaging.sqs.client", lambda: calls)
    one, two = at_once(*[lambda: relay(unlimited)] * 2)
    assert one.sent + two.sent == 100
    assert (one.failed, two.failed) == (0, 0)
    assert min(one.sent, two.sent) >= 10
    assert len([entry for call in calls.calls for entry in call]) == 100
    assert len(drain(sqs)) == 100


@pytest.mark.parametrize("queue", ["reserve", "confirm", "release"])
def test_every_queue_of_the_outbox_is_the_relays(database, sqs, queue):
    unsent(database, "a", queue=queue)
    assert relay(unlimited).sent == 1
    assert len(drain(sqs, queue)) == 1
