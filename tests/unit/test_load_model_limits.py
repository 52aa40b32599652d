"""Where a formula says that something breaks, the simulation breaks too; and not before."""

import random
from dataclasses import replace
from functools import cache

import pytest

from infra.load import figures, limits, order_limits
from infra.load.arrivals import even
from infra.load.assumptions import Assumptions
from infra.load.deployment import Deployment
from infra.load.figures import Figures
from infra.load.limits import World
from infra.load.model import Model
from infra.load.options import Options
from infra.load.order_limits import of_steady
from infra.load.plan import plan
from infra.load.quotas import Quotas
from infra.load.sale import End, Sale, Why
from infra.load.sale_limits import of_sale

ENDLESS = {"spread": 0.0, "tries": 1.0}


@pytest.fixture(autouse=True)
def checked_in_figures(monkeypatch, tmp_path):
    """Whatever was measured on this machine."""
    monkeypatch.setattr(figures, "BENCH", tmp_path / "none.json")


@cache
def a_deployment(**template):
    return replace(Deployment.read(template, 1000), through_proxy=True)


def a_world(rtt_seconds=0.001, instance="db.r8g.large", warm=1000, region="us-east-1", **template):
    deployment = a_deployment(**template)
    measured, assumed = Figures.read(), Assumptions.read(ENDLESS)
    quotas = Quotas.read(region, {})
    made = plan(deployment, measured, assumed, quotas, quotas.instance(instance), rtt_seconds, warm)
    return World(deployment, measured, assumed, quotas, made, rtt_seconds)


def limit(found, name):
    [one] = [each for each in found if each.name == name]
    return one.per_second


def turned_away(world, rate, why, units=(10**6,), seconds=1):
    made = replace(
        world.plan,
        api_burst=1,
        database_patience_seconds=0.2 if why is Why.DATABASE else 5,
    )
    told = Sale(made, units, 1).run(even(int(rate * seconds), seconds, random.Random(1)))
    return told.turned_away[why]


@pytest.mark.parametrize(
    ("name", "why", "change"),
    [
        ("API requests of the account", Why.API, {"instance": "db.r8g.48xlarge"}),
        ("copies of create_order, while there is stock", Why.COPIES,
         {"instance": "db.r8g.12xlarge", "HttpConcurrencyMax": "50", "warm": 50}),
        ("database, while there is stock", Why.DATABASE, {}),
    ],
)  # fmt: skip
def test_what_a_formula_bounds_breaks_there(name, why, change):
    world = a_world(**change)
    bound = limit(of_sale(world, 1, 1000), name)
    assert turned_away(world, bound * 0.85, why) == 0
    assert turned_away(world, bound * 1.4, why) > 0


def test_what_comes_faster_than_a_turn_decides_waits_ever_longer():
    world = a_world(instance="db.r8g.48xlarge")
    bound = limit(of_sale(world, 1, 1000), "turns of the hot SKUs")
    longest = [
        Sale(replace(world.plan, api_rps=1e9), [10**6], 1)
        .run(even(int(bound * share * 2), 2, random.Random(1)))
        .waits(End.HELD)
        .max
        for share in (0.8, 1.3)
    ]
    assert longest[0] < 0.3 < longest[1]


def test_two_skus_are_two_turns_and_more_workers_none():
    world = a_world()
    one, two = (limit(of_sale(world, skus, 1000), "turns of the hot SKUs") for skus in (1, 2))
    assert two == 2 * one
    more = a_world(WorkerConcurrencyMax="100")
    assert limit(of_sale(more, 1, 1000), "turns of the hot SKUs") == one


def test_limits_come_in_the_order_in_which_they_break():
    for found in (of_sale(a_world(), 1, 17_000), of_steady(a_world(), 10_000)):
        rates = [each.per_second for each in found]
        assert rates == sorted(rates)
        assert all(each.change for each in found if each.per_second < 10_000)


def test_a_round_trip_costs_every_order_its_statements():
    near, far = (a_world(rtt).plan for rtt in (0, 0.001))
    assert far.place.alone(1) - near.place.alone(1) == pytest.approx(0.013)
    assert far.deciding.batch_seconds(100) - near.deciding.batch_seconds(100) == pytest.approx(
        0.012
    )


def test_a_class_is_large_enough_and_no_larger():
    world = a_world()
    instances = world.quotas.instances
    for work in (0.1, 1, 5, 20):
        found = limits.smallest(instances, world.figures, world.assumed, work)
        assert found is not None
        at = instances.index(found)
        smaller = instances[:at]
        assert limits.smallest(smaller, world.figures, world.assumed, work) is None
    assert limits.smallest(instances, world.figures, world.assumed, 10**6) is None


def test_lower_quotas_break_sooner():
    steady = [of_steady(a_world(region=region), 10_000) for region in ("us-east-1", "cn-north-1")]
    sends = [limit(found, "SendMessage to confirm.fifo") for found in steady]
    assert sends == [70_000 / 0.8, 2_400 / 0.8]


def a_model(**options):
    return Model(
        Options(
            **{"buyers": 20_000, "seconds": 2, "stock": 500, "batch": 1000, "rate": 100} | options
        )
    )


def test_once_changed_nobody_is_turned_away_and_the_wait_is_shorter():
    before, after = a_model().sale()
    assert before.told.ends[End.TURNED_AWAY] > 0
    assert after.told.ends[End.TURNED_AWAY] == 0
    assert after.told.ends[End.HELD] == before.told.ends[End.HELD] == 500
    assert after.setting.changes
    assert not before.setting.changes


def test_a_sale_that_the_deployment_carries_needs_no_change():
    answers = a_model(
        buyers=20, seconds=20, template={"DatabaseThroughProxy": "true"}, warm=10
    ).sale()
    assert len(answers) == 1
    assert answers[0].told.ends == {End.HELD: 20}


def test_a_steady_rate_is_answered_on_a_class_that_carries_it():
    answer = a_model(rate=2000, rate_seconds=2).steady()
    assert answer.told.ends == {End.HELD: 4000}
    assert answer.told.waits(End.HELD).p99 < 0.2
    assert sum(answer.copies.values()) == pytest.approx(
        2000 * sum(order_limits.copy_seconds(answer.world).values())
    )


def test_usage_of_a_million_orders_is_counted_from_their_way():
    usage = a_model().steady().usage
    # An order, three looks, a payment page for nine tenths, a notice for eight.
    assert usage.api_requests == pytest.approx(5.7e6)
    # Each is sent one message; workers receive and delete them ten at a time.
    assert usage.sqs_requests == pytest.approx(1e6 + 2e5)
    assert usage.invocations == pytest.approx(5.7e6 + 1e5)
