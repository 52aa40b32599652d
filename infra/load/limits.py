"""Where each resource ends, by formula, in buyers or orders a second; in the order in which that
happens as the load grows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infra.load.assumptions import Assumptions
from infra.load.deployment import Deployment
from infra.load.figures import Figures
from infra.load.plan import MS, Plan, later_work, speed_of
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


def sale_work(plan: Plan) -> float:
    """What the database does for a buyer who is not refused at the gate: place and decide."""
    deciding = plan.deciding
    batch = deciding.line.seconds(deciding.batch_max) * deciding.share_of_database
    return plan.place_hot.work + batch / deciding.batch_max


def _by_need(limits: Iterable[Limit]) -> list[Limit]:
    return sorted(limits, key=lambda limit: limit.per_second)


# --- a flash sale, in buyers a second ------------------------------------------------------------


def of_sale(world: World, skus: int, needed: float) -> list[Limit]:
    return _by_need([*_of_the_api(world, needed), *_of_the_turns(world, skus, needed)])


def _of_the_api(world: World, needed: float) -> list[Limit]:
    plan, quotas, speed = world.plan, world.quotas, world.plan.database_speed
    hot, gate = plan.place_hot.alone(speed), plan.gate.alone(speed)
    copies = _copies(world, needed * hot)
    more = f"lambda_concurrency={needed * hot * world.assumed['headroom']:.0f} or more"
    rps = quotas.lambda_rps_per_copy * quotas.lambda_concurrency
    limits = [
        Limit(
            "API requests of the account",
            quotas.api_rps,
            f"{quotas.api_rps:,.0f} a second, a burst of {quotas.api_burst:,.0f} on top",
            f"ask for api_rps={needed * world.assumed['headroom']:.0f}, or let a waiting room in "
            "front let in so many a second",
        ),
        Limit(
            "Lambda requests of the account",
            rps,
            f"{quotas.lambda_rps_per_copy:g} a second for each of {quotas.lambda_concurrency:,}",
            f"ask for lambda_concurrency={needed / quotas.lambda_rps_per_copy:.0f} or more",
        ),
        Limit(
            "copies of create_order, while there is stock",
            plan.copies_max / hot,
            f"{plan.copies_max:,} copies ({copies}), {hot / MS:.0f} ms each",
            f"ask for {more}" if plan.copies_max == quotas.lambda_concurrency else copies,
        ),
        Limit(
            "copies of create_order, once sold out",
            plan.copies_max / gate,
            f"{plan.copies_max:,} copies, {gate / MS:.0f} ms each",
            "the same",
        ),
    ]
    cold = plan.cold_seconds + hot
    if plan.warm < needed * hot:
        at_once = min(plan.copies_burst + plan.warm, plan.copies_max)
        limits.append(
            Limit(
                "copies that can be started at once",
                at_once / cold if not plan.warm else max(plan.warm / hot, at_once / cold),
                f"{at_once:,.0f} at the doors' opening, {plan.copies_per_second:,.0f} a second "
                f"later; {cold / MS:.0f} ms for the first order of each",
                f"have {needed * hot * world.assumed['headroom']:.0f} copies run already "
                "(warm=…): calls just before, or provisioned concurrency",
            )
        )
    return limits


def _copies(world: World, needed: float) -> str:
    """What bounds them, or what would let there be more."""
    copies, deployment = world.plan.copies_max, world.deployment
    if copies == world.quotas.lambda_concurrency:
        return "the account's concurrency"
    if copies == deployment.http_concurrency_max:
        return "HttpConcurrencyMax of the template"
    proxy = "DatabaseThroughProxy=true"
    return f"a connection each: {proxy}, or a class with {needed:.0f} connections to spare"


def _of_the_turns(world: World, skus: int, needed: float) -> list[Limit]:
    plan, speed, quotas = world.plan, world.plan.database_speed, world.quotas
    deciding, work = plan.deciding, sale_work(plan)
    queue = world.deployment.workers["reserve"]
    batch = deciding.batch_seconds(deciding.batch_max)
    messages = deciding.workers * deciding.event_size / deciding.look_seconds
    send_rps = quotas.queue_rps(high_throughput=queue.high_throughput)
    return [
        Limit(
            "database, while there is stock",
            speed / work,
            f"{plan.instance.name} is {speed:.1f} measured machines, {work / MS:.2f} ms an order",
            _larger(world, needed * work, "what does not fit is turned away and asks again"),
        ),
        Limit(
            "database, once sold out",
            speed / plan.gate.work,
            f"{plan.gate.work / MS:.2f} ms a refusal",
            _larger(world, needed * plan.gate.work, "or refuse in the shop's page"),
        ),
        Limit(
            "SendMessage to reserve.fifo",
            send_rps,
            f"calls a second in {quotas.region}, one an order",
            "the outbox keeps what SQS refuses and relay_outbox sends ten a call: later, not lost",
        ),
        Limit(
            "doorbells that can be received",
            messages,
            f"{deciding.workers} workers, {deciding.event_size} messages in "
            f"{deciding.look_seconds / MS:.0f} ms",
            f"WorkerConcurrencyMax up to {quotas.worker_concurrency}; they only acknowledge: one "
            "doorbell decides all that wait",
        ),
        Limit(
            "turns of the hot SKUs",
            skus * deciding.per_second,
            f"{skus} of them, {deciding.batch_max} orders in {batch / MS:.0f} ms",
            "more workers or cores are no use, one batch at a time is decided for a SKU: sell it "
            "as several (a SKU for each region, warehouse or round), each has a turn",
        ),
    ]


def _larger(world: World, work: float, otherwise: str) -> str:
    instance = smallest(world.quotas.instances, world.figures, world.assumed, work)
    if instance is None:
        return f"no class carries it: several databases, by member or by SKU; {otherwise}"
    return f"instance={instance.name}; {otherwise}"


# --- ordinary orders, in orders a second ---------------------------------------------------------


def copy_seconds(world: World) -> dict[str, float]:
    """How long copies of each function are busy with one order, by Little's law their number at
    one order a second."""
    plan, assumed, speed = world.plan, world.assumed, world.plan.database_speed
    paid, paged = assumed["paid_share"], assumed["page_share"]
    other = assumed["other_trips"] * world.rtt_seconds + plan.place.python_seconds
    event = worker_seconds(world)
    return {
        "create_order": plan.place.alone(speed),
        "query_orders": assumed["reads_per_order"] * plan.gate.alone(speed),
        "start_payment": (paid + paged) * other,
        "alipay_notify": paid * (other + assumed["send_ms"] * MS),
        "confirm_stock": paid * event / world.deployment.workers["confirm"].batch_size,
        "release_stock": (1 - paid) * event / world.deployment.workers["release"].batch_size,
    }


def worker_seconds(world: World) -> float:
    """A worker's for an event of ten messages in one transaction."""
    trips = world.assumed["confirm_trips"] * world.rtt_seconds
    batch = world.deployment.workers["confirm"].batch_size
    work = world.figures.work("confirm") * batch / world.plan.database_speed
    return world.plan.deciding.look_seconds + trips + work


def requests_per_order(assumed: Assumptions) -> float:
    """Through the API: the order, its looks, its payment page, its notice."""
    pages = assumed["paid_share"] + assumed["page_share"]
    return 1 + assumed["reads_per_order"] + pages + assumed["paid_share"]


def order_work(world: World) -> float:
    return world.plan.place.work + later_work(world.figures, world.assumed)


def of_steady(world: World, rate: float) -> list[Limit]:
    return _by_need([*_of_http(world, rate), *_of_queues(world), *_of_the_sweep(world)])


def _of_http(world: World, rate: float) -> list[Limit]:
    quotas, assumed = world.quotas, world.assumed
    requests, busy = requests_per_order(assumed), sum(copy_seconds(world).values())
    usable = quotas.lambda_concurrency
    work = order_work(world)
    carried = world.plan.database_speed * assumed["busy_max"]
    more = assumed["headroom"]
    direct = "" if world.deployment.through_proxy else "DatabaseThroughProxy=true, or "
    return [
        Limit(
            "API requests of the account",
            quotas.api_rps / requests,
            f"{requests:.1f} requests an order",
            f"ask for api_rps={rate * requests * more:.0f}",
        ),
        Limit(
            "Lambda requests of the account",
            quotas.lambda_rps_per_copy * usable / requests,
            f"{quotas.lambda_rps_per_copy:g} a second for each of {usable:,} copies",
            f"ask for lambda_concurrency={rate * requests / quotas.lambda_rps_per_copy:.0f}",
        ),
        Limit(
            "Lambda concurrency of the account",
            usable / busy,
            f"{busy / MS:.0f} ms of copies an order, {usable:,} copies",
            f"ask for lambda_concurrency={rate * busy * more:.0f}",
        ),
        Limit(
            "connections",
            world.connections / busy,
            f"a copy each, {world.connections:,.0f} of {world.plan.instance.name}",
            f"{direct}a larger class: a proxy's transactions share connections",
        ),
        Limit(
            "database",
            carried / work,
            f"{work / MS:.2f} ms an order, {assumed['busy_max']:.0%} of "
            f"{world.plan.database_speed:.1f} measured machines",
            _larger(world, rate * work, "several databases, by member, where one is too much"),
        ),
    ]


def _of_queues(world: World) -> list[Limit]:
    assumed, quotas = world.assumed, world.quotas
    event = worker_seconds(world)
    limits = []
    for queue, share in (
        ("confirm", assumed["paid_share"]),
        ("release", 1 - assumed["paid_share"]),
    ):
        worker = world.deployment.workers[queue]
        rps = quotas.queue_rps(high_throughput=worker.high_throughput)
        if share <= 0:
            continue
        limits += [
            Limit(
                f"workers of {queue}.fifo",
                worker.concurrency * worker.batch_size / event / share,
                f"{worker.concurrency} workers, {worker.batch_size} messages in "
                f"{event / MS:.0f} ms, {share:.0%} of the orders",
                f"WorkerConcurrencyMax, up to {quotas.worker_concurrency}; until then the queue "
                "grows and nothing else suffers",
            ),
            Limit(
                f"SendMessage to {queue}.fifo",
                rps / share,
                f"{rps:,.0f} calls a second in {quotas.region}, one an order",
                "the outbox keeps what SQS refuses; relay_outbox sends ten a call",
            ),
        ]
    return limits


def _of_the_sweep(world: World) -> list[Limit]:
    """Orders that nobody pays are closed by one function that runs once a minute."""
    assumed, deployment = world.assumed, world.deployment
    sweeping = deployment.sweep_works_seconds / 60
    with_page = assumed["page_share"]
    without = 1 - assumed["paid_share"] - with_page
    talk = 2 * assumed["channel_ms"] * MS
    close = assumed["close_ms"] * MS + assumed["close_trips"] * world.rtt_seconds
    found: Sequence[tuple[str, float, float, str]] = (
        ("with a page", with_page, deployment.conversations / talk, "two calls to the channel"),
        ("without a page", without, 1 / close, "one after the other"),
    )
    return [
        Limit(
            f"expired orders {kind} that the sweep closes",
            each_second * sweeping / share,
            f"{each_second:,.0f} a second ({how}) for {deployment.sweep_works_seconds} s of each "
            f"minute, {share:.0%} of the orders",
            "their stock comes back late; several sweeps at once, each with its part of the orders",
        )
        for kind, share, each_second, how in found
        if share > 0
    ]
