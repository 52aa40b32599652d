"""The experiments show what they are for, also when they are small: the naive ways go wrong, ours
do not."""

import os
from collections.abc import Iterator

import pytest

from infra.experiments import hot_row, keys, oversell, twice
from infra.measuring.ground import Ground
from infra.measuring.table import Table, Way
from tests.support.database import Database


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """A schema of their own: they make tables."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    database = Database.create(f"lockstep_experiments_{worker}")
    with database.in_use(monkeypatch):
        yield Ground(database.server, database.name)
    database.drop()


def test_only_whoever_looks_first_pays_and_closes_one_order(ground):
    naive, guarded, ours = [way.here for way in twice.measure(ground, rounds=60).ways]
    assert naive[2] > 0
    assert (sum(guarded[:2]), guarded[2]) == (60, 0)
    assert (sum(ours[:2]), ours[2]) == (60, 0)


def test_only_whoever_looks_first_sells_too_many(ground):
    table = oversell.measure(ground, stock=30, threads=8)
    overwritten, looking, guarded, ours = [way.here for way in table.ways]
    assert overwritten[1] > 0
    assert looking[1] == -looking[2] >= 0
    assert guarded == ours == (30, 0, 0)


def test_a_long_random_key_takes_more_space(ground):
    table = keys.measure(ground, rows=5000, runs=1)
    sizes = [way.here[3] for way in table.ways]
    assert sizes[0] < sizes[1] < sizes[3]
    assert sizes[0] < sizes[2] < sizes[3]
    assert all(way.here[0] > 0 for way in table.ways)


def test_every_way_to_the_hot_row_is_measured(ground):
    table = hot_row.measure(ground, threads=4, seconds=0.3)
    assert len(table.ways) == 5
    assert all(way.here[0] > 0 for way in table.ways)


def test_a_table_sets_what_was_published_beside_what_was_measured():
    ways = [Way("looking first", (1000, 1.5), (990, 2.0)), Way("ours", (0, 0.5))]
    assert Table("A question", ("both", "s"), ways, "It matters.").lines() == [
        "A question",
        "",
        "|               | both, published |  here | s, published | here |",
        "| ---           |            ---: |  ---: |         ---: | ---: |",
        "| looking first |             990 | 1,000 |          2.0 |  1.5 |",
        "| ours          |               - |     0 |            - |  0.5 |",
        "",
        "It matters.",
    ]


def test_a_table_of_which_nothing_was_published_has_no_column_for_it():
    lines = Table("A question", ("sold",), [Way("ours", (20,))], "It holds.").lines()
    assert lines[2:5] == ["|      | sold |", "| ---  | ---: |", "| ours |   20 |"]
