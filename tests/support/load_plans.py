"""Plans for the load model's tests: round numbers, nothing random but what a test asks for."""

from dataclasses import replace
from typing import Any

from infra.load.figures import Line
from infra.load.plan import Deciding, Plan, Request
from infra.load.quotas import Instance

NO_LIMIT = 10**9


def a_deciding(**changes: Any) -> Deciding:
    """10 ms and 0.1 ms an order, a hundred orders at most: 20 ms a full batch, 5,000 a second."""
    deciding = Deciding(
        line=Line(0.01, 0.0001),
        trips_seconds=0,
        share_of_database=0,
        batch_max=100,
        workers=10,
        event_size=10,
        look_work=0,
        look_seconds=0,
        any_doorbell=False,
        patience_seconds=1,
        again_seconds=10,
        begins_within_seconds=7,
        receives_max=5,
        limit_seconds=300,
    )
    return replace(deciding, **changes)


def a_request(work: float = 0.001) -> Request:
    """A millisecond of the database, and nothing else."""
    return Request(python_seconds=0, work=work, trips_seconds=0)


def a_plan(**changes: Any) -> Plan:
    """Everything without bound but the database: a thousand orders a second, ten times as many
    refusals."""
    plan = Plan(
        instance=Instance("db.test", 2, 1000),
        database_speed=1,
        api_rps=NO_LIMIT,
        api_burst=NO_LIMIT,
        copies_max=NO_LIMIT,
        warm=0,
        copies_burst=NO_LIMIT,
        copies_per_second=NO_LIMIT,
        cold_seconds=0,
        place=a_request(),
        place_hot=a_request(),
        gate=a_request(0.0001),
        gate_age_seconds=0,
        doorbell_seconds=0,
        send_rps=NO_LIMIT,
        database_patience_seconds=5,
        spread=0,
        tries=1,
        pause_seconds=1,
        deciding=a_deciding(),
        later_work=0,
    )
    return replace(plan, **changes)
