"""A case of the interleavings is the same each time, and a small tree is seen whole."""

from tests.proof.interleavings.section import ENCOUNTERS, meeting, walk
from tests.proof.interleavings.tree import Tree, following
from tests.proof.section import Tally

CASES_MAX = 40


def test_a_schedule_is_the_same_history_each_time(database):
    with meeting(database, ENCOUNTERS["pay-cancel"], repeatable_read=False) as met:
        histories = []
        for _ in range(3):
            met.case(following("ABAABBAAAAA"))
            histories.append((met.stage.schedule, met.stage.told))
    assert histories == histories[:1] * 3
    assert any(line.endswith("waits") for line in histories[0][1])


def test_a_small_tree_is_walked_to_its_end(database):
    tally = Tally()
    with meeting(database, ENCOUNTERS["confirm-release"], repeatable_read=False) as met:
        walk(met, tally, Tree(0), CASES_MAX)
    assert (tally.tried, tally.possible, tally.faults) == (8, 8, [])
