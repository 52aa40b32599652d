"""What a life is, and who calls again in it.

A life tells of one function at work: what led up to it, undisturbed, and the act itself, which
whoever calls repeats until content. A member asks again with the same key, Alipay sends again what
was not answered `success`, the queue delivers again what was not acknowledged, the schedule comes
again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any, Final

import pymysql
import pytest

from infra.local.alipay_gateway.shapes import Trade
from lockstep.db import connection
from lockstep.payments import accept
from tests.proof.world import World
from tests.support import api, passing_time
from tests.support.http_events import Answer, Event

# Whether the caller is content.
type Act = Callable[[], bool]
type Prepare = Callable[[World], Act]

LINES: Final = {1001: 2, 1002: 1}


@dataclass(frozen=True, slots=True)
class Life:
    """``function`` is the file of functions/ that is at work. ``prepare`` returns the act.
    ``ends`` is what has to come of it, in the words of `rest.ends`, where that is not left to the
    undisturbed life to say."""

    name: str
    function: str
    prepare: Prepare
    policy: str = "REFUND"
    ends: str = ""


def life(function: str, policy: str = "REFUND", ends: str = "") -> Callable[[Prepare], Life]:
    """What is decorated is a life of its own name."""

    def named(prepare: Prepare) -> Life:
        return Life(prepare.__name__, function, prepare, policy, ends)

    return named


def lives_of(module: ModuleType) -> list[Life]:
    """In the order in which they are written there."""
    return [each for each in vars(module).values() if isinstance(each, Life)]


# --- acts -----------------------------------------------------------------------------------------


def asking(event: Event) -> Act:
    """Somebody at the HTTP interface, until there is an answer to go by."""
    return lambda: is_final(api.ask(event))


def is_final(answer: Answer) -> bool:
    return answer.status < 500 and answer.status != 202


def telling(world: World) -> Act:
    """Alipay, until every notice was answered `success`."""

    def act() -> bool:
        world.tell()
        return world.alipay.service.post.waiting() == 0

    return act


def delivering(world: World, queue: str) -> Act:
    """A queue, until nothing is in it."""

    def act() -> bool:
        world.deliver(queue)
        return not world.wire.waiting(queue)

    return act


# --- what leads up to them ------------------------------------------------------------------------


def an_order(world: World, *, key: str = "k1", lines: dict[int, int] | None = None) -> str:
    """Placed; its number."""
    return str(world.place(key, lines or LINES).document["order"]["order_no"])


def an_order_in_line(world: World, quantity: int = 1) -> str:
    """Placed, for a hot SKU, and its turn has not come; its number."""
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    return an_order(world, lines={1001: quantity})


def a_page(world: World, order_no: str, product: str = "page", *, opened: bool = True) -> str:
    """To pay by, opened by its buyer; its out_trade_no."""
    number = str(world.start(order_no, product).document["out_trade_no"])
    if opened:
        world.books.open(number)
    return number


def an_opened_order(world: World) -> tuple[str, str]:
    """An order and its page."""
    order_no = an_order(world)
    return order_no, a_page(world, order_no)


def paid_on_its_page(world: World) -> Trade:
    """An order, and nobody told of it yet."""
    _, number = an_opened_order(world)
    return world.pay(number)


def a_sold_order(world: World) -> str:
    """Paid, and its stock sold."""
    order_no, number = an_opened_order(world)
    world.pay(number)
    world.settle()
    return order_no


def sum_of(world: World, order_no: str) -> Any:
    return world.database.value("SELECT pay_amount FROM oms_order WHERE order_no = %s", (order_no,))


@contextmanager
def no_queues(world: World) -> Iterator[None]:
    """SQS cannot be reached for a while."""

    def refuse(**_: Any) -> None:
        raise ConnectionError("the queue does not answer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.wire, "send_message", refuse)
        yield


@contextmanager
def no_database() -> Iterator[None]:
    """MySQL cannot be reached for longer than a notice may take."""

    def refuse(*_: Any) -> None:
        raise pymysql.OperationalError(2003, "Can't connect to MySQL server")

    connection.discard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "open_session", refuse)
        patch.setattr(accept, "WITHIN_SECONDS", 0.0)
        yield


def paid_after_a_cancel(world: World) -> None:
    order_no, number = an_opened_order(world)
    world.cancel(order_no)
    world.settle()
    world.pay(number, sum_of(world, order_no))


def an_expired_order(world: World) -> str:
    """A minute ago, and its stock is given back; its number."""
    order_no = an_order(world)
    world.pass_time(passing_time.TTL + timedelta(minutes=1))
    world.sweep()
    world.settle()
    return order_no
