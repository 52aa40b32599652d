"""The two questions, answered: a flash sale as it is deployed and once what is too small was
changed, and ordinary orders at a steady rate."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from infra.load import arrivals, limits, order_limits, sale_limits
from infra.load.assumptions import Assumptions
from infra.load.cost import MILLION, Prices, Usage
from infra.load.deployment import Deployment
from infra.load.figures import Figures
from infra.load.limits import Limit, World
from infra.load.options import Options
from infra.load.plan import MS, plan
from infra.load.quotas import Instance, Quotas
from infra.load.sale import Sale, Told

GB: Final = 10**9


@dataclass(frozen=True, slots=True)
class Setting:
    """What a simulation ran on; ``changes`` are those that were made to what is deployed."""

    world: World
    warm: int
    changes: Sequence[str]


@dataclass(frozen=True, slots=True)
class SaleAnswer:
    setting: Setting
    peak: float
    told: Told
    limits: Sequence[Limit]
    usage: Usage


@dataclass(frozen=True, slots=True)
class SteadyAnswer:
    world: World
    told: Told
    limits: Sequence[Limit]
    copies: dict[str, float]
    requests_per_order: float
    usage: Usage
    """Of a million orders."""


class Model:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.deployment = Deployment.read(options.template, options.batch)
        self.figures = Figures.read(options.figures)
        self.assumed = Assumptions.read(options.assumed)
        self.quotas = Quotas.read(options.region, options.quotas)
        self.prices = Prices.read(options.prices)
        self.instance = self.quotas.instance(options.instance or self.deployment.instance)

    # --- a flash sale ----------------------------------------------------------------------------

    def sale(self) -> list[SaleAnswer]:
        """As it is deployed; and, if that falls short, once changed."""
        lot = random.Random(self.options.seed)  # noqa: S311 - the seed is the point
        shape = arrivals.SHAPES[self.options.shape]
        times = shape(self.options.buyers, self.options.seconds, lot)
        peak = arrivals.peak(times)
        world = self._world(self.deployment, self.quotas, self.instance, self.options.warm)
        settings = [Setting(world, self.options.warm, ())]
        changed = self._changed(settings[0], peak)
        if changed.changes:
            settings.append(changed)
        return [self._simulated(setting, times, peak) for setting in settings]

    def _changed(self, setting: Setting, peak: float) -> Setting:
        """What the peak needs: a class that carries it, a proxy, quotas, warm copies."""
        more, quotas = self.assumed["headroom"], self.quotas
        plan_now = setting.world.plan
        work = peak * max(sale_limits.sale_work(plan_now), plan_now.gate.work)
        found = limits.smallest(quotas.instances, self.figures, self.assumed, work)
        instance = max(self.instance, found or quotas.instances[-1], key=lambda one: one.cores)
        larger = self._world(self.deployment, quotas, instance, 0).plan
        busy = ceil(peak * larger.place_hot.alone(larger.database_speed) * more)
        concurrency = max(
            quotas.lambda_concurrency, busy, ceil(peak * more / quotas.lambda_rps_per_copy)
        )
        api_rps = max(quotas.api_rps, ceil(peak * more))
        warm = max(self.options.warm, busy if busy > plan_now.copies_burst * MS else 0)
        proxied = replace(self.deployment, through_proxy=True, http_concurrency_max=0)
        raised = replace(
            quotas,
            lambda_concurrency=concurrency,
            api_rps=api_rps,
            api_burst=max(quotas.api_burst, api_rps / 2),
        )
        changes = _changes(
            ("instance", self.instance.name, instance.name),
            ("DatabaseThroughProxy", self.deployment.through_proxy, True),
            ("HttpConcurrencyMax", self.deployment.http_concurrency_max, 0),
            ("api_rps", quotas.api_rps, api_rps),
            ("lambda_concurrency", quotas.lambda_concurrency, concurrency),
            ("warm", self.options.warm, warm),
        )
        return Setting(self._world(proxied, raised, instance, warm), warm, changes)

    def _simulated(self, setting: Setting, times: Sequence[float], peak: float) -> SaleAnswer:
        options, world = self.options, setting.world
        told = Sale(world.plan, [options.stock] * options.skus, options.seed).run(times)
        found = sale_limits.of_sale(world, options.skus, peak)
        return SaleAnswer(setting, peak, told, found, self._sale_usage(world, told))

    def _sale_usage(self, world: World, told: Told) -> Usage:
        """Requests that the API itself turns away cost nothing."""
        assumed, deployment = self.assumed, self.deployment
        taken = told.taken
        gb = deployment.memory_mb / 1024
        cores = world.plan.instance.cores * deployment.database_instances
        batches = told.decider_invocations
        return Usage(
            api_requests=taken,
            invocations=taken + batches,
            gb_seconds=(told.copy_seconds + told.decider_seconds) * gb,
            sqs_requests=told.orders + 2 * batches,
            log_gb=(taken + batches) * assumed["log_bytes"] / GB,
            ios=told.orders * assumed["order_ios"] + taken * assumed["refusal_ios"],
            order_gb=told.orders * assumed["order_bytes"] / GB,
            core_hours=cores * assumed["sale_hours"],
            proxy_core_hours=cores * assumed["sale_hours"] * world.deployment.through_proxy,
        )

    # --- ordinary orders -------------------------------------------------------------------------

    def steady(self) -> SteadyAnswer:
        """Limits are those of what is deployed; the simulation runs on a class that carries the
        rate, since waiting on one that does not only grows."""
        options, quotas, assumed = self.options, self.quotas, self.assumed
        deployed = self._world(self.deployment, quotas, self.instance, 0)
        found = order_limits.of_steady(deployed, options.rate)
        work = options.rate * order_limits.order_work(deployed)
        instance = limits.smallest(quotas.instances, self.figures, assumed, work)
        world = self._enough(instance or quotas.instances[-1])
        lot = random.Random(options.seed)  # noqa: S311 - the seed is the point
        span = float(options.rate_seconds)
        times = arrivals.poisson(options.rate * options.rate_seconds, span, lot)
        told = Sale(world.plan, (), options.seed).run(times)
        busy = order_limits.copy_seconds(world)
        copies = {name: options.rate * seconds for name, seconds in busy.items()}
        requests = order_limits.requests_per_order(assumed)
        return SteadyAnswer(
            world, told, found, copies, requests, self._steady_usage(world, sum(busy.values()))
        )

    def _enough(self, instance: Instance) -> World:
        """On ``instance``, with quotas that the rate stays within and copies that run already."""
        options, more = self.options, self.assumed["headroom"]
        requests = order_limits.requests_per_order(self.assumed)
        deployment = replace(self.deployment, through_proxy=True, http_concurrency_max=0)
        first = self._world(deployment, self.quotas, instance, 0)
        busy = ceil(options.rate * sum(order_limits.copy_seconds(first).values()) * more)
        api_rps = max(self.quotas.api_rps, options.rate * requests * more)
        quotas = replace(
            self.quotas,
            lambda_concurrency=max(
                self.quotas.lambda_concurrency,
                busy,
                ceil(api_rps / self.quotas.lambda_rps_per_copy),
            ),
            api_rps=api_rps,
        )
        return self._world(deployment, quotas, instance, busy)

    def _steady_usage(self, world: World, copy_seconds: float) -> Usage:
        assumed, deployment = self.assumed, self.deployment
        requests = order_limits.requests_per_order(assumed) * MILLION
        events = sum(
            share * MILLION / deployment.workers[queue].batch_size
            for queue, share in (
                ("confirm", assumed["paid_share"]),
                ("release", 1 - assumed["paid_share"]),
            )
        )
        cores = world.plan.instance.cores * deployment.database_instances
        hours = MILLION / self.options.rate / 3600
        return Usage(
            api_requests=requests,
            invocations=requests + events,
            gb_seconds=copy_seconds * MILLION * deployment.memory_mb / 1024,
            sqs_requests=MILLION + 2 * events,
            log_gb=(requests + events) * assumed["log_bytes"] / GB,
            ios=MILLION * assumed["order_ios"],
            order_gb=MILLION * assumed["order_bytes"] / GB,
            core_hours=cores * hours,
            proxy_core_hours=cores * hours,
        )

    def _world(
        self, deployment: Deployment, quotas: Quotas, instance: Instance, warm: int
    ) -> World:
        rtt = self.options.rtt_ms * MS
        made = plan(deployment, self.figures, self.assumed, quotas, instance, rtt, warm)
        return World(deployment, self.figures, self.assumed, quotas, made, rtt)


def _changes(*settings: tuple[str, object, object]) -> list[str]:
    return [f"{name}={_text(now)} (was {_text(was)})" for name, was, now in settings if was != now]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.0f}" if isinstance(value, float) else str(value)
