"""Die before and after every round trip of every operation, then try again as life would.

The round trips are counted by one run, so a statement that is added later is a crash point too. The
member sends the request again, the queue delivers again, Alipay notifies again, the next sweep asks
again; then all rows equal those of the run that never died, and the invariants hold.
"""

import pytest

from lockstep.db import connection
from tests.support.builders import assert_at_rest
from tests.support.database import Database
from tests.support.dying import count_round_trips, die_at
from tests.support.flows import FLOWS, TALKS, TRIES, Flow
from tests.support.histories import what_is_left

ROUND_TRIPS_MIN = {
    "place": 12,
    "hold": 10,
    "sell_out": 12,
    "expire": 6,
    "cancel": 6,
    "pay": 9,
    "pay_late": 7,
    "refund": 10,
    "ask_refund": 13,
    "give_back": 8,
    "refund_late": 16,
    "refund_asked": 16,
    "reinstate": 17,
    "reinstate_in_vain": 15,
    "ask": 20,
    "attach": 10,
    "confirm": 6,
    "release": 6,
    "start": 6,
    "cancel_asked": 15,
    "expire_asked": 15,
    "poll_paid": 15,
}


def undisturbed(database: Database, flow: Flow) -> tuple[int, dict[str, list[str]]]:
    """How many round trips the flow takes, and what it leaves."""
    flow.prepare(database)
    trips = count_round_trips(lambda: flow.run(database))
    assert_at_rest(database)
    return trips, what_is_left(database)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("flow", FLOWS + TALKS + TRIES, ids=str)
def test_a_death_at_any_round_trip_changes_nothing_in_the_end(database, flow, after):
    trips, expected = undisturbed(database, flow)
    assert trips >= ROUND_TRIPS_MIN[flow.name]
    for trip in range(trips):
        database.empty()
        flow.prepare(database)
        die_at(lambda: flow.run(database), trip, after=after)
        connection.discard()
        assert flow.done(flow.run(database)), trip
        assert_at_rest(database)
        assert what_is_left(database) == expected, trip


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_a_death_before_the_commit_leaves_nothing_at_all(database, flow):
    """A commit is found as a round trip after which something is different."""
    flow.prepare(database)
    before = what_is_left(database)
    trips = count_round_trips(lambda: flow.run(database))
    done = what_is_left(database)
    assert done != before
    seen = []
    for trip in range(trips):
        database.empty()
        flow.prepare(database)
        die_at(lambda: flow.run(database), trip, after=True)
        connection.discard()
        seen.append(what_is_left(database))
    commit = seen.index(done)
    assert seen == [before] * commit + [done] * (trips - commit)


@pytest.mark.parametrize("flow", FLOWS + TALKS + TRIES, ids=str)
def test_two_deaths_in_a_row_change_nothing_either(database, flow):
    trips, expected = undisturbed(database, flow)
    database.empty()
    flow.prepare(database)
    for _ in range(2):
        die_at(lambda: flow.run(database), trips // 2, after=True)
        connection.discard()
    assert flow.done(flow.run(database))
    assert_at_rest(database)
    assert what_is_left(database) == expected
