"""The load model's simulation against what can be computed.

Goal: its waits may be believed. Method: cases with a closed form (D/D/1, M/D/1, batches of a known
length, Little's law), and what must hold in any case (everybody ends once, nothing is oversold,
nobody is passed over), over plans that are drawn.
"""

import random
from dataclasses import astuple, replace

import pytest

from infra.load.arrivals import SHAPES, even, poisson
from infra.load.sale import End, Sale, Why
from infra.load.stations import Bucket, Copies, Database
from infra.load.waits import Waits
from tests.support.load_plans import a_deciding, a_plan, a_request


def sold(plan, arrivals, units=(), seed=1):
    return Sale(plan, units, seed).run(arrivals)


# --- queues with a closed form -------------------------------------------------------------------


def test_who_comes_slower_than_the_server_works_never_waits():
    told = sold(a_plan(), even(1000, 2, random.Random(1)))
    assert told.waits(End.HELD).max == pytest.approx(0.001)


def test_an_overloaded_server_lets_the_nth_wait_n_times_what_it_is_slower():
    """D/D/1: s = 1 ms, a buyer every 0.5 ms; the nth of 1000 begins (n - 1) · 0.5 ms late."""
    told = sold(a_plan(), even(1000, 0.5, random.Random(1)))
    waits = told.waits(End.HELD)
    assert waits.max == pytest.approx(0.001 + 999 * 0.0005)
    assert waits.mean == pytest.approx(0.001 + 999 * 0.0005 / 2)
    assert waits.p50 == pytest.approx(0.001 + 499 * 0.0005)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.8])
def test_independent_buyers_wait_as_pollaczek_and_khinchine_say(load):
    """M/D/1: the mean wait in line is load · s / (2 (1 - load))."""
    buyers, service = 40_000, 0.001
    told = sold(a_plan(), poisson(buyers, buyers * service / load, random.Random(7)))
    in_line = told.waits(End.HELD).mean - service
    assert in_line == pytest.approx(load * service / (2 * (1 - load)), rel=0.1)
    assert told.database_busy == pytest.approx(buyers * service)


def test_a_larger_database_is_quicker_in_proportion():
    told = sold(a_plan(database_speed=4), even(1000, 0.25, random.Random(1)))
    assert told.waits(End.HELD).max == pytest.approx(0.00025)


def test_copies_are_as_many_as_little_says():
    """L = rate · time: 500 a second, 20 ms each."""
    place = replace(a_request(0.0001), trips_seconds=0.02)
    told = sold(a_plan(place=place), poisson(20_000, 40, random.Random(3)))
    time = told.waits(End.HELD).mean
    assert told.copy_seconds / told.seconds == pytest.approx(500 * time, rel=0.01)
    assert told.copy_seconds == pytest.approx(20_000 * time)


# --- turns ---------------------------------------------------------------------------------------


def test_a_crowd_is_decided_batch_after_batch():
    """1000 at one moment: the database takes 1 ms each, then batches of what came meanwhile; the
    last is decided when the last batch of its queue is: never more than a batch behind."""
    told = sold(a_plan(place_hot=a_request(0)), [0.0] * 1000, [1000])
    assert told.ends == {End.HELD: 1000}
    # The first doorbell rings as the first order is there; the other 999 come into its next ones.
    assert told.batches == 11
    assert told.waits(End.HELD).max == pytest.approx(0.0101 + 9 * 0.02 + 0.01 + 0.0001 * 99)


def test_batches_grow_to_what_comes_while_one_is_decided():
    """n = rate · (a + b n), so n = rate · a / (1 - rate · b): 1000 a second, 10 ms, 0.1 ms: 11.1;
    an order waits for the rest of a batch and for its own, 1.5 of them on average."""
    told = sold(a_plan(place_hot=a_request(0)), even(20_000, 20, random.Random(1)), [20_000])
    size = 1000 * 0.01 / (1 - 1000 * 0.0001)
    assert told.orders / told.batches == pytest.approx(size, rel=0.02)
    assert Waits.of(told.at_turn).mean == pytest.approx(1.5 * size / 1000, rel=0.1)


def test_more_workers_are_no_use_to_one_turn():
    arrivals = even(20_000, 1, random.Random(1))
    few, many = (
        sold(
            a_plan(place_hot=a_request(0), deciding=a_deciding(workers=workers)),
            arrivals,
            [20_000],
        )
        for workers in (2, 1000)
    )
    assert few.waits(End.HELD).max == pytest.approx(many.waits(End.HELD).max, rel=0.02)
    assert few.waits(End.HELD).max == pytest.approx(20_000 / 5000 - 1, rel=0.02)


def test_two_skus_have_two_turns():
    arrivals = even(20_000, 1, random.Random(1))
    plan = a_plan(place_hot=a_request(0))
    one, two = (sold(plan, arrivals, units) for units in ([20_000], [10_000, 10_000]))
    assert one.seconds / two.seconds == pytest.approx(2, rel=0.1)


def test_orders_are_decided_in_the_order_in_which_they_were_placed():
    told = sold(a_plan(), even(3000, 6, random.Random(1)), [1000])
    # All came at one pace, so who was held arrived before all that were not.
    assert told.ends[End.HELD] == 1000
    assert told.sold_out_at == pytest.approx(2.0, abs=0.03)


def test_a_worker_whose_time_is_up_leaves_the_turn_to_the_next_doorbell():
    """It begins nothing after half a batch's time; without other doorbells the rest waits for its
    message to come again."""
    deciding = a_deciding(workers=1, event_size=1, begins_within_seconds=0.005, receives_max=1000)
    told = sold(a_plan(place_hot=a_request(0), deciding=deciding), [0.0] * 300, [300])
    assert told.ends == {End.HELD: 300}
    assert told.batches == 4


def test_a_message_that_came_too_often_is_a_dead_letter_and_its_order_is_decided_all_the_same():
    slow = a_deciding(workers=2, batch_max=1, event_size=1, again_seconds=0.01, receives_max=2,
                      patience_seconds=0.001)  # fmt: skip
    told = sold(a_plan(place_hot=a_request(0), deciding=slow), [0.0] * 200, [200])
    assert told.dead_letters > 0
    assert told.ends == {End.HELD: 200}


def test_who_waits_for_longer_than_the_limit_is_closed_by_the_sweep():
    deciding = a_deciding(batch_max=1, limit_seconds=20)
    told = sold(a_plan(place_hot=a_request(0), deciding=deciding), [0.0] * 10_000, [10_000])
    # A batch of one takes 10.1 ms; the first sweep that finds them over the limit comes at 60 s.
    assert told.ends[End.HELD] == pytest.approx(60 / 0.0101, rel=0.001)
    assert told.ends[End.HELD] + told.ends[End.EXPIRED] == 10_000


def test_stale_doorbells_let_a_turn_stand_idle_unless_any_of_them_counts():
    """Ten thousand decided orders' messages are ahead of those of the last few."""
    slow_look = a_deciding(look_seconds=0.05, begins_within_seconds=2)
    plan = a_plan(place_hot=a_request(0.0002), deciding=slow_look)
    arrivals = even(20_000, 4, random.Random(1))
    idle = sold(plan, arrivals, [20_000])
    woken = sold(replace(plan, deciding=replace(slow_look, any_doorbell=True)), arrivals, [20_000])
    assert Waits.of(woken.at_turn).max < Waits.of(idle.at_turn).max / 2


def test_a_message_that_sqs_refuses_is_sent_by_the_relay_and_nobody_waits_for_it_meanwhile():
    """One doorbell decides all that wait, so a second's quota of ten is enough for a thousand."""
    plan = a_plan(place_hot=a_request(0), send_rps=10)
    told = sold(plan, even(1000, 10, random.Random(1)), [1000])
    assert told.unsent == pytest.approx(1000 - 10 * 10 - 10, abs=2)
    assert Waits.of(told.at_turn).max < 0.2
    lost = sold(replace(plan, send_rps=0.001), even(2, 1, random.Random(1)), [2])
    assert lost.waits(End.HELD).max == pytest.approx(60.01 + 0.0002, abs=0.01)


# --- who is turned away --------------------------------------------------------------------------


def test_a_bucket_never_gives_more_than_its_burst_and_its_rate():
    bucket, lot, taken, now = Bucket(100, 50), random.Random(1), 0, 0.0
    for _ in range(20_000):
        now += lot.expovariate(1000)
        taken += bucket.take(now)
        assert taken <= 50 + 100 * now + 1e-6
    assert taken == pytest.approx(50 + 100 * now, abs=2)


def test_copies_start_as_fast_as_they_may_and_one_serves_one():
    copies = Copies(3, Bucket(1, 2), warm=0)
    assert [copies.enter(0), copies.enter(0), copies.enter(0)] == [True, True, None]
    copies.leave(0.5)
    assert copies.enter(0.5) is False
    assert copies.enter(1) is True
    assert copies.enter(9) is None
    assert (copies.started, copies.busy_max) == (3, 3)


def test_copies_that_run_already_are_never_cold_and_never_too_many():
    assert Copies(3, Bucket(1, 1), warm=9).started == 3
    assert Copies(3, Bucket(1, 1), warm=2).enter(0) is False


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"api_rps": 100, "api_burst": 1}, Why.API),
        ({"copies_max": 1}, Why.COPIES),
        ({"database_patience_seconds": 0}, Why.DATABASE),
    ],
)
def test_who_is_turned_away_asks_again_so_many_times(changes, why):
    arrivals = even(1000, 0.5, random.Random(1))
    told = sold(a_plan(tries=1, **changes), arrivals)
    assert told.ends[End.TURNED_AWAY] == told.turned_away[why] > 0
    again = sold(a_plan(tries=5, **changes), arrivals)
    assert again.ends[End.TURNED_AWAY] < told.ends[End.TURNED_AWAY]
    assert again.requests == 1000 + again.turned_away[why] - again.ends[End.TURNED_AWAY]


def test_nobody_waits_for_the_database_for_longer_than_the_product_lets_them():
    told = sold(a_plan(database_patience_seconds=0.1005), [0.0] * 1000)
    assert told.waits(End.HELD).max == pytest.approx(0.101)
    assert told.ends[End.HELD] == 101


def test_the_gate_refuses_once_nothing_is_left_and_its_look_may_be_old():
    arrivals = even(5000, 10, random.Random(1))
    fresh = sold(a_plan(), arrivals, [100])
    stale = sold(a_plan(gate_age_seconds=1), arrivals, [100])
    assert fresh.ends[End.HELD] == stale.ends[End.HELD] == 100
    assert fresh.ends[End.AT_TURN] < 20
    # Between no and a full second late: 250 of the 500 that come in it.
    assert stale.ends[End.AT_TURN] == pytest.approx(250, rel=0.2)
    assert fresh.waits(End.AT_GATE).p50 == pytest.approx(0.0001)


def test_what_follows_an_order_is_the_databases_work_too():
    told = sold(a_plan(later_work=0.002), even(100, 10, random.Random(1)))
    assert told.database_busy == pytest.approx(100 * 0.003)


# --- what holds in any case ----------------------------------------------------------------------


def drawn_plan(lot):
    return a_plan(
        database_speed=lot.choice([0.3, 1, 10]),
        api_rps=lot.choice([500, 10**9]),
        api_burst=lot.choice([1, 500]),
        copies_max=lot.choice([5, 50, 10**9]),
        copies_burst=lot.choice([5, 10**9]),
        copies_per_second=lot.choice([1, 100]),
        cold_seconds=lot.choice([0, 0.5]),
        gate_age_seconds=lot.choice([0, 1]),
        doorbell_seconds=lot.choice([0, 0.05]),
        send_rps=lot.choice([20, 10**9]),
        database_patience_seconds=lot.choice([0.05, 5]),
        spread=lot.choice([0, 0.3]),
        tries=lot.choice([1, 3]),
        deciding=a_deciding(
            batch_max=lot.choice([1, 10, 1000]),
            workers=lot.choice([1, 2, 10]),
            event_size=lot.choice([1, 10]),
            share_of_database=lot.choice([0, 0.5]),
            look_seconds=lot.choice([0, 0.02]),
            any_doorbell=lot.random() < 0.5,
            begins_within_seconds=lot.choice([0.01, 7]),
            receives_max=lot.choice([1, 5]),
            limit_seconds=lot.choice([1, 60]),
        ),
    )


@pytest.mark.parametrize("seed", range(25))
def test_everybody_ends_once_and_nothing_is_oversold(seed):
    lot = random.Random(seed)
    plan, stock = drawn_plan(lot), lot.choice([1, 100, 5000])
    skus = lot.choice([1, 1, 3])
    shape = SHAPES[lot.choice(list(SHAPES))]
    told = sold(plan, shape(2000, lot.choice([0.5, 5, 100]), lot), [stock] * skus, seed)
    assert sum(told.ends.values()) == 2000
    decided = told.ends[End.HELD] + told.ends[End.AT_TURN] + told.ends[End.EXPIRED]
    assert decided == told.orders
    assert told.ends[End.HELD] <= stock * skus
    if told.ends[End.AT_TURN] or told.ends[End.AT_GATE]:
        assert told.ends[End.HELD] >= stock
    assert told.taken == told.orders + told.ends[End.AT_GATE] + told.turned_away[Why.DATABASE]
    assert told.copies_max <= plan.copies_max
    assert told.deciders_max <= plan.deciding.workers
    assert told.requests == 2000 + sum(told.turned_away.values()) - told.ends[End.TURNED_AWAY]


def test_one_seed_is_one_sale():
    lot = random.Random(4)
    plan = drawn_plan(lot)
    arrivals = poisson(2000, 2, lot)
    first, again, other = (sold(plan, arrivals, [500, 500], seed) for seed in (1, 1, 2))
    assert astuple(first) == astuple(again)
    assert astuple(first) != astuple(other)


def test_a_wait_is_one_that_somebody_had():
    waits = Waits.of([5, 1, 4, 2, 3])
    assert (waits.count, waits.mean, waits.p50, waits.p99, waits.max) == (5, 3, 3, 5, 5)
    assert Waits.of(range(1, 101)).p99 == 99
    assert Waits.of([]).count == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_arrivals_are_so_many_in_order_and_in_time(shape):
    times = SHAPES[shape](10_000, 60, random.Random(1))
    assert len(times) == 10_000
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= 60


def test_shapes_are_what_they_are_called():
    front, spike = (SHAPES[name](10_000, 60, random.Random(1)) for name in ("front", "spike"))
    assert sum(time < 6 for time in front) == pytest.approx(5000, rel=0.05)
    assert sum(time < 1 for time in spike) == pytest.approx(1000 + 9000 / 60, rel=0.05)


def test_a_database_is_idle_until_something_comes():
    database = Database(2)
    assert database.finish(10, 1) == 10.5
    assert database.backlog(10.25) == 0.25
    assert database.backlog(11) == 0
