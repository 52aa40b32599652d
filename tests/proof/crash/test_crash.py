"""No function is forgotten, and the trips are those that the product makes."""

from pathlib import Path

import functions
from tests.proof.crash.all_lives import LIVES
from tests.proof.crash.section import live
from tests.proof.crash.trips import Trip, Way

FUNCTIONS = {file.stem for file in Path(next(iter(functions.__path__))).glob("*.py")}


def test_every_function_has_a_life():
    assert {life.function for life in LIVES.values()} == FUNCTIONS


def test_a_life_is_counted_trip_by_trip(database):
    lived = live(database, LIVES["cancel_with_a_page"])
    ways = [trip.way for trip in lived.trips]
    assert ways[0] is Way.CONNECT
    assert ways.count(Way.CALL) == 2  # is it paid, and if not: close it
    assert ways.count(Way.COMMIT) == 2  # the wish, and its outcome
    assert ways.index(Way.SEND) > ways.index(Way.COMMIT)
    assert lived.trips[1] == Trip(Way.READ, "BEGIN")
    assert lived.calls == 1


def test_two_undisturbed_lives_are_the_same(database):
    life = LIVES["find_out_what_a_notice_meant"]
    first, second = live(database, life), live(database, life)
    assert [trip.way for trip in first.trips] == [trip.way for trip in second.trips]
    assert (first.soon, first.late) == (second.soon, second.late)
