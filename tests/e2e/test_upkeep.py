"""What heals by itself on the deployed stack: time that is over, processes that die, messages that
are gone for good."""

import contextlib
import os
import secrets
import signal
import socket
import threading
import urllib.error
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest

from infra.local import cloud, stories
from infra.local.shop import Shop
from infra.local.waiting import PATIENCE_SECONDS, wait_until

# A schedule fires within the minute after the one that it is due in.
BY_ITSELF_SECONDS = 130


@pytest.fixture
def lambdas(deployed):
    return cloud.session().client("lambda", endpoint_url=deployed["aws_endpoint_url"])


def test_unpaid_orders_expire_by_themselves(shop):
    """Nobody calls anything: the schedule of the template fires."""
    sku_id = shop.new_sku("Forgotten", "4.00", 5)
    orders = [stories.ordered(shop, member, sku_id) for member in (42, 43)]
    kept = stories.ordered(shop, 44, sku_id)
    for order in orders:
        shop.end_time_of(order["order_no"])
    for order in orders:
        shop.wait_for_status(order["order_no"], "CLOSED", BY_ITSELF_SECONDS)
        shop.wait_for_hold(order["order_no"], "RELEASED")
    assert shop.status(kept["order_no"]) == "PENDING_PAYMENT"
    assert shop.stock(sku_id) == (5, 1)


def test_a_process_that_dies_between_its_commit_and_its_send_loses_no_message(
    shop, lambdas, deployed
):
    """The function's SQS is a socket that never answers; whoever calls there is killed."""
    sku_id, key = shop.new_sku("Hot and fatal", "8.00", 5, hot=True), secrets.token_hex(8)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_SECONDS)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with set_for(lambdas, deployed, "create_order", AWS_ENDPOINT_URL_SQS=address):
            order = threading.Thread(target=order_in_vain, args=(shop, sku_id, key))
            order.start()
            called, (_, port) = silent.accept()
            os.kill(process_at(port), signal.SIGKILL)
            called.close()
            order.join()
    [row] = waiting(shop, sku_id)
    assert (row["status"], row["sent_at"]) == ("RESERVING", None)
    shop.rows("UPDATE outbox SET next_at = NOW(3) WHERE group_key = %s", (row["reservation_id"],))
    relayed = shop.invoke("relay_outbox")
    assert relayed["failed"] == 0
    shop.wait_for_status(row["order_no"], "PENDING_PAYMENT")
    assert shop.stock(sku_id) == (5, 1)
    # The member's phone, which got no answer, asks again.
    again = shop.order(42, {sku_id: 1}, key=key)
    assert (again.status, again.document["order"]["order_no"]) == (200, row["order_no"])


@pytest.mark.parametrize(("queue", "ends"), [("confirm", "CONFIRMED"), ("release", "RELEASED")])
def test_a_command_that_is_gone_for_good_is_said_again(shop, sqs, lambdas, deployed, queue, ends):
    sku_id = shop.new_sku(f"Lost {queue}", "6.00", 5)
    order = stories.ordered(shop, 42, sku_id)
    with nobody_reads(lambdas, deployed, f"{queue}_stock"):
        if queue == "confirm":
            shop.notify(shop.notice(order["order_no"], "6.00"))
        else:
            shop.call("POST", f"/orders/{order['order_no']}/cancel", 42)
        group = f"{order['order_no']}-1"
        assert delete_message(sqs, deployed["queues"][queue], group)
    assert shop.hold(order["order_no"]) == "RESERVED"
    shop.rows(
        "UPDATE outbox SET created_at = created_at - INTERVAL 61 SECOND WHERE group_key = %s",
        (group,),
    )
    assert shop.invoke("sweep_expired")["failed"] == []
    shop.wait_for_hold(order["order_no"], ends)
    assert shop.stock(sku_id) == ((4, 0) if queue == "confirm" else (5, 0))


def test_a_refund_whose_command_is_gone_for_good_is_made_once(shop, sqs, lambdas, deployed):
    order = stories.sold(shop, 42, shop.new_sku("Lost refund", "6.00", 5))
    [payment] = shop.payments(order["order_no"])
    with nobody_reads(lambdas, deployed, "refund_payment"):
        assert shop.refund(order["order_no"], "returned").status == 201
        assert delete_message(sqs, deployed["queues"]["refund"], str(payment["id"]))
    assert shop.refund_states(order["order_no"]) == ["DUE"]
    shop.let_a_minute_pass(order["order_no"])
    assert shop.invoke("sweep_expired")["failed"] == []
    shop.wait_for_status(order["order_no"], "REFUNDED")
    assert shop.refunds_made(order["order_no"]) == ["6.00"]


@pytest.mark.long
def test_a_lost_confirm_and_a_lost_release_are_put_right_within_two_minutes(
    shop, sqs, lambdas, deployed
):
    """For real: no row is aged and no function called. A minute until the outbox row is old enough,
    and at most one until the sweep comes by."""
    sku_id = shop.new_sku("Lost and found", "6.00", 5)
    paid, cancelled = (stories.ordered(shop, 42, sku_id) for _ in range(2))
    with nobody_reads(lambdas, deployed, "confirm_stock", "release_stock"):
        shop.notify(shop.notice(paid["order_no"], "6.00"))
        shop.call("POST", f"/orders/{cancelled['order_no']}/cancel", 42)
        assert delete_message(sqs, deployed["queues"]["confirm"], f"{paid['order_no']}-1")
        assert delete_message(sqs, deployed["queues"]["release"], f"{cancelled['order_no']}-1")

    def is_put_right() -> bool:
        holds = [shop.hold(order["order_no"]) for order in (paid, cancelled)]
        return holds == ["CONFIRMED", "RELEASED"]

    wait_until(is_put_right, "the sweep", seconds=BY_ITSELF_SECONDS)
    assert shop.stock(sku_id) == (4, 0)


def test_at_rest_every_invariant_holds(shop):
    assert shop.broken_invariants() == {}


# --- ways to do harm -----------------------------------------------------------------------------


def order_in_vain(shop: Shop, sku_id: int, key: str) -> None:
    with contextlib.suppress(OSError, ValueError, HTTPException, urllib.error.URLError):
        shop.order(42, {sku_id: 1}, key=key)


def process_at(port: int) -> int:
    """The process on this machine that called from ``port``."""
    connections = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    [inode] = [line.split()[9] for line in connections if line.split()[1].endswith(f":{port:04X}")]
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(descriptor) == f"socket:[{inode}]":
                return int(descriptor.parts[2])
    raise AssertionError(f"nobody called from port {port}")


@contextlib.contextmanager
def set_for(lambdas, deployed, function: str, **more: str) -> Iterator[None]:
    """Variables that a function has besides those of the template, in what events reach of it."""
    name = deployed["functions"][function]
    variables = lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    lambdas.update_function_configuration(
        FunctionName=name, Environment={"Variables": variables | more}
    )
    usual = lambdas.get_alias(FunctionName=name, Name="live")["FunctionVersion"]
    other = lambdas.publish_version(FunctionName=name)["Version"]
    lambdas.update_alias(FunctionName=name, Name="live", FunctionVersion=other)
    try:
        yield
    finally:
        lambdas.update_alias(FunctionName=name, Name="live", FunctionVersion=usual)
        lambdas.update_function_configuration(
            FunctionName=name, Environment={"Variables": variables}
        )


def waiting(shop: Shop, sku_id: int) -> list[dict[str, object]]:
    return shop.rows(
        "SELECT o.order_no, o.status, o.reservation_id, b.sent_at FROM oms_order AS o "
        "JOIN oms_order_item AS i ON i.order_id = o.id "
        "JOIN outbox AS b ON b.group_key = o.reservation_id WHERE i.sku_id = %s",
        (sku_id,),
    )


@contextlib.contextmanager
def nobody_reads(lambdas, deployed, *functions: str) -> Iterator[None]:
    """The functions' queues are not read for a while."""
    mappings = [
        mapping["UUID"]
        for function in functions
        for mapping in lambdas.list_event_source_mappings(
            FunctionName=f"{deployed['functions'][function]}:live"
        )["EventSourceMappings"]
    ]
    for uuid in mappings:
        lambdas.update_event_source_mapping(UUID=uuid, Enabled=False)
    try:
        yield
    finally:
        for uuid in mappings:
            lambdas.update_event_source_mapping(UUID=uuid, Enabled=True)


def delete_message(sqs, queue_url: str, group: str) -> bool:
    """Take the group's message out of the queue for good."""
    reply = sqs.receive_message(
        QueueUrl=queue_url,
        MaxNumberOfMessages=10,
        WaitTimeSeconds=5,
        MessageSystemAttributeNames=["MessageGroupId"],
    )
    for message in reply.get("Messages", []):
        if message["Attributes"]["MessageGroupId"] == group:
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
            return True
    return False
