"""What a limit is, and what all of them are made of."""

from collections.abc import Iterable
from dataclasses import dataclass

from infra.load.assumptions import Assumptions
from infra.load.deployment import Deployment
from infra.load.figures import Figures
from infra.load.plan import Plan, speed_of
from infra.load.quotas import Instance, Quotas


@dataclass(frozen=True, slots=True)
class Limit:
    """``how`` is the formula with its numbers, ``change`` what to do where it is too low."""

    name: str
    per_second: float
    how: str
    change: str


@dataclass(frozen=True, slots=True)
class World:
    """All that the limits are made of."""

    deployment: Deployment
    figures: Figures
    assumed: Assumptions
    quotas: Quotas
    plan: Plan
    rtt_seconds: float

    @property
    def connections(self) -> float:
        return self.plan.instance.connections * self.assumed["connections_max"]


def smallest(
    instances: Iterable[Instance], figures: Figures, assumed: Assumptions, work_per_second: float
) -> Instance | None:
    """The first class that does so much of the measured machine's work and is not too busy."""
    for instance in instances:
        if speed_of(instance, figures, assumed) * assumed["busy_max"] >= work_per_second:
            return instance
    return None


def larger(world: World, work: float, otherwise: str) -> str:
    """What to change where the database is too small for so much ``work`` a second."""
    instance = smallest(world.quotas.instances, world.figures, world.assumed, work)
    if instance is None:
        return f"no class carries it: several databases, by member or by SKU; {otherwise}"
    return f"instance={instance.name}; {otherwise}"


def by_need(limits: Iterable[Limit]) -> list[Limit]:
    return sorted(limits, key=lambda limit: limit.per_second)
