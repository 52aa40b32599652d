"""Die after every round trip of every operation: it leaves all or nothing.

That what comes after it ends as if nobody had died is shown by the proof's section "crash".
"""

import pytest

from lockstep.db import connection
from tests.support.dying import count_round_trips, die_at
from tests.support.flows import FLOWS
from tests.support.histories import what_is_left


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
