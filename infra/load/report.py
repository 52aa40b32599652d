"""What was found, in words and tables; the assumptions with it."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from infra.load.cost import MILLION, Usage
from infra.load.deployment import Deployment
from infra.load.limits import Limit
from infra.load.model import Model, SaleAnswer, SteadyAnswer
from infra.load.sale import End, Told
from infra.load.waits import Waits

MS = 1000


def lines(model: Model, sale: Sequence[SaleAnswer], steady: SteadyAnswer) -> Iterator[str]:
    options = model.options
    yield (
        f"# {options.buyers:,} buyers in {options.seconds:g} s ({options.shape}) for "
        f"{options.skus:,} hot SKU(s) with {options.stock:,} units each"
    )
    for answer in sale:
        yield from _sale(model, answer)
    yield from _steady(model, steady)
    yield from _rests_on(model, sale[-1])


# --- a flash sale --------------------------------------------------------------------------------


def _sale(model: Model, answer: SaleAnswer) -> Iterator[str]:
    setting, told, world = answer.setting, answer.told, answer.setting.world
    yield ""
    if setting.changes:
        yield f"## With {', '.join(setting.changes)}"
    else:
        yield f"## As deployed by default, in {model.options.region}"
    yield ""
    yield from _ends(told)
    yield ""
    yield (
        f"{told.requests:,} requests; turned away: "
        + (_counts({why.value: n for why, n in told.turned_away.items()}) or "nobody")
        + "."
    )
    if told.sold_out_at is None:
        yield f"Not sold out; {told.orders:,} orders placed."
    else:
        yield f"Sold out after {told.sold_out_at:.1f} s; {told.orders:,} orders placed until then."
    at_turn = Waits.of(told.at_turn)
    yield (
        f"From an order's commit to its decision: {_times(at_turn)}. At most "
        f"{told.waiting_max:,} waited at once, of "
        f"{world.plan.deciding.limit_seconds * world.plan.deciding.per_second:,.0f} that one turn "
        f"decides within ReservingLimitSeconds={world.plan.deciding.limit_seconds}."
    )
    yield from _concurrency(answer)
    yield ""
    yield f"What breaks first, against {answer.peak:,.0f} buyers in the busiest second:"
    yield ""
    yield from _limits(answer.limits, answer.peak, "buyers/s")
    yield ""
    yield from _costs(model, answer.usage, "this sale", told.buyers)


def _ends(told: Told) -> Iterator[str]:
    yield "| of the buyers | how many | p50 | p99 | longest |"
    yield "|---|---:|---:|---:|---:|"
    for end in End:
        if not told.ends[end]:
            continue
        waits = told.waits(end)
        cells = [_time(waits.p50), _time(waits.p99), _time(waits.max)]
        if end is End.TURNED_AWAY:
            cells = ["-"] * 3
        yield f"| {end.value} | {told.ends[end]:,} | {' | '.join(cells)} |"


def _concurrency(answer: SaleAnswer) -> Iterator[str]:
    told, plan, world = answer.told, answer.setting.world.plan, answer.setting.world
    workers = world.deployment.workers
    connections = told.copies_max + told.deciders_max
    pool = world.connections
    yield (
        f"Copies at once: create_order {told.copies_max:,} of {plan.copies_max:,}, reserve_stock "
        f"{told.deciders_max} of {workers['reserve'].concurrency}; {told.batches:,} batches in "
        f"{told.decider_invocations:,} invocations, {told.dead_letters:,} dead letters."
    )
    looks = told.waiting_max * plan.gate.alone(plan.database_speed)
    yield (
        f"Members who wait may look once a second (Retry-After: 1): up to {told.waiting_max:,} "
        f"requests a second more, {ceil(looks):,} copies of query_orders; not simulated."
    )
    shared = " that share" if world.deployment.through_proxy else " of"
    yield (
        f"Connections: {connections:,}{shared} {pool:,.0f} of {plan.instance.name}"
        f"{' through RDS Proxy' if world.deployment.through_proxy else ''}. "
        f"Database busy: {told.database_busy / told.seconds:.0%} of the {told.seconds:.0f} s."
    )
    queue = world.quotas.queue_rps(high_throughput=workers["reserve"].high_throughput)
    in_flight = workers["reserve"].concurrency * workers["reserve"].batch_size
    yield (
        f"reserve.fifo: {told.orders:,} messages, {told.unsent:,} of them left to relay_outbox; "
        f"{queue:,.0f} calls a second of each kind, "
        f"{queue * world.quotas.fifo_batch:,.0f} messages in batches; in flight at most "
        f"{in_flight} of {world.quotas.in_flight:,.0f}."
    )


# --- ordinary orders -----------------------------------------------------------------------------


def _steady(model: Model, answer: SteadyAnswer) -> Iterator[str]:
    rate, world, told = model.options.rate, answer.world, answer.told
    yield ""
    yield f"# {rate:,} ordinary orders a second, steady"
    yield ""
    busy = rate * (world.plan.place.work + world.plan.later_work) / world.plan.database_speed
    yield (
        f"On {world.plan.instance.name} ({world.plan.instance.cores} cores, {busy:.0%} busy"
        f"{', too small' if busy > model.assumed['busy_max'] else ''}), "
        f"lambda_concurrency={world.quotas.lambda_concurrency} api_rps={world.quotas.api_rps:.0f}."
    )
    yield f"From request to answer, stock held: {_times(told.waits(End.HELD))}."
    yield f"{_counts({end.value: n for end, n in told.ends.items()})}."
    yield (
        "Copies at once: "
        + ", ".join(f"{name} {copies:,.0f}" for name, copies in answer.copies.items())
        + f"; together {sum(answer.copies.values()):,.0f}."
    )
    yield f"Requests through the API: {rate * answer.requests_per_order:,.0f} a second."
    yield (
        f"Connections: one a copy, sharing {world.connections:,.0f} of {world.plan.instance.name} "
        "through RDS Proxy."
    )
    yield ""
    yield "What breaks first, as deployed by default:"
    yield ""
    yield from _limits(answer.limits, rate, "orders/s")
    yield ""
    yield from _costs(model, answer.usage, "a million orders", MILLION)


# --- tables --------------------------------------------------------------------------------------


def _limits(limits: Sequence[Limit], needed: float, unit: str) -> Iterator[str]:
    yield f"| what | breaks at {unit} | | by | then |"
    yield "|---|---:|---|---|---|"
    for limit in limits:
        short = limit.per_second < needed
        verdict = "breaks" if short else f"{limit.per_second / needed:.1f}x enough"
        change = limit.change if short else ""
        yield f"| {limit.name} | {limit.per_second:,.0f} | {verdict} | {limit.how} | {change} |"


def _costs(model: Model, usage: Usage, what: str, count: int) -> Iterator[str]:
    costs = model.prices.of(usage, model.deployment.architecture)
    currency = model.prices.currency
    each = ", ".join(f"{name} {cost:,.2f}" for name, cost in costs.items() if cost >= 0.005)
    whole = sum(costs.values())
    rate = f"; {whole * MILLION / count:,.2f} for a million" if count != MILLION else ""
    yield f"Cost of {what}: {whole:,.2f} {currency} ({each}){rate}."


def _rests_on(model: Model, last: SaleAnswer) -> Iterator[str]:
    yield ""
    yield "# What this rests on"
    yield ""
    line = model.figures.decide
    deciding = last.setting.world.plan.deciding
    yield f"Figures, of {model.figures.machine}:"
    yield from (f"- {source}" for source in model.figures.sources)
    yield from (f"- {figure}" for figure in model.figures.lines())
    yield (
        f"- a batch of n orders takes {line.fixed * MS:.1f} ms + {line.each * MS:.4f} ms n, and "
        f"{deciding.trips_seconds * MS:.0f} ms of round trips"
    )
    yield ""
    yield f"Deployment: {_fields(model.deployment)}."
    yield ""
    yield f"Quotas of {model.quotas.region}, {model.quotas.as_of} (infra/load/quotas.json)."
    yield f"Prices: {model.prices.says()}."
    if model.prices.region != model.quotas.region:
        yield f"They are those of {model.prices.region}, not of {model.quotas.region}."
    yield "Not in the path: EventBridge (its Scheduler wakes two functions a minute)."
    yield ""
    yield f"Assumptions (seed={model.options.seed}, rtt_ms={model.options.rtt_ms:g}):"
    yield from (f"- {assumption}" for assumption in model.assumed.lines())


def _fields(deployment: Deployment) -> str:
    names = ("memory_mb", "timeout_seconds", "http_concurrency_max", "through_proxy", "batch_max",
             "receives_max", "reserving_limit_seconds", "instance")  # fmt: skip
    return ", ".join(f"{name}={getattr(deployment, name)}" for name in names)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)


def _times(waits: Waits) -> str:
    return f"p50 {_time(waits.p50)}, p99 {_time(waits.p99)}, longest {_time(waits.max)}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * MS:.0f} ms"
