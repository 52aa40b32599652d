"""The deployed queues and workers: what is delivered twice, wrongly or in vain."""

import json
import secrets

from infra.local import stories
from infra.local.waiting import wait_until


def send(sqs, queue_url, group, body):
    message_id = secrets.token_hex(16)
    sqs.send_message(
        QueueUrl=queue_url,
        MessageBody=body,
        MessageGroupId=group,
        MessageDeduplicationId=message_id,
    )
    return message_id


def command(kind, reservation_id, order_id):
    return json.dumps(
        {"v": 1, "type": kind, "reservation_id": reservation_id, "order_id": order_id}
    )


def row_of(shop, order):
    [row] = shop.rows(
        "SELECT id, reservation_id FROM oms_order WHERE order_no = %s", (order["order_no"],)
    )
    return row


def test_a_command_delivered_again_changes_nothing(shop, sqs, deployed):
    sku_id = shop.new_sku("Twice", "2.00", 5)
    order = stories.ordered(shop, 42, sku_id)
    shop.notify(shop.notice(order["order_no"], "2.00"))
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    row = row_of(shop, order)
    body = command("ConfirmStock", row["reservation_id"], row["id"])
    send(sqs, deployed["queues"]["confirm"], row["reservation_id"], body)
    # A release of the same hold is refused for good; once it is recorded, both were handled.
    body = command("ReleaseStock", row["reservation_id"], row["id"])
    message_id = send(sqs, deployed["queues"]["release"], row["reservation_id"], body)
    wait_until(lambda: refusals(shop, message_id) != [], "the refusal")
    assert refusals(shop, message_id) == ["RESERVATION_CANNOT_RELEASE"]
    drained(sqs, deployed["queues"]["confirm"])
    assert shop.stock(sku_id) == (4, 0)


def test_a_release_that_comes_first_leaves_a_tombstone(shop, sqs, deployed):
    reservation_id = f"{secrets.randbelow(10**20):024d}-1"
    body = command("ReleaseStock", reservation_id, secrets.randbelow(2**40) + 2**40)
    send(sqs, deployed["queues"]["release"], reservation_id, body)
    found = "SELECT state, request_hash FROM ims_reservation WHERE reservation_id = %s"
    wait_until(lambda: shop.rows(found, (reservation_id,)) != [], "the tombstone")
    assert shop.rows(found, (reservation_id,)) == [{"state": "RELEASED", "request_hash": None}]


def test_a_poison_message_is_dead_lettered_while_others_go_on(shop, sqs, deployed):
    """In a batch with it, and after it."""
    queue, dead_letters = deployed["queues"]["confirm"], deployed["queues"]["confirm_dlq"]
    # Three times a minute is too long for a test.
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "5"})
    poison = secrets.token_hex(8)
    send(sqs, queue, poison, "not JSON at all: " + poison)
    order = stories.ordered(shop, 42, shop.new_sku("Bystander", "3.00", 5))
    shop.notify(shop.notice(order["order_no"], "3.00"))
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    assert poison in wait_for_message(sqs, dead_letters)


def refusals(shop, message_id):
    rows = shop.rows("SELECT code FROM message_refusal WHERE message_id = %s", (message_id,))
    return [row["code"] for row in rows]


def drained(sqs, queue_url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def is_empty():
        found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
        return all(found[name] == "0" for name in names)

    wait_until(is_empty, f"{queue_url} to be empty")


def wait_for_message(sqs, queue_url):
    bodies: list[str] = []

    def has_come():
        reply = sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=1)
        bodies.extend(message["Body"] for message in reply.get("Messages", []))
        return bodies != []

    wait_until(has_come, f"a message in {queue_url}")
    return bodies[0]
