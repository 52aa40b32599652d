"""What the load model is given: read from where it stands, refused by name where it is wrong."""

import json
import os
from dataclasses import replace

import pytest

from infra.load import __main__ as command
from infra.load import assumptions, figures, options, quotas
from infra.load.assumptions import Assumptions
from infra.load.cost import Prices, Usage
from infra.load.deployment import Deployment
from infra.load.errors import ModelError
from infra.load.figures import Figures, Line
from infra.load.options import Options
from infra.load.quotas import Quotas
from lockstep.messaging.contracts import QUEUE_OF


@pytest.fixture(autouse=True)
def checked_in_figures(monkeypatch, tmp_path):
    """Whatever was measured on this machine."""
    monkeypatch.setattr(figures, "BENCH", tmp_path / "none.json")


def refused(name, act, *arguments):
    with pytest.raises(ModelError) as caught:
        act(*arguments)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"{name}: ")
    return str(caught.value)


# --- options -------------------------------------------------------------------------------------


def test_without_any_it_is_a_million_buyers_in_a_minute_and_ten_thousand_orders_a_second():
    asked = options.read([], {})
    assert (asked.buyers, asked.seconds, asked.rate) == (1_000_000, 60, 10_000)


def test_they_come_from_makes_line_and_from_words():
    environment = {"MAKEFLAGS": " -- buyers=5 shape=even", "buyers": "5", "shape": "even"}
    asked = options.read(["stock=7", "api_rps=20000", "tries=1", "ReceiveCountMax=9"], environment)
    assert (asked.buyers, asked.shape, asked.stock) == (5, "even", 7)
    assert asked.quotas == {"api_rps": 20_000}
    assert asked.assumed == {"tries": 1}
    assert asked.template == {"ReceiveCountMax": "9"}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("buyers", "name=value"),
        ("=5", "name=value"),
        ("buyer=5", "there is no buyer"),
        ("buyers=0", "whole number from 1 to 2,000,000"),
        ("buyers=-5", "not '-5'"),
        ("buyers=1e6", "not '1e6'"),
        ("buyers=٣", "not '٣'"),
        ("buyers=3000000", "2,000,000"),
        ("buyers=", "not ''"),
        ("seconds=0", "from 0.1"),
        ("seconds=nan", "not 'nan'"),
        ("seconds=inf", "not 'inf'"),
        ("rtt_ms=-1", "from 0"),
        ("shape=round", "even, poisson, front, spike"),
        ("rate=100000", "at most 500,000, not 1,000,000"),
        ("api_rps=0", "from 1"),
        ("tries=x", "not 'x'"),
        ("figures=", "names no file"),
    ],
)
def test_a_bad_one_is_refused_by_name(word, says):
    assert says in refused("BAD_OPTION", options.read, [word], {})


def test_the_command_says_what_is_wrong_and_fails(capsys, monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    with pytest.raises(SystemExit, match="BAD_OPTION: buyers is a whole number"):
        command.main(["buyers=many"])
    with pytest.raises(SystemExit, match="BAD_OPTION: region is none of"):
        command.main(["region=moon-1"])
    with pytest.raises(SystemExit, match="BAD_OPTION: instance is one of"):
        command.main(["instance=db.t2.small"])
    assert capsys.readouterr().out == ""


def test_a_small_sale_is_told_whole(capsys, monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    command.main(
        ["buyers=2000", "seconds=2", "stock=100", "rate=50", "rate_seconds=2", "batch=100"]
    )
    told = capsys.readouterr().out
    command.main(
        ["buyers=2000", "seconds=2", "stock=100", "rate=50", "rate_seconds=2", "batch=100"]
    )
    assert capsys.readouterr().out == told
    for part in ("| got a unit | 100 |", "## As deployed by default, in us-east-1", "batch_max=100",
                 "What breaks first", "Cost of this sale", "Cost of a million orders",
                 "p99", "RDS Proxy", "Assumptions (seed=1, rtt_ms=1)"):  # fmt: skip
        assert part in told
    for name in assumptions.names():
        assert f"- {name}=" in told


# --- what is deployed ----------------------------------------------------------------------------


def test_the_deployment_is_the_templates():
    deployed = Deployment.read({})
    assert deployed.workers.keys() == set(QUEUE_OF.values())
    assert deployed.workers["reserve"].batch_size == 10
    assert deployed.workers["refund"].batch_size == 1
    assert all(worker.high_throughput for worker in deployed.workers.values())
    assert deployed.http_functions == 6
    assert (deployed.memory_mb, deployed.timeout_seconds) == (512, 15)
    assert (deployed.instance, deployed.database_instances) == ("db.r8g.large", 2)
    assert deployed.sweep_works_seconds == 35


def test_its_parameters_can_be_set_as_for_a_deployment():
    deployed = Deployment.read({"WorkerConcurrencyMax": "50", "DatabaseThroughProxy": "true"}, 7)
    assert deployed.workers["confirm"].concurrency == 50
    assert deployed.through_proxy
    assert deployed.batch_max == 7
    assert "FunctionTimeout" in refused("BAD_OPTION", Deployment.read, {"FunctionTimeout": "11"})


# --- figures -------------------------------------------------------------------------------------


def test_a_line_through_points_of_a_line_is_that_line():
    line = Line.through((n, 0.01 + 0.0002 * n) for n in (10, 100, 2000))
    assert (line.fixed, line.each) == pytest.approx((0.01, 0.0002))
    assert line.seconds(500) == pytest.approx(0.11)


@pytest.mark.parametrize("points", [[(10, 1)], [(10, 1), (10, 2)], [(10, 1), (100, 0.5)]])
def test_points_that_make_no_line_are_refused(points):
    refused("BAD_FIGURES", Line.through, points)


def test_what_was_measured_here_takes_the_place_of_what_is_checked_in(tmp_path, monkeypatch):
    checked_in = Figures.read()
    row = json.loads(figures.FILE.read_text("utf-8"))["figures"]["place"]["row"]
    bench = tmp_path / "bench.json"
    rows = [{"per_second": 1}, row | {"per_second": 4321, "p99_ms": 7}]
    bench.write_text(json.dumps({"machine": "a laptop", "rows": rows, "ratios": {}}))
    found = Figures.read(bench)
    assert found.per_second["place"] == 4321
    assert found.work("place") == pytest.approx(1 / 4321)
    assert "a laptop" in found.sources[1]
    assert f"1 of {len(found.per_second)} figures" in found.sources[1]
    assert found.per_second["notice"] == checked_in.per_second["notice"]
    assert checked_in.per_second["place"] != 4321
    monkeypatch.setattr(figures, "BENCH", bench)
    assert Figures.read().per_second["place"] == 4321


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"rows": 1}', '{"rows": [1]}',
        '{"rows": [{"path": "place", "way": "ours", "skus": 1000, "clients": 64, "rtt_ms": 0}]}',
    ],
)  # fmt: skip
def test_a_bench_file_that_is_none_is_refused(text, tmp_path):
    bench = tmp_path / "bench.json"
    bench.write_text(text)
    refused("BAD_FIGURES", Figures.read, bench)
    refused("BAD_FIGURES", Figures.read, tmp_path / "missing.json")


# --- assumptions, quotas, prices -----------------------------------------------------------------


def test_every_assumption_has_its_reason_and_one_that_is_given_says_so():
    assumed = Assumptions.read({"tries": 1})
    assert all(assumed.reasons.values())
    assert assumed["tries"] == 1
    assert any(line.startswith("tries=1: ") and "(given)" in line for line in assumed.lines())


@pytest.mark.parametrize(
    "wrong",
    [{"busy_max": 2}, {"core_mb": 0}, {"paid_share": 0.95, "page_share": 0.1}, {"tries": 1.5}],
)
def test_an_assumption_that_cannot_be_is_refused(wrong):
    refused("BAD_OPTION", Assumptions.read, wrong)


@pytest.mark.parametrize(
    ("region", "fifo", "api"),
    [
        ("us-east-1", 70_000, 10_000),
        ("eu-central-1", 19_000, 10_000),
        ("ap-southeast-1", 9_000, 10_000),
        ("cn-north-1", 2_400, 10_000),
        ("af-south-1", 2_400, 2_500),
    ],
)
def test_quotas_are_the_regions(region, fifo, api):
    of_region = Quotas.read(region, {})
    assert (of_region.fifo_rps, of_region.api_rps, of_region.api_burst) == (fifo, api, api / 2)
    assert of_region.queue_rps(high_throughput=False) == 300


def test_quotas_can_be_raised_and_every_table_has_its_source():
    raised = Quotas.read("us-east-1", {"lambda_concurrency": 5000, "api_rps": 20_000})
    assert (raised.lambda_concurrency, raised.api_rps, raised.api_burst) == (5000, 20_000, 10_000)
    document = json.loads(quotas.FILE.read_text("utf-8"))
    regions = {name for table in ("fifo_rps", "api_rps") for name in document[table]}
    assert regions - {"elsewhere"} <= set(document["regions"])
    assert document["sources"].keys() >= {"fifo_rps", "api_rps", "lambda", "instances"}
    cores = [instance.cores for instance in raised.instances]
    assert cores == sorted(cores)


def test_a_bill_is_the_sum_of_its_services():
    usage = Usage(2e6, 1e6, 1000, 4e6, 10, 5e6, 20, 8, 4)
    bill = Prices.read(None).of(usage, "arm64")
    assert bill == pytest.approx(
        {
            "API Gateway": 2.0,
            "Lambda": 0.2 + 0.0133334,
            "SQS": 2.0,
            "CloudWatch Logs": 5.0,
            "Aurora instances": 8 * 0.138,
            "Aurora I/O": 1.0,
            "Aurora storage, a month": 2.0,
            "RDS Proxy": 0.06,
        }
    )
    assert Prices.read(None).of(usage, "x86_64")["Lambda"] > bill["Lambda"]


@pytest.mark.parametrize("change", [{"currency": None}, {"io_million": "a"}, {"io_million": -1}])
def test_prices_can_be_changed_and_bad_ones_are_refused(change, tmp_path):
    file = tmp_path / "mine.json"
    document = dict(Prices.read(None).document)
    file.write_text(json.dumps(document | {"currency": "CNY", "region": "cn-north-1"}))
    assert Prices.read(file).currency == "CNY"
    file.write_text(json.dumps(document | change))
    refused("BAD_PRICES", lambda: Prices.read(file).of(Usage(*[1.0] * 9), "arm64"))


def test_defaults_are_what_the_help_says():
    asked = Options()
    assert replace(asked, seed=2) != asked
    for name in ("buyers", "seconds", "stock", "skus", "shape", "rate", "region"):
        assert f"{name}={getattr(asked, name)}" in (options.__doc__ or "")
