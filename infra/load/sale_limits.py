"""Where each resource ends in a flash sale, in buyers a second."""

from infra.load.limits import Limit, World, by_need, larger
from infra.load.plan import MS, Plan


def sale_work(plan: Plan) -> float:
    """What the database does for a buyer who is not refused at the gate: place and decide."""
    deciding = plan.deciding
    batch = deciding.line.seconds(deciding.batch_max) * deciding.share_of_database
    return plan.place_hot.work + batch / deciding.batch_max


def of_sale(world: World, skus: int, needed: float) -> list[Limit]:
    return by_need([*_of_the_api(world, needed), *_of_the_turns(world, skus, needed)])


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
            larger(world, needed * work, "what does not fit is turned away and asks again"),
        ),
        Limit(
            "database, once sold out",
            speed / plan.gate.work,
            f"{plan.gate.work / MS:.2f} ms a refusal",
            larger(world, needed * plan.gate.work, "or refuse in the shop's page"),
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
