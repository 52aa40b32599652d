"""A fault is planted, and the section reports it."""

import pytest

from tests.proof import section
from tests.proof.crash.plants import SEEN_BY, Sight
from tests.proof.crash.section import SECTION
from tests.proof.crash.trips import Trip
from tests.proof.section import Extent, Form, proved


def strike_only(monkeypatch: pytest.MonkeyPatch, sight: Sight) -> None:
    """Of all that the section tries, what sees the fault; up to the first time it does."""

    def modes(trip: Trip) -> tuple[object, ...]:
        return (sight.mode,) if trip.way is sight.way else ()

    monkeypatch.setattr(Trip, "modes", property(modes))
    monkeypatch.setattr(Trip, "distinct_modes", property(modes))
    monkeypatch.setattr(section, "FAULTS_MAX", 1)


@pytest.mark.parametrize("plant", SEEN_BY, ids=lambda plant: plant.__name__)
def test_the_section_sees(database, monkeypatch, plant):
    strike_only(monkeypatch, SEEN_BY[plant])
    with plant():
        tally = proved(SECTION, SEEN_BY[plant].part, database, Extent(Form.BOUNDED))
    assert [fault.case for fault in tally.faults] != []
    assert tally.tried > 0  # not the undisturbed life alone
