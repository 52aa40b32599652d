"""The proof's world with its functions in processes that can be killed.

They find MySQL, SQS and Alipay over the network, as they do in life; everything else of the world,
its clock, its queues' contents and Alipay's books, is here and outlives them.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

from functions import alipay_notify, relay_outbox, sweep_expired
from infra.local import alipay_sign
from infra.local.alipay_gateway.server import Server
from tests.proof.kills.processes import Killed, Plant, Processes
from tests.proof.kills.promises import Promises
from tests.proof.kills.sqs import sqs
from tests.proof.kills.tap import Decide, Fate, of_http, of_mysql, tap
from tests.proof.world import World, a_world
from tests.support import api, http_events, wire
from tests.support.database import Database
from tests.support.http_events import Answer, Event, Handler
from tests.support.local_alipay import key_of

# Of each, and never short: what is refused is refused for another reason.
STOCK: Final = 1000
SKUS: Final = (1001, 1002, 2001)
HOT: Final = 2001


@dataclass
class Deployed:
    """``decide`` says which request somebody does not survive; ``log`` tells who did not."""

    world: World
    processes: Processes
    promises: Promises
    decide: Decide = lambda _: Fate.LIVES
    log: list[str] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.world.database

    def refund(self, order_no: str, key: str) -> Answer:
        """An operator's word: all of it."""
        return api.ask(http_events.refund_order(order_no, key=key))

    def lets_live(self, what: str) -> Fate:
        """What becomes of whoever asks for ``what``."""
        fate = self.decide(what)
        if fate is not Fate.LIVES:
            self.log.append(f"{fate}: {what}")
        return fate

    def ends_well(self, keys: int) -> None:
        """Nothing acknowledged is lost, then or at rest; no order is there twice."""
        self.keeps_its_word()
        self.world.come_to_rest()
        self.keeps_its_word()
        orders = self.database.count("oms_order")
        assert orders == keys, f"{keys} keys made {orders} orders"

    def keeps_its_word(self) -> None:
        """All that was acknowledged so far is in the books."""
        broken = self.promises.broken(self.database)
        assert not broken, "\n".join(broken)


@contextmanager
def deployed(
    database: Database, *, is_tapped: bool = True, plant: Plant | None = None
) -> Iterator[Deployed]:
    """Without taps the functions speak to the servers themselves: a refused connection is
    refused."""
    promises = Promises()
    with ExitStack() as stack:
        world = stack.enter_context(a_world(database, dict.fromkeys(SKUS, STOCK)))
        database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = %s", (HOT,))
        environment: dict[str, str] = {}
        processes = stack.enter_context(Processes(environment, promises.heard, plant))
        one = Deployed(world, processes, promises)
        ports = [
            (database.server.port, of_mysql),
            (stack.enter_context(sqs(world.wire)), of_http),
            (stack.enter_context(_served(world)), of_http),
        ]
        if is_tapped:
            taps = [tap(*port, one.lets_live, processes.kill_busy) for port in ports]
            environment |= _environment(world, *map(stack.enter_context, taps))
        else:
            environment |= _environment(world, *[port for port, _ in ports])
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        _move_functions(patch, processes)
        yield one


@contextmanager
def _served(world: World) -> Iterator[int]:
    """Alipay over HTTP. Its notices go out when the world says so."""
    server = Server()
    server.start(world.alipay.service)
    world.alipay.service.post.stop()
    try:
        yield server.server_port
    finally:
        server.stop()


def _environment(world: World, mysql: int, queues: int, alipay: int) -> Mapping[str, str]:
    """What the template gives to each function: the world's own, and the addresses."""
    return {
        **os.environ,
        "DATABASE_PORT": str(mysql),
        "AWS_ENDPOINT_URL_SQS": f"http://127.0.0.1:{queues}",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "ALIPAY_GATEWAY_URL": f"http://127.0.0.1:{alipay}/gateway.do",
        "ALIPAY_PRIVATE_KEY": alipay_sign.private_key_pem(key_of("app")).decode(),
        **{
            name: f"http://127.0.0.1:{queues}/{queue}"
            for name, queue in world.wire.addresses().items()
        },
    }


def _move_functions(patch: pytest.MonkeyPatch, processes: Processes) -> None:
    """Whoever calls a function here calls a process."""
    for route, handler in list(api.HANDLERS.items()):
        name = handler.__module__.removeprefix("functions.")
        patch.setitem(api.HANDLERS, route, processes.handler(name))
    for queue, consumer in list(wire.CONSUMERS.items()):
        name = consumer.__module__.removeprefix("functions.")
        patch.setitem(wire.CONSUMERS, queue, partial(_consume, processes.handler(name)))
    for module in (relay_outbox, sweep_expired):
        patch.setattr(module, "handler", processes.handler(module.__name__.split(".")[-1]))
    patch.setattr(alipay_notify, "handler", partial(_hear, processes.handler("alipay_notify")))


def _consume(handler: Handler, event: Event, context: Any) -> Any:
    """A batch whose consumer died comes again, the messages that it had decided too."""
    try:
        return handler(event, context)
    except Killed:
        names = [record["messageId"] for record in event["Records"]]
        return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


def _hear(handler: Handler, event: Event, context: Any) -> Any:
    """The API's own answer where the function died is no word that Alipay knows."""
    try:
        return handler(event, context)
    except Killed:
        return {"body": ""}
