"""The interleavings see what only an order of steps shows, and a case is the same each time."""

import pytest

from tests.proof.interleavings.plants import PLANTS
from tests.proof.interleavings.section import ENCOUNTERS, SECTION, meeting, walk
from tests.proof.interleavings.tree import Tree, following
from tests.proof.section import Enough, Tally

CASES_MAX = 40


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_what_is_planted_is_found_and_its_case_shows_it_again(database, plant):
    tally = Tally()
    with plant(database):
        with (
            meeting(database, ENCOUNTERS[plant.seen_by], repeatable_read=False) as met,
            pytest.raises(Enough),
        ):
            walk(met, tally, Tree(0), CASES_MAX)
        case = tally.faults[0].case
        assert _is_fault(database, plant.seen_by, case)
    assert not _is_fault(database, plant.seen_by, case)


def _is_fault(database, part, case):
    try:
        SECTION.replay(database, part, case)
    except Exception:
        return True
    return False


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
    assert (tally.tried, tally.possible, tally.faults) == (10, 10, [])
