"""The simulated turns against real ones.

Goal: what the product does with a backlog and with what comes meanwhile is what the simulation
does. Method: a recorded run of the product's decider on a real MySQL (load_model_measured.json);
its batches give a and b, its arrivals are played to the simulation, and both are asked how long
orders waited. What a batch takes is fitted; how batches form and who waits how long is not.
"""

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from infra.load.clock import Clock
from infra.load.deciders import Deciders, Order
from infra.load.figures import Line
from infra.load.stations import Database
from infra.load.waits import Waits
from tests.support.load_plans import a_deciding

RUN = json.loads(Path(__file__).with_name("load_model_measured.json").read_text("utf-8"))
ARRIVALS = [0.0] * RUN["waiting"] + RUN["arrivals"]
DECIDED = [end for _, end, orders in RUN["batches"] for _ in range(orders)]


def line() -> Line:
    """Through the median of each size, as the model's figures are medians."""
    took = defaultdict(list, {orders: [seconds] for seconds, orders in RUN["took_before"]})
    for begun, end, orders in RUN["batches"]:
        took[orders].append(end - begun)
    return Line.through((orders, median(seconds)) for orders, seconds in took.items())


LINE = line()


def simulated() -> tuple[list[float], int]:
    """When each order was decided, and in how many batches."""
    clock, decided = Clock(), []
    plan = a_deciding(line=LINE, batch_max=RUN["batch_max"], workers=1, begins_within_seconds=3600)
    deciders = Deciders(
        clock,
        Database(1),
        plan,
        [len(ARRIVALS)],
        lambda _, held: decided.append(clock.now) if held else None,
        lambda order: pytest.fail(f"{order} expired"),
    )

    def place() -> None:
        order = Order(0, clock.now, clock.now)
        deciders.line_up(order)
        clock.at(clock.now, deciders.ring, order)

    clock.feed(ARRIVALS, place)
    clock.run()
    return decided, deciders.batches


def waits(decided: list[float]) -> Waits:
    return Waits.of(end - come for end, come in zip(decided, ARRIVALS, strict=True))


def test_orders_wait_as_long_as_they_did():
    real, model = waits(DECIDED), waits(simulated()[0])
    assert model.mean == pytest.approx(real.mean, rel=0.1)
    assert model.p50 == pytest.approx(real.p50, rel=0.1)
    assert model.p99 == pytest.approx(real.p99, rel=0.1)
    assert model.max == pytest.approx(real.max, rel=0.1)


def test_a_backlog_goes_in_as_many_batches_and_then_each_is_decided_as_it_comes():
    decided, batches = simulated()
    assert batches == pytest.approx(len(RUN["batches"]), rel=0.05)
    # By the time that the backlog is gone nobody waits for longer than a few small batches.
    gone = next(n for n, (_, end, orders) in enumerate(RUN["batches"]) if orders < 10 and end)
    until = RUN["batches"][gone][1] * 1.2
    late = [end - come for end, come in zip(decided, ARRIVALS, strict=True) if come > until]
    assert Waits.of(late).p99 < 5 * LINE.seconds(2)
