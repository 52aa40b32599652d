"""Where each resource ends with ordinary orders, in orders a second."""

from collections.abc import Sequence

from infra.load.assumptions import Assumptions
from infra.load.limits import Limit, World, by_need, larger
from infra.load.plan import MS, later_work


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
    return by_need([*_of_http(world, rate), *_of_queues(world), *_of_the_sweep(world)])


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
            larger(world, rate * work, "several databases, by member, where one is too much"),
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
