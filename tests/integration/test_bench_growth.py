"""The growth runs, small: the past is one that the product could have left, a run does what it
says, and leaves nothing behind."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from infra.bench import growth, growth_fill, growth_pairs, our_notice
from infra.bench.crowd import Crowd
from infra.bench.growth_pairs import Comparison, Pairs, lower_bound
from infra.bench.growth_paths import PATHS
from infra.bench.growth_present import Side, a_present
from infra.bench.growth_rows import HOT_SKU, ORDERS_EACH, STOCK
from infra.local import invariants
from infra.local.steps import SetupError
from infra.measuring.ground import Ground
from tests.support.database import Database

SHORT, LONG = 200, 400
AT_REST = "a paid order's stock is sold, a closed order's is given back, an open order's is held"
MEMBERS = SHORT // ORDERS_EACH
COUNTED = (
    "oms_order", "oms_order_item", "oms_order_request", "oms_order_event", "oms_payment_attempt",
    "oms_order_payment", "oms_money_entry", "oms_notice", "ims_reservation",
    "ims_reservation_item", "outbox",
)  # fmt: skip


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    with pytest.MonkeyPatch.context() as monkeypatch:
        short, long = (Database.create(f"lockstep_{of}_{worker}") for of in ("short", "long"))
        with short.in_use(monkeypatch):
            our_notice.let_notices_come()
            made = []
            for database, past in ((short, SHORT), (long, LONG)):
                ground = Ground(database.server, database.name)
                growth_fill.make(ground, past)
                # Other tests keep this server busy: nobody waits for it to settle.
                made.append(Side(ground, past, MEMBERS, settle_seconds=0))
            yield made[0], made[1]
        short.drop()
        long.drop()


@pytest.fixture(scope="module")
def crowd(sides) -> Iterator[Crowd]:
    with Crowd() as crowd:
        yield crowd


def rows_of(side: Side) -> list[int]:
    return [side.ground.row(f"SELECT COUNT(*) FROM {table}")[0] for table in COUNTED]  # noqa: S608


def broken(side: Side) -> dict[str, object]:
    return {one.name: row for one in invariants.INVARIANTS if (row := side.ground.row(one.query))}


def test_every_invariant_holds_of_the_past(sides):
    for side in sides:
        assert broken(side) == {}


def test_a_past_that_was_made_is_known_again(sides):
    short, long = (side.ground for side in sides)
    assert growth_fill.is_made(long, LONG, like=short)
    assert not growth_fill.is_made(long, SHORT, like=short)
    assert not growth_fill.is_made(replace(long, schema="lockstep_never"), LONG, like=short)
    short.execute("ALTER TABLE oms_order DROP KEY ix_order_turn")
    try:
        assert not growth_fill.is_made(long, LONG, like=short)
    finally:
        short.execute("ALTER TABLE oms_order ADD KEY ix_order_turn (turn_sku_id, status, id)")


def test_the_past_has_everything_that_orders_leave(sides):
    counts = dict(zip(COUNTED, rows_of(sides[1]), strict=True))
    paid = sum(i % 7 < 5 for i in range(1, LONG + 1))
    assert counts["oms_order"] == counts["oms_order_request"] == counts["ims_reservation"] == LONG
    assert counts["oms_payment_attempt"] == LONG
    assert counts["oms_order_item"] == counts["ims_reservation_item"] == LONG + LONG // 4
    assert counts["oms_order_event"] == 2 * LONG + LONG // 5
    assert counts["outbox"] == LONG + LONG // 5
    assert counts["oms_order_payment"] == counts["oms_money_entry"] == counts["oms_notice"] == paid


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_measured_and_leaves_nothing_behind(sides, crowd, path):
    before = [rows_of(side) for side in sides]
    short, long = sides
    comparison = Comparison(crowd, short, long, 0.1)
    pairs = comparison.measure(path, repeats=1)
    assert comparison.wrong == []
    assert len(pairs.short) == len(pairs.long) == 1
    assert min(pairs.short + pairs.long) > 0
    assert [rows_of(side) for side in sides] == before
    assert [broken(side) for side in sides] == [{}, {}]


def test_a_run_that_did_not_do_what_it_says_is_reported(sides, crowd, monkeypatch):
    wrong_state = replace(PATHS["place"], done="oms_order WHERE id > {past} AND status = 'PAID'")
    monkeypatch.setitem(vars(growth_pairs), "PATHS", {"place": wrong_state})
    short, long = sides
    comparison = Comparison(crowd, short, long, 0.1)
    comparison.measure("place", repeats=1)
    assert len(comparison.wrong) == 4
    assert "0 in the tables" in comparison.wrong[0]


@pytest.mark.parametrize("status", ["RESERVING", "PENDING_PAYMENT", "PAID", "CLOSED"])
def test_a_present_is_one_that_could_be(sides, status):
    """Only what a message is under way for has not come to rest."""
    side = sides[0]
    with a_present(side, status, 30):
        assert side.ground.row("SELECT COUNT(*), MAX(id) FROM oms_order") == (SHORT + 30,) * 2
        under_way = status in {"PAID", "CLOSED"}
        assert list(broken(side)) == [AT_REST] * under_way
        locked = 0 if status == "RESERVING" else 30
        assert side.ground.row("SELECT SUM(lock_stock) FROM ims_sku_stock") == (locked,)
    assert side.ground.row("SELECT SUM(stock) FROM ims_sku_stock") == (STOCK * HOT_SKU,)


def test_the_lower_bound_is_an_order_statistic():
    assert lower_bound([0.9, 0.5, 0.95, 0.7, 1.0, 1.1, 0.8]) == 0.7  # second of seven: 1 in 16
    assert lower_bound([0.9, 0.7, 1.0, 0.8, 0.95]) == 0.7  # first of five: 1 in 32
    assert lower_bound([0.9]) == 0.9


def test_a_path_that_slows_down_is_shown():
    slow = Pairs("place", [100.0, 100.0, 100.0], [80.0, 95.0, 97.0])
    even = Pairs("list", [100.0], [101.0])
    lines = growth.table([slow, even], 10_000, 5_000_000)
    assert lines[2] == "| place | 100 | 95 | 0.95 | 0.80 | MISSED |"
    assert lines[3].endswith("| 1.01 | 1.01 | holds |")


def test_what_others_kept_stays(tmp_path):
    file = tmp_path / "bench.json"
    growth.keep(file, "ratios", {"a": 1})
    growth.keep(file, "growth", [2])
    growth.keep(file, "growth", [3])
    assert json.loads(file.read_text()) == {"ratios": {"a": 1}, "growth": [3]}


def test_a_past_that_does_not_fit_the_disk_is_refused(sides):
    ground = replace(sides[0].ground, server=replace(sides[0].ground.server, socket="here"))
    with pytest.raises(SetupError, match="past orders want"):
        growth._make_room(ground, 10**12)


@pytest.mark.parametrize("words", [["--rows", "30"], ["--only", "nothing"], ["--repeats", "0"]])
def test_sizes_that_cannot_be_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        growth.main(words)
    assert "error" in capsys.readouterr().err
