"""What a simulation runs on: seconds, rates and counts, made of figures, assumptions, quotas and
the deployment. Database work is in seconds of the machine that was measured."""

from dataclasses import dataclass
from typing import Final

from infra.load.assumptions import Assumptions
from infra.load.deployment import Deployment
from infra.load.figures import Figures, Line
from infra.load.quotas import Instance, Quotas

MS: Final = 1 / 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One kind of request: what Python does first, what the database does, and how long the whole
    takes besides, unloaded."""

    python_seconds: float
    work: float
    trips_seconds: float
    after_seconds: float = 0

    def alone(self, speed: float) -> float:
        """How long a copy is busy with it while nobody else is there."""
        return self.python_seconds + self.work / speed + self.trips_seconds + self.after_seconds


@dataclass(frozen=True, slots=True)
class Deciding:
    """The workers of reserve.fifo, and the turns that they take."""

    line: Line
    trips_seconds: float
    share_of_database: float
    batch_max: int
    workers: int
    event_size: int
    look_work: float
    look_seconds: float
    any_doorbell: bool
    patience_seconds: float
    again_seconds: float
    begins_within_seconds: float
    receives_max: int
    limit_seconds: float

    def batch_seconds(self, orders: int) -> float:
        """a + b · n, and a round trip for each of its statements."""
        return self.line.seconds(orders) + self.trips_seconds

    @property
    def per_second(self) -> float:
        """The most that one turn decides."""
        return self.batch_max / self.batch_seconds(self.batch_max)


@dataclass(frozen=True, slots=True)
class Plan:
    instance: Instance
    database_speed: float
    api_rps: float
    api_burst: float
    copies_max: int
    warm: int
    copies_burst: float
    copies_per_second: float
    cold_seconds: float
    place: Request
    """Of an order whose stock is held inline."""
    place_hot: Request
    gate: Request
    gate_age_seconds: float
    doorbell_seconds: float
    send_rps: float
    database_patience_seconds: float
    spread: float
    tries: int
    pause_seconds: float
    deciding: Deciding
    later_work: float
    """An ordinary order's, after it was placed: page, notice, confirm or release, looks."""


def speed_of(instance: Instance, figures: Figures, assumed: Assumptions) -> float:
    """How many of the measured machines it is worth: (cores / measured cores) ^ exponent."""
    return float((instance.cores / figures.cores) ** assumed["scaling_exponent"])


def plan(
    deployment: Deployment,
    figures: Figures,
    assumed: Assumptions,
    quotas: Quotas,
    instance: Instance,
    rtt_seconds: float,
    warm: int,
) -> Plan:
    slower = max(1.0, assumed["core_mb"] / deployment.memory_mb)

    def request(name: str, python: str, trips: str, after: float = 0) -> Request:
        python_seconds = assumed[python] * MS * slower
        return Request(python_seconds, figures.work(name), assumed[trips] * rtt_seconds, after)

    return Plan(
        instance=instance,
        database_speed=speed_of(instance, figures, assumed),
        # Lambda turns away what is more than ten requests a second for each copy there may be.
        api_rps=min(quotas.api_rps, quotas.lambda_rps_per_copy * quotas.lambda_concurrency),
        api_burst=quotas.api_burst,
        copies_max=copies_max(deployment, assumed, quotas, instance),
        warm=warm,
        copies_burst=quotas.lambda_copies_burst,
        copies_per_second=quotas.lambda_copies_per_second,
        cold_seconds=assumed["cold_start_ms"] * MS,
        place=request("place", "place_core_ms", "place_trips"),
        place_hot=request("place_hot", "place_core_ms", "place_hot_trips", assumed["send_ms"] * MS),
        gate=request("gate", "gate_core_ms", "gate_trips"),
        gate_age_seconds=assumed["gate_age_seconds"],
        doorbell_seconds=(assumed["send_ms"] + assumed["doorbell_ms"]) * MS,
        send_rps=quotas.queue_rps(high_throughput=deployment.workers["reserve"].high_throughput),
        database_patience_seconds=deployment.within_seconds,
        spread=assumed["spread"],
        tries=int(assumed["tries"]),
        pause_seconds=assumed["pause_seconds"],
        deciding=_deciding(deployment, figures, assumed, rtt_seconds, slower),
        later_work=later_work(figures, assumed),
    )


def copies_max(
    deployment: Deployment, assumed: Assumptions, quotas: Quotas, instance: Instance
) -> int:
    """How many copies of create_order there can be: by the account, the template, and, without a
    proxy, by the connections that the workers leave."""
    limits = [quotas.lambda_concurrency]
    if deployment.http_concurrency_max:
        limits.append(deployment.http_concurrency_max)
    if not deployment.through_proxy:
        taken = sum(worker.concurrency for worker in deployment.workers.values())
        limits.append(int(instance.connections * assumed["connections_max"]) - taken)
    return max(1, min(limits))


def later_work(figures: Figures, assumed: Assumptions) -> float:
    """What the database does for an ordinary order after it was placed."""
    paid, paged = assumed["paid_share"], assumed["page_share"]
    return (
        (paid + paged) * figures.work("start_payment")
        + paid * (figures.work("notice") + figures.work("confirm"))
        + (1 - paid) * (figures.work("place") + figures.work("release"))
        + assumed["reads_per_order"] * figures.work("read")
    )


def _deciding(
    deployment: Deployment,
    figures: Figures,
    assumed: Assumptions,
    rtt_seconds: float,
    slower: float,
) -> Deciding:
    worker = deployment.workers["reserve"]
    python_seconds = assumed["worker_core_ms"] * MS * slower
    return Deciding(
        line=figures.decide,
        trips_seconds=assumed["decide_trips"] * rtt_seconds,
        share_of_database=min(1.0, assumed["decider_cores"] / figures.cores),
        batch_max=deployment.batch_max,
        workers=worker.concurrency,
        event_size=worker.batch_size,
        look_work=figures.work("read"),
        look_seconds=python_seconds + assumed["look_trips"] * rtt_seconds,
        any_doorbell=assumed["any_doorbell"] > 0,
        patience_seconds=deployment.patience_seconds,
        again_seconds=deployment.again_seconds,
        begins_within_seconds=deployment.timeout_seconds - deployment.message_seconds,
        receives_max=deployment.receives_max,
        limit_seconds=deployment.reserving_limit_seconds,
    )
