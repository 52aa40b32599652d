"""Refunds that operators ask for: never above what is left, once for each key, goods apart."""

from decimal import Decimal
from typing import Any

import pytest

from lockstep.alipay.answers import Refused
from lockstep.errors import InvariantBroken
from lockstep.orders.model import Order
from lockstep.orders.query import reload
from lockstep.payments.accept import accept
from lockstep.payments.refund import Tried
from tests.support.api import ask
from tests.support.builders import a_sku, a_trade_notice, an_order, assert_at_rest, deliver_outbox
from tests.support.database import Database
from tests.support.http_events import (
    Answer,
    as_operator,
    cancel_order,
    post_order,
    refund_order,
    request,
)
from tests.support.notices import trail
from tests.support.refund_channel import RefundChannel, refund_rows


@pytest.fixture
def paid(database: Database) -> Order:
    """Two of SKU 1001 and one of SKU 1002 for 29.70, sold."""
    a_sku(database, 1001)
    a_sku(database, 1002)
    order = an_order({1001: 2, 1002: 1})
    accept(a_trade_notice(order, trade_no="T1"))
    deliver_outbox(database)
    return reload(order.id)


@pytest.fixture
def channel() -> RefundChannel:
    channel = RefundChannel()
    channel.paid("T1", "29.70")
    return channel


def refund(order: Order, key: str = "k1", **body: object) -> Answer:
    return ask(refund_order(order.order_no, {"reason": "broken"} | body, key=key))


def status(database: Database) -> tuple[str, Decimal]:
    row = database.one("SELECT status, refunded_amount FROM oms_order")
    return row["status"], row["refunded_amount"]


def test_a_part_is_refunded_and_leaves_the_order_as_it_is(database, channel, paid):
    answer = refund(paid, amount="3.00")
    assert answer.status == 201
    asked = answer.document["refund"]
    assert asked["out_request_no"].startswith("O")
    assert {name: asked[name] for name in asked if name != "out_request_no"} == {
        "trade_no": "T1",
        "amount": "3.00",
        "state": "DUE",
        "code": None,
        "requested_by": "operator:alice",
        "reason": "broken",
    }
    assert answer.document["order"]["status"] == "PAID"
    channel.work_off(database)
    assert status(database) == ("PAID", Decimal("3.00"))
    again = refund(paid, amount="3.00")
    assert (again.status, again.document["refund"]["state"]) == (200, "DONE")
    assert again.document["order"]["refunded_amount"] == "3.00"
    assert sum(channel.executed.values()) == 1
    assert_at_rest(database)


def test_all_of_it_goes_back_and_nobody_ships_it_meanwhile(database, channel, paid):
    """F5: to cancel a paid order is to refund all of it."""
    answer = refund(paid)
    assert (answer.status, answer.document["refund"]["amount"]) == (201, "29.70")
    assert answer.document["order"]["status"] == "REFUNDING"
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'SHIPPED' WHERE status = 'PAID'"
    )
    assert status(database)[0] == "REFUNDING"
    channel.work_off(database)
    assert status(database) == ("REFUNDED", Decimal("29.70"))
    assert trail(database, paid.id)[1:] == [
        ("PAID", "REFUNDING", "operator:alice", "REFUND_ASKED"),
        ("REFUNDING", "REFUNDED", "alipay", "REFUNDED_IN_FULL"),
    ]
    assert database.stock(1001) == (8, 0)
    assert_at_rest(database)


def test_three_lines_are_refunded_to_the_fen(database, channel):
    """F7: what is left after two parts is what is left of what was paid."""
    a_sku(database, price="33.33")
    order = an_order({1001: 3})
    accept(a_trade_notice(order, trade_no="T1"))
    deliver_outbox(database)
    channel.paid("T1", "99.99")
    for key, amount in (("a", "33.33"), ("b", "0.01")):
        assert refund(order, key, amount=amount).status == 201
    rest = refund(order, "c")
    assert rest.document["refund"]["amount"] == "66.65"
    channel.work_off(database)
    assert status(database) == ("REFUNDED", Decimal("99.99"))
    assert channel.total("T1") == Decimal("99.99")
    assert_at_rest(database)


def test_no_more_is_asked_for_than_is_left(database, channel, paid):
    assert refund(paid, "a", amount="20.00").status == 201
    answer = refund(paid, "b", amount="9.71")
    assert (answer.status, answer.code) == (409, "REFUND_TOO_LARGE")
    assert answer.document["refundable"] == "9.70"
    assert refund(paid, "c", amount="9.70").document["order"]["status"] == "REFUNDING"
    answer = refund(paid, "d", amount="0.01")
    assert (answer.code, answer.document["order_status"]) == ("ORDER_NOT_REFUNDABLE", "REFUNDING")
    assert len(refund_rows(database)) == 2


def test_what_was_given_up_may_be_asked_for_anew(database, channel, paid):
    channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
    assert refund(paid, "a").document["order"]["status"] == "REFUNDING"
    assert channel.work_off(database) == [Tried.FAILED]
    assert status(database) == ("PAID", Decimal("0.00"))
    assert trail(database, paid.id)[-1] == (
        *("REFUNDING", "PAID"),
        *("system:refund_payment", "REFUND_FAILED"),
    )
    assert refund(paid, "a").document["refund"]["code"] == "ACQ.TRADE_NOT_ALLOW_REFUND"
    assert refund(paid, "b").status == 201
    channel.work_off(database)
    assert status(database) == ("REFUNDED", Decimal("29.70"))
    assert_at_rest(database)


@pytest.mark.parametrize("shipped", ["SHIPPED", "FINISHED"])
def test_goods_that_are_gone_can_be_refunded_too_and_a_failure_leads_back(
    database, channel, paid, shipped
):
    database.execute("UPDATE oms_order SET prev_status = 'PAID', status = 'SHIPPED'")
    if shipped == "FINISHED":
        database.execute("UPDATE oms_order SET prev_status = 'SHIPPED', status = 'FINISHED'")
    channel.faults.append(Refused("ACQ.TRADE_HAS_FINISHED"))
    refund(paid)
    channel.work_off(database)
    assert status(database)[0] == shipped


def test_a_part_that_fails_does_not_leave_the_order_refunding(database, channel, paid):
    channel.faults.append(Refused("ACQ.TRADE_NOT_ALLOW_REFUND"))
    refund(paid, "a", amount="20.00")
    refund(paid, "b")
    channel.work_off(database)
    assert [row[2] for row in refund_rows(database)] == ["FAILED", "DONE"]
    assert status(database) == ("PAID", Decimal("9.70"))
    assert_at_rest(database)


@pytest.mark.parametrize("other", [{"amount": "3.01"}, {}, {"amount": "3.00", "reason": "lost"}])
def test_a_key_belongs_to_one_request(database, paid, other):
    """F3."""
    assert refund(paid, amount="3.00").status == 201
    answer = refund(paid, **other)
    assert (answer.status, answer.code) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert len(refund_rows(database)) == 1


def test_the_key_of_an_order_is_another_key_than_that_of_its_refund(database):
    """C3."""
    a_sku(database)
    placed = ask(post_order(key="same")).document["order"]["order_no"]
    accept(a_trade_notice(out_trade_no=placed))
    assert ask(refund_order(placed, key="same")).status == 201
    assert ask(post_order(key="same")).document["order"]["status"] == "REFUNDING"


def test_one_key_refunds_two_orders(database, paid):
    other = an_order()
    accept(a_trade_notice(other))
    assert refund(paid, "k").status == refund(other, "k").status == 201
    numbers = {row[0] for row in refund_rows(database)}
    assert len(numbers) == 2


def test_an_unpaid_order_has_nothing_to_refund(database):
    a_sku(database)
    order = an_order()
    answer = refund(order)
    assert (answer.code, answer.document["order_status"]) == (
        "ORDER_NOT_REFUNDABLE",
        "PENDING_PAYMENT",
    )
    assert refund_rows(database) == []


def test_a_member_cannot_cancel_what_an_operator_refunds(database, paid):
    refund(paid, amount="3.00")
    assert ask(cancel_order(paid.order_no)).code == "ORDER_NOT_CANCELLABLE"
    refund(paid, "all")
    assert ask(cancel_order(paid.order_no)).code == "ORDER_NOT_CANCELLABLE"


# --- goods ---------------------------------------------------------------------------------------

BOTH: list[dict[str, int]] = [
    {"sku_id": 1002, "quantity": 1},
    {"sku_id": 1001, "quantity": 2},
]


def test_goods_come_back_only_where_it_is_said_and_once(database, paid):
    """B3."""
    first = refund(paid, restock=BOTH)
    assert first.status == 201
    assert refund(paid, restock=BOTH).status == 200
    assert (database.stock(1001), database.stock(1002)) == ((10, 0), (10, 0))
    entries = database.rows(
        "SELECT sku_id, delta, source, actor, reason FROM ims_stock_entry WHERE kind = 'RETURN'"
    )
    number = first.document["refund"]["out_request_no"]
    assert [tuple(entry.values()) for entry in entries] == [
        (sku_id, quantity, f"return:{number}:{sku_id}", "operator:alice", "broken")
        for sku_id, quantity in ((1001, 2), (1002, 1))
    ]
    assert_at_rest(database)


def test_goods_of_a_sku_that_is_gone_come_back_to_nobody(database, paid):
    database.execute("DELETE FROM ims_sku_stock WHERE sku_id = 1001")
    with pytest.raises(InvariantBroken, match="SKU 1001 was sold and does not exist"):
        refund(paid, restock=BOTH)
    assert database.count("oms_refund") == 0
    assert database.count("ims_stock_entry", kind="RETURN") == 0


def test_no_more_comes_back_than_was_sold(database, paid):
    one: list[dict[str, int]] = [{"sku_id": 1001, "quantity": 1}]
    assert refund(paid, "a", amount="1.00", restock=one).status == 201
    answer = refund(paid, "b", amount="1.00", restock=[*BOTH, {"sku_id": 9, "quantity": 1}])
    assert (answer.status, answer.code) == (409, "RESTOCK_REFUSED")
    assert answer.document["lines"] == [
        {"sku_id": 9, "wanted": 1, "returnable": 0},
        {"sku_id": 1001, "wanted": 2, "returnable": 1},
    ]
    assert len(refund_rows(database)) == 1
    assert database.stock(1001) == (9, 0)
    assert refund(paid, "c", amount="1.00", restock=one).status == 201
    assert database.stock(1001) == (10, 0)
    assert_at_rest(database)


def test_goods_that_are_not_sold_yet_do_not_come_back(database):
    a_sku(database)
    order = an_order()
    accept(a_trade_notice(order))
    answer = refund(order, restock=[{"sku_id": 1001, "quantity": 1}])
    assert answer.document["lines"] == [{"sku_id": 1001, "wanted": 1, "returnable": 0}]
    assert status(database)[0] == "PAID"
    assert database.count("outbox", queue="refund") == 0


# --- who may, and how it is asked ----------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "alice"},
        as_operator(scope="lockstep/opsx openid"),
        as_operator(scope=""),
        as_operator(name=""),
        as_operator(name="a" * 65),
        {"sub": None, "scope": "lockstep/ops"},
        {"sub": {}, "scope": "lockstep/ops"},
    ],
)
def test_without_the_scope_nothing_is_done(database, paid, claims):
    answer = ask(refund_order(paid.order_no, claims=claims))
    assert (answer.status, answer.code) == (403, "OPERATOR_SCOPE_MISSING")
    assert refund_rows(database) == []
    assert ask(request("GET", "/ops/payments", claims=claims)).code == "OPERATOR_SCOPE_MISSING"
    body = '{"reason":"x"}'
    path = "/ops/payments/T1/refund"
    assert ask(request("POST", path, claims=claims, body=body)).code == "OPERATOR_SCOPE_MISSING"


def test_the_scope_may_be_one_of_several(database, paid):
    claims = as_operator(scope="openid lockstep/ops")
    assert ask(refund_order(paid.order_no, claims=claims)).status == 201


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": " "},
        {"reason": "r" * 201},
        {"reason": "x", "amount": "0.00"},
        {"reason": "x", "amount": "-1.00"},
        {"reason": "x", "amount": "1.001"},
        {"reason": "x", "amount": 1},
        {"reason": "x", "restock": [{"sku_id": 1001, "quantity": 0}]},
        {"reason": "x", "restock": [{"sku_id": 1001, "quantity": 1}] * 101},
        {"reason": "x", "operator": "bob"},
    ],
)
def test_a_body_that_says_something_else_is_refused(database, paid, body: Any):
    answer = ask(refund_order(paid.order_no, body))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert refund_rows(database) == []


def test_a_key_is_needed_and_an_order_that_is_there(database, paid):
    assert ask(refund_order(paid.order_no, key="")).code == "IDEMPOTENCY_KEY_INVALID"
    assert ask(refund_order(paid.order_no, "not JSON")).code == "BODY_UNREADABLE"
    assert ask(refund_order("2026")).code == "ORDER_NOT_FOUND"
