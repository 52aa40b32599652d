"""Lives that a schedule or a deployment begins."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from functions import migrate
from infra.local.alipay_gateway.faults import NOTICE, QUERY
from tests.proof.crash.lives import (
    Act,
    a_page,
    an_opened_order,
    an_order,
    an_order_in_line,
    life,
    no_queues,
    paid_after_a_cancel,
    paid_on_its_page,
)
from tests.proof.crash.queues import paid_in_time_and_late
from tests.proof.world import World
from tests.support import passing_time
from tests.support.lambda_context import Context

_A_MINUTE = timedelta(seconds=61)
_ITS_TIME = passing_time.TTL + timedelta(minutes=2)
_CATALOGUE = """\
sku_id,title,price,stock,hot,on_sale
1001,SKU 1001,9.90,20,0,1
1002,Another name,8.80,,0,1
1003,New,1.00,3,1,1
"""


def _sweeping(world: World) -> Act:
    return lambda: world.sweep()["failed"] == []


# --- relay ----------------------------------------------------------------------------------------


@life("relay_outbox")
def relay(world: World) -> Act:
    """Two rows of one queue, and one of two others."""
    with no_queues(world):
        for key in ("k1", "k2"):
            world.cancel(an_order(world, key=key, lines={1001: 1}))
        number = a_page(world, an_order(world, key="k3", lines={1002: 1}))
        world.pay(number)
        world.tell()
        world.pay(number, Decimal("9.90"))
        world.tell()
    world.pass_time(_A_MINUTE)
    return lambda: world.relay()["failed"] == 0


@life("relay_outbox", ends="CLOSED")
def relay_in_the_order_of_a_line(world: World) -> Act:
    """A release that was said again: two rows of one line, and the queue refuses the first."""
    order_no = an_order(world)
    with no_queues(world):
        world.cancel(order_no)
        world.pass_time(_A_MINUTE)
        world.sweep()
    world.pass_time(timedelta(seconds=15))
    unsent = "SELECT message_id FROM outbox WHERE sent_at IS NULL ORDER BY id"
    first, second = (row["message_id"] for row in world.database.rows(unsent))
    _refuse_once(world, first)

    def act() -> bool:
        world.relay()
        assert {first, second} & world.wire.taken != {second}, "the second one overtook the first"
        return True

    return act


def _refuse_once(world: World, message_id: str) -> None:
    send, refused = world.wire.send_message_batch, {message_id}

    def sent(*, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        taken = [entry for entry in Entries if entry["Id"] not in refused]
        if len(taken) < len(Entries):
            refused.clear()
        return send(QueueUrl=QueueUrl, Entries=taken)

    world.wire.send_message_batch = sent  # type: ignore[method-assign]


# --- sweep ----------------------------------------------------------------------------------------


@life("sweep_expired")
def expire(world: World) -> Act:
    an_order(world)
    world.pass_time(_ITS_TIME)
    return _sweeping(world)


@life("sweep_expired")
def expire_with_a_page(world: World) -> Act:
    an_opened_order(world)
    world.pass_time(_ITS_TIME)
    return _sweeping(world)


@life("sweep_expired")
def expire_with_a_page_that_nobody_opened(world: World) -> Act:
    a_page(world, an_order(world), opened=False)
    world.pass_time(_ITS_TIME)
    return _sweeping(world)


@life("sweep_expired")
def expire_in_line(world: World) -> Act:
    an_order_in_line(world)
    world.wire.lose()
    world.pass_time(timedelta(minutes=6))
    return _sweeping(world)


@life("sweep_expired", ends="CLOSED")
def keep_the_hold_until_there_is_an_answer(world: World) -> Act:
    """Its time and that of its hold are over, and every answer is lost."""
    an_opened_order(world)
    world.alipay.faults.add(QUERY, "lose_response", count=1000)
    world.pass_time(_ITS_TIME)
    world.sweep()
    world.pass_time(timedelta(hours=1))

    def act() -> bool:
        is_swept = not world.sweep()["failed"]
        assert world.database.count("oms_order", status="PAYMENT_PROCESSING") == 1
        assert world.database.count("ims_reservation", state="RESERVED") == 1, "it let go too early"
        if is_swept:
            world.alipay.faults.clear()
        return is_swept

    return act


@life("sweep_expired")
def find_out_what_was_paid(world: World) -> Act:
    world.alipay.faults.add(NOTICE, "never")
    paid_on_its_page(world)
    world.pass_time(_A_MINUTE)
    return _sweeping(world)


@life("sweep_expired")
def find_out_what_was_paid_when_its_time_is_over(world: World) -> Act:
    world.alipay.faults.add(NOTICE, "never")
    paid_on_its_page(world)
    world.pass_time(_ITS_TIME)
    return _sweeping(world)


@life("sweep_expired")
def find_out_what_a_notice_meant(world: World) -> Act:
    """Of a part that went back, before anybody told of the payment."""
    world.alipay.faults.add(NOTICE, "never")
    trade = paid_on_its_page(world)
    world.books.refund(trade, Decimal("5.00"), "console-1")
    world.tell()
    world.pass_time(_A_MINUTE)
    return _sweeping(world)


@life("sweep_expired")
def say_confirm_again(world: World) -> Act:
    paid_on_its_page(world)
    world.tell()
    return _sweeping_what_was_lost(world)


@life("sweep_expired")
def say_release_again(world: World) -> Act:
    world.cancel(an_order(world))
    return _sweeping_what_was_lost(world)


@life("sweep_expired")
def say_reserve_again(world: World) -> Act:
    an_order_in_line(world)
    return _sweeping_what_was_lost(world)


@life("sweep_expired", policy="REINSTATE")
def say_reinstate_again(world: World) -> Act:
    paid_in_time_and_late(world)
    return _sweeping_what_was_lost(world)


@life("sweep_expired")
def say_refund_again(world: World) -> Act:
    paid_after_a_cancel(world)
    world.tell()
    return _sweeping_what_was_lost(world)


@life("sweep_expired")
def ask_for_a_refund_that_nobody_asked_for(world: World) -> Act:
    """As after an upgrade from a release that did not."""
    paid_after_a_cancel(world)
    world.tell()
    for table in ("oms_refund", "outbox"):
        world.database.execute(f"DELETE FROM {table}")  # noqa: S608 - our own tables
    world.wire.taken.clear()
    return _sweeping_what_was_lost(world)


@life("sweep_expired")
def settle_a_hold_that_outlived_its_order(world: World) -> Act:
    world.cancel(an_order(world))
    world.wire.lose()
    world.pass_time(timedelta(hours=1))
    return _sweeping(world)


def _sweeping_what_was_lost(world: World) -> Act:
    world.wire.lose()
    world.pass_time(_A_MINUTE)
    return _sweeping(world)


# --- deployment -----------------------------------------------------------------------------------


@life("migrate")
def load_a_catalogue(_: World) -> Act:
    wanted = {"catalogue": _CATALOGUE, "actor": "operator:alice"}
    return lambda: not migrate.handler(wanted, Context())["errors"]
