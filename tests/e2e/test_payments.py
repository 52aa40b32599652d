"""Money on the deployed template: a browser pays, a member cancels, an operator refunds, processes
die; and the local Alipay's books agree."""

import os
import signal

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from infra.local import buyer, mysql, stories
from infra.local.paths import TEST_HOME
from infra.local.waiting import wait_until

WHO_CLAIMED = """
    SELECT DISTINCT a.attr_value AS pid
    FROM performance_schema.events_statements_history AS h
    JOIN performance_schema.threads AS t ON t.thread_id = h.thread_id
    JOIN performance_schema.session_connect_attrs AS a ON a.processlist_id = t.processlist_id
    WHERE a.attr_name = '_pid'
      AND h.sql_text LIKE '%%SET state = ''CALLING''%%'
      AND h.sql_text LIKE %s
"""


def status_at_alipay(shop, number):
    return [one["status"] for one in shop.control(f"/trades?out_trade_no={number}")["trades"]]


def test_a_person_in_a_browser_pays_by_the_link_that_the_api_answers(shop, driver):
    sku_id = shop.new_sku("Browsed pen", "7.50", 5)
    order = stories.ordered(shop, 42, sku_id)
    started = shop.start_payment(42, order["order_no"])
    assert (started.status, started.document["out_trade_no"]) == (201, order["order_no"])
    driver.get(started.document["pay_url"])
    assert "¥7.50" in driver.find_element(By.TAG_NAME, "main").text
    assert shop.status(order["order_no"]) == "PENDING_PAYMENT"
    driver.find_element(By.CSS_SELECTOR, "#pay button").click()
    WebDriverWait(driver, 10).until(lambda _: status_at_alipay(shop, order["order_no"]))
    shop.wait_for_status(order["order_no"], "PAID")
    shop.wait_for_hold(order["order_no"], "CONFIRMED")
    assert status_at_alipay(shop, order["order_no"]) == ["TRADE_SUCCESS"]
    shown = shop.call("GET", f"/orders/{order['order_no']}", 42).document
    assert [(one["state"], one["amount"]) for one in shown["payments"]] == [("APPLIED", "7.50")]
    assert shop.stock(sku_id) == (4, 0)


def test_a_page_is_asked_for_again_and_is_the_same(shop):
    order = stories.ordered(shop, 42, shop.new_sku("Twice asked", "7.50", 5))
    first, again = (shop.start_payment(42, order["order_no"]) for _ in range(2))
    assert [first.status, again.status] == [201, 200]
    assert first.document["out_trade_no"] == again.document["out_trade_no"]
    code = shop.start_payment(42, order["order_no"], "qr")
    assert code.status == 201
    assert code.document["out_trade_no"] == f"{order['order_no']}_2"
    assert shop.start_payment(43, order["order_no"]).status == 404


def test_an_order_is_cancelled_with_its_page_open_and_unopened(shop):
    for opens in (True, False):
        sku_id = shop.new_sku("Given up", "7.50", 5)
        order = stories.ordered(shop, 42, sku_id)
        link = shop.start_payment(42, order["order_no"]).document["pay_url"]
        if opens:
            assert buyer.follow(link).status == 200
        cancelled = shop.call("POST", f"/orders/{order['order_no']}/cancel", 42)
        assert (cancelled.status, cancelled.document["order"]["status"]) == (200, "CLOSED")
        assert status_at_alipay(shop, order["order_no"]) == ["TRADE_CLOSED"] * opens
        shop.wait_for_hold(order["order_no"], "RELEASED")
        assert shop.stock(sku_id) == (5, 0)
        assert shop.start_payment(42, order["order_no"]).document["code"] == "ORDER_NOT_PAYABLE"


def test_an_operators_refund_ends_at_alipay(shop):
    sku_id = shop.new_sku("Returned", "7.50", 5)
    order = stories.sold(shop, 42, sku_id, 2)
    path = f"/ops/orders/{order['order_no']}/refunds"
    body = {"reason": "returned", "restock": [{"sku_id": sku_id, "quantity": 1}]}
    asked, again = (shop.operate("POST", path, key="once", body=body) for _ in range(2))
    assert [asked.status, again.status] == [201, 200]
    assert asked.document["order"]["status"] == "REFUNDING"
    assert asked.document["refund"]["requested_by"] == "operator:alice"
    shop.wait_for_status(order["order_no"], "REFUNDED")
    assert shop.refunds_made(order["order_no"]) == ["15.00"]
    assert shop.stock(sku_id) == (4, 0)
    refused = shop.operate("POST", path, key="once more", body={"reason": "again"})
    assert (refused.status, refused.document["code"]) == (400, "IDEMPOTENCY_KEY_INVALID")
    refused = shop.operate("POST", path, key="once-more", body={"reason": "again"})
    assert (refused.status, refused.document["code"]) == (409, "ORDER_NOT_REFUNDABLE")


def test_a_refund_made_in_the_merchants_console_reaches_the_order(shop):
    order = stories.sold(shop, 42, shop.new_sku("Console", "7.50", 5))
    [payment] = shop.payments(order["order_no"])
    shop.control("/refund", {"trade_no": payment["trade_no"], "amount": "7.50"})
    shop.wait_for_status(order["order_no"], "REFUNDED")
    assert shop.refund_states(order["order_no"]) == ["DONE"]
    assert shop.refunds_made(order["order_no"]) == ["7.50"]


def test_the_control_url_pays_whatever_is_asked_for(shop, deployed):
    """Any out_trade_no and amount, twice and late; a number is taken as it is written."""
    assert deployed["alipay"].keys() == {
        *("gateway_url", "cashier_url", "control_url", "app_id", "seller_id", "signing_key_file")
    }
    sku_id = shop.new_sku("Controlled", "7.50", 5)
    order = stories.ordered(shop, 42, sku_id)
    paid = [
        shop.control("/pay", {"out_trade_no": order["order_no"], "amount": amount})
        for amount in (7.5, "7.50", "0.01")
    ]
    assert [one.keys() for one in paid] == [{"trade_no"}] * 3
    late = stories.ordered(shop, 42, sku_id)
    shop.call("POST", f"/orders/{late['order_no']}/cancel", 42)
    shop.pay(late["order_no"], "7.50")
    unknown = shop.pay("NOBODYS-1", "3.00")
    shop.wait_for_trade(unknown, "UNMATCHED")
    shop.wait_for_payments(late["order_no"], "REFUNDED LATE_PAYMENT")
    wait_until(
        lambda: (
            sorted(shop.payment_states(order["order_no"]))
            == ["APPLIED", "REFUNDED AMOUNT_MISMATCH", "REFUNDED SECOND_PAYMENT"]
        ),
        "what became of the three",
    )


def test_a_process_that_dies_while_alipay_refunds_makes_no_second_refund(shop, sqs, deployed):
    """It is killed while the answer is held back, and so after Alipay has done it."""
    # Its message comes back by itself; a minute is too long for a test.
    queue = deployed["queues"]["refund"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "5"})
    order = stories.sold(shop, 42, shop.new_sku("Fatal refund", "7.50", 5))
    for method, action in (("alipay.trade.refund", "hold"), ("notice", "never")):
        shop.disturb(order["order_no"], method, action)
    shop.refund(order["order_no"], "cracked")
    shop.wait_for_refunds(order["order_no"], "CALLING")
    wait_until(lambda: shop.control("/faults")["holding"] == 1, "Alipay to hold its answer back")
    for pid in processes_that_claimed(refund_of(shop, order)):
        os.kill(pid, signal.SIGKILL)
    shop.control("/faults/release", {})
    assert shop.refunds_made(order["order_no"]) == ["7.50"]
    assert shop.refund_states(order["order_no"]) == ["CALLING"]
    shop.let_a_minute_pass(order["order_no"])
    assert shop.invoke("sweep_expired")["failed"] == []
    shop.wait_for_status(order["order_no"], "REFUNDED")
    assert shop.refunds_made(order["order_no"]) == ["7.50"]


@pytest.mark.parametrize("fault", ["unknown_before", "unknown_after", "lose_response"])
def test_an_answer_that_says_nothing_is_asked_for_until_the_order_is_closed(shop, fault):
    order = stories.ordered(shop, 42, shop.new_sku(f"Unclear {fault}", "7.50", 5))
    stories.page_of(shop, 42, order)
    for _ in range(2):
        shop.disturb(order["order_no"], "alipay.trade.query", fault)
    cancelled = shop.call("POST", f"/orders/{order['order_no']}/cancel", 42)
    assert cancelled.status == 202
    assert cancelled.document["order"]["status"] == "PAYMENT_PROCESSING"
    shop.control("/faults/release", {})
    shop.let_a_minute_pass(order["order_no"])
    wait_until(lambda: swept_to(shop, order, "CLOSED"), "the sweep to close the order")
    shop.wait_for_hold(order["order_no"], "RELEASED")
    assert status_at_alipay(shop, order["order_no"]) == ["TRADE_CLOSED"]


def swept_to(shop, order, status):
    shop.let_a_minute_pass(order["order_no"])
    assert shop.invoke("sweep_expired")["failed"] == []
    return shop.status(order["order_no"]) == status


def refund_of(shop, order):
    [payment] = shop.payments(order["order_no"])
    [row] = shop.rows("SELECT id FROM oms_refund WHERE payment_id = %s", (payment["id"],))
    return row["id"]


def processes_that_claimed(refund_id):
    """As their clients told the engine."""
    with mysql.connect(mysql.ensure(TEST_HOME)) as session, session.cursor() as cursor:
        cursor.execute(WHO_CLAIMED, (f"%WHERE id = {refund_id}\n%",))
        pids = [int(pid) for (pid,) in cursor.fetchall()]
    assert pids != []
    return pids
