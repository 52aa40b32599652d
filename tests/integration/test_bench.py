"""The benchmarks run every way that they compare, and do not let one pass that loses a piece: also
when they are small."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar
from xml.etree import ElementTree

import pytest

from infra.bench import oscar, our_notice, our_rows, ratios, way
from infra.bench.__main__ import main
from infra.bench.crowd import Client, Crowd, Outcome, Seat
from infra.bench.limits import BareMerge, OneUpdate
from infra.bench.mall import MallCreate, MallFinish
from infra.bench.naive import CheckThenUpdate
from infra.bench.oscar import OscarAllocate
from infra.bench.our_notice import OurNotice
from infra.bench.our_reserve import OurReserve
from infra.bench.ours import OurFinish, OurPlace
from infra.bench.picture import BARS, NotWhole, draw
from infra.bench.rows import Case, Row, run_once
from infra.bench.seed_orders import SeedNotice, SeedPlace
from infra.bench.seeds import SeedFinish, SeedReserve
from infra.bench.way import Verdict, Way
from infra.measuring.ground import Ground
from tests.support.database import Database

SECONDS = 0.3
SAFE = (
    OurReserve(40),
    OurReserve(40, batch_max=10),
    OurReserve(40, batch_max=10, stock=15),
    OurReserve(60, skus=20),
    OurFinish("confirm", 30, 10),
    OurFinish("release", 30, 10),
    OurPlace(10),
    OurPlace(1, hot=True),
    OurNotice(10),
    SeedReserve(),
    SeedReserve(skus=10),
    SeedReserve(stock=20),
    SeedReserve(stock=16, buckets=8),
    SeedFinish("confirm", 30),
    SeedFinish("release", 30),
    SeedPlace(10),
    SeedNotice(30),
    MallCreate(),
    MallCreate(stock=20),
    MallFinish("pay", 30),
    MallFinish("cancel", 30),
    OneUpdate(),
    BareMerge(10),
    BareMerge(10, skus=5),
)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A schema of their own, and databases of the peers beside it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    database = Database.create(f"lockstep_bench_{worker}")
    with pytest.MonkeyPatch.context() as patch, database.in_use(patch):
        for name in ("ALIPAY_APP_ID", "ALIPAY_SELLER_IDS", "ALIPAY_PUBLIC_KEY"):
            patch.setenv(name, "")
        our_notice.let_notices_come()
        made = Ground(database.server, database.name)
        way.make_peers(made)
        yield made
    database.drop()


@pytest.fixture(scope="module")
def crowd(ground: Ground) -> Iterator[Crowd]:
    with Crowd() as processes:
        yield processes


def ran(ground: Ground, crowd: Crowd, case: Case) -> Row:
    row = Row("a test", case)
    run_once(ground, crowd, row, SECONDS)
    return row


@pytest.mark.parametrize("one", SAFE, ids=str)
def test_every_way_does_its_work_and_loses_nothing(ground, crowd, one):
    row = ran(ground, crowd, Case("any", one, clients=2))
    assert row.wrong == []
    assert row.lost == 0
    assert row.done > 0
    assert row.per_second > 0
    assert 0 < row.millis(0.5) <= row.millis(0.99)
    assert row.trips > 0


def test_our_sale_ends_at_the_last_piece_in_order_of_arrival(ground, crowd):
    row = ran(ground, crowd, Case("reserve", OurReserve(60, 20, stock=25), clients=2))
    assert (row.done, row.wrong) == (60, [])
    assert ground.row("SELECT MAX(id), COUNT(*) FROM oms_order WHERE status <> 'CLOSED'") == (
        25,
        25,
    )


def test_looking_first_is_reported_as_losing(ground, crowd):
    row = ran(ground, crowd, Case("reserve", CheckThenUpdate(stock=20), clients=8))
    assert row.lost > 0
    assert row.document()["lost"] == row.lost
    assert row.wrong == []  # that is what it is here to show


def test_a_way_that_must_not_lose_is_wrong_when_it_does(ground, crowd):
    row = ran(ground, crowd, Case("reserve", PretendsToBeSafe(stock=20), clients=8))
    assert row.wrong == [
        f"a test, check, then update, 8 clients: {row.lost} pieces were lost or sold twice"
    ]


@dataclass(frozen=True)
class PretendsToBeSafe(CheckThenUpdate):
    may_lose: ClassVar[bool] = False


def test_django_oscar_runs_its_own_code(ground, crowd):
    oscar.ensure()
    row = ran(ground, crowd, Case("reserve", OscarAllocate(stock=5), clients=4))
    assert row.done >= 5
    assert row.lost == row.done - 5
    assert row.verdicts[0].broken == ()


@pytest.mark.parametrize(
    ("planted", "name"),
    [
        (
            "UPDATE ims_sku_stock SET lock_stock = lock_stock - 1",
            "what a SKU has locked is the sum of its holds",
        ),
        (
            "INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason) "
            "SELECT 1, 'RESERVING', 'PENDING_PAYMENT', 'x', 'x'",
            "every order is decided once",
        ),
        (
            "UPDATE oms_order_event SET id = id + 1000 WHERE order_id = 2 AND to_status <> "
            "'RESERVING'",
            "holds are taken in order of arrival",
        ),
        (
            "UPDATE oms_order SET prev_status = 'RESERVING', status = 'CLOSED', "
            "close_reason = 'OUT_OF_STOCK' WHERE id = 1",
            "nobody is refused before somebody who came later",
        ),
        (
            "UPDATE ims_sku_stock SET stock = stock + 1",
            "nobody is refused while there is stock",
        ),
    ],
)
def test_what_is_wrong_afterwards_is_found(ground, crowd, planted, name):
    sold_out = OurReserve(20, stock=10)
    assert ran(ground, crowd, Case("reserve", sold_out, clients=1)).wrong == []
    ground.execute(planted)
    found = our_rows.broken(ground, at_rest=True)
    assert any(text.startswith(name) for text in found)


def test_a_round_trip_takes_the_wait(ground, crowd):
    row = ran(ground, crowd, Case("reserve", OneUpdate(), clients=1, wait_ms=5))
    assert row.trips == 1
    assert row.millis(0) >= 5


def test_a_client_that_fails_ends_the_run_with_its_fault(ground):
    with Crowd() as crowd, pytest.raises(ZeroDivisionError):
        crowd.run(Failing(), clients=3, wait_ms=0, seconds=SECONDS)


@dataclass(frozen=True)
class Failing:
    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        yield Client(lambda: 1 // seat.number)


# --- what is made of rows ------------------------------------------------------------------------


def a_row(section: str, one: Way, runs: list[float], wait_ms: float = 0, lost: int = 0) -> Row:
    row = Row(section, Case("reserve", one, 8, wait_ms), runs)
    for run in runs:
        row.outcomes.append(Outcome(int(run), 1.0, 1, [0.001]))
        row.verdicts.append(Verdict(int(run), lost))
    return row


def test_a_ratio_is_the_median_of_pairs_with_the_best_of_the_others():
    rows = [
        a_row("hot", OurReserve(1), [100, 400, 900]),
        a_row("hot", SeedReserve(), [1, 1, 1]),
        a_row("hot", SeedReserve(), [10, 20, 100]),
    ]
    ratio = ratios.of_rows(rows)["hot_best_0ms"]
    assert ratio.pairs == [10, 20, 9]
    assert ratio.value == 10


def test_of_time_less_is_better():
    rows = [a_row("place", OurPlace(1), [200], 1), a_row("place", SeedPlace(1), [100], 1)]
    ratio = ratios.of_rows(rows)["place_wall_1ms"]
    assert ratio.value == 0.5
    assert ratios.THRESHOLDS["place_wall_1ms"].holds(ratio.value)
    assert not ratios.THRESHOLDS["place_throughput_0ms"].holds(ratio.value)


def test_the_picture_shows_every_bar_and_who_loses():
    rows = [
        {
            "section": section,
            "name": name,
            "rtt_ms": wait,
            "per_second": 100.0,
            "done": 100,
            "lost": 40 if name == "check, then update" else 0,
        }
        for _, section, name in BARS
        for wait in (0, 1)
    ]
    svg = draw({"rows": rows, "machine": "Machine: a <fast> one"})
    shown = [text.text for text in ElementTree.fromstring(svg).iter() if text.text]
    assert [label for label, _, _ in BARS if label not in shown] == []
    assert shown.count("100, 40% of them lost") == 2
    assert "Machine: a <fast> one" in shown
    with pytest.raises(NotWhole, match="no row of hot"):
        draw({"rows": rows[2:], "machine": ""})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "everything"], "no part ['everything']"),
        (["--repeats", "0"], "0 is not above 0"),
        (["--seconds", "soon"], "invalid"),
    ],
)
def test_a_bad_option_is_told(words, said, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert said in capsys.readouterr().err
