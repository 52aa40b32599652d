"""The plain reads on a real database: lists and their pages, one order with its trail, a request by
its key, a SKU."""

import re
from datetime import UTC, datetime

import pytest

from tests.support.api import ask
from tests.support.builders import a_sku, an_order
from tests.support.channel import cancel
from tests.support.http_events import get, post_order

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def numbers(answer) -> list[str]:
    return [order["order_no"] for order in answer.document["orders"]]


@pytest.fixture
def five_orders(database) -> list[str]:
    """Of member 42, oldest first; the second and the fourth are cancelled. Others' lie between."""
    a_sku(database, stock=100)
    placed = []
    for n in range(5):
        placed.append(an_order().order_no)
        an_order(member_id=7)
        if n % 2:
            cancel(42, placed[-1])
    return placed


def test_orders_come_newest_first_and_only_the_members_own(five_orders):
    answer = ask(get("/orders"))
    assert answer.status == 200
    assert numbers(answer) == five_orders[::-1]
    assert answer.document["next_cursor"] is None


def test_pages_follow_each_other_without_a_gap_or_a_repeat(five_orders):
    first = ask(get("/orders", limit="2"))
    second = ask(get("/orders", limit="2", cursor=first.document["next_cursor"]))
    third = ask(get("/orders", limit="2", cursor=second.document["next_cursor"]))
    assert [numbers(page) for page in (first, second, third)] == [
        five_orders[:2:-1],
        five_orders[2:0:-1],
        five_orders[:1],
    ]
    assert third.document["next_cursor"] is None


def test_a_page_that_the_orders_just_fill_is_the_last(five_orders):
    answer = ask(get("/orders", limit="5"))
    assert numbers(answer) == five_orders[::-1]
    assert answer.document["next_cursor"] is None


def test_an_order_placed_meanwhile_does_not_shift_the_next_page(five_orders):
    first = ask(get("/orders", limit="2"))
    an_order()
    second = ask(get("/orders", limit="3", cursor=first.document["next_cursor"]))
    assert numbers(second) == five_orders[2::-1]


def test_a_status_filters_over_pages(five_orders):
    closed = ask(get("/orders", status="CLOSED", limit="1"))
    assert numbers(closed) == [five_orders[3]]
    rest = ask(get("/orders", status="CLOSED", limit="1", cursor=closed.document["next_cursor"]))
    assert (numbers(rest), rest.document["next_cursor"]) == ([five_orders[1]], None)
    assert numbers(ask(get("/orders", status="PENDING_PAYMENT"))) == five_orders[::-2]
    assert numbers(ask(get("/orders", status="PAID"))) == []


def test_a_cursor_shows_nobody_elses_orders(five_orders):
    cursor = ask(get("/orders", limit="1")).document["next_cursor"]
    seen = numbers(ask(get("/orders", member=7, cursor=cursor)))
    assert len(seen) == 4
    assert not set(seen) & set(five_orders)


def test_twenty_is_a_page_unless_another_limit_is_asked_for(database):
    a_sku(database, stock=100)
    for _ in range(21):
        an_order()
    assert len(numbers(ask(get("/orders")))) == 20
    assert len(numbers(ask(get("/orders", limit="100")))) == 21


def test_a_member_without_orders_sees_an_empty_page(database):
    answer = ask(get("/orders"))
    assert (answer.status, answer.document) == (200, {"orders": [], "next_cursor": None})


def test_an_order_is_listed_as_it_was_answered(database):
    a_sku(database)
    placed = ask(post_order()).document["order"]
    assert ask(get("/orders")).document["orders"] == [placed]


def test_an_order_is_shown_with_its_payments_and_its_trail(database):
    a_sku(database)
    placed = ask(post_order()).document["order"]
    order_id = database.value("SELECT id FROM oms_order")
    database.execute(
        "INSERT INTO oms_order_payment "
        "(provider, trade_no, out_trade_no, order_id, amount, state, gateway_paid_at) VALUES "
        "('alipay', 'T1', %s, %s, 9.90, 'APPLIED', '2026-10-24 02:00:05.000'), "
        "('alipay', 'T2', %s, %s, 9.90, 'REFUND_PENDING', NULL)",
        (placed["order_no"], order_id, placed["order_no"], order_id),
    )
    answer = ask(get(f"/orders/{placed['order_no']}"))
    assert answer.status == 200
    shown = answer.document
    payments, timeline = shown.pop("payments"), shown.pop("timeline")
    assert shown == placed
    assert payments == [
        {
            "provider": "alipay",
            "trade_no": "T1",
            "amount": "9.90",
            "state": "APPLIED",
            "paid_at": "2026-10-24T02:00:05.000Z",
        },
        {
            "provider": "alipay",
            "trade_no": "T2",
            "amount": "9.90",
            "state": "REFUND_PENDING",
            "paid_at": None,
        },
    ]
    [entry] = timeline
    assert TIME.fullmatch(entry.pop("at"))
    assert entry == {
        "from": "NONE",
        "to": "PENDING_PAYMENT",
        "actor": "member:42",
        "reason": "PLACED",
    }


def test_the_trail_is_told_oldest_first(database):
    a_sku(database)
    order = an_order()
    cancel(42, order.order_no)
    timeline = ask(get(f"/orders/{order.order_no}")).document["timeline"]
    assert [(entry["from"], entry["to"], entry["reason"]) for entry in timeline] == [
        ("NONE", "PENDING_PAYMENT", "PLACED"),
        ("PENDING_PAYMENT", "CLOSED", "CANCELLED"),
    ]


def test_times_are_utc_to_the_millisecond_whatever_the_clock_says(database):
    a_sku(database)
    order = an_order()
    database.execute(
        "UPDATE oms_order SET created_at = '2026-12-31 16:00:00.000', "
        "expires_at = '2026-12-31 16:30:00.007'"
    )
    shown = ask(get(f"/orders/{order.order_no}")).document
    assert shown["created_at"] == "2026-12-31T16:00:00.000Z"
    assert shown["expires_at"] == "2026-12-31T16:30:00.007Z"


def test_an_orders_times_are_now_and_half_an_hour_later(database):
    a_sku(database)
    order = ask(post_order()).document["order"]
    created = datetime.fromisoformat(order["created_at"])
    assert abs((datetime.now(UTC) - created).total_seconds()) < 60
    assert (datetime.fromisoformat(order["expires_at"]) - created).total_seconds() == 1800


def test_another_members_order_is_not_found(database):
    a_sku(database)
    order = an_order(member_id=7)
    hidden = ask(get(f"/orders/{order.order_no}"))
    missing = ask(get("/orders/202610240136005000421234"))
    assert (hidden.status, hidden.code) == (404, "ORDER_NOT_FOUND")
    assert hidden.text == missing.text


def test_a_request_is_known_by_its_key(database):
    a_sku(database)
    placed = ask(post_order(key="a:b.c-d_e")).document["order"]
    for path in ("/orders/requests/a:b.c-d_e", "/orders/requests/a%3Ab.c-d_e"):
        answer = ask(get(path))
        assert answer.status == 200
        assert answer.document == {"request_state": "SUCCESS", "order": placed}


def test_a_request_that_was_not_seen_is_unknown_to_everyone_but_its_member(database):
    a_sku(database)
    ask(post_order(key="k1"))
    unknown = {"request_state": "UNKNOWN", "order": None}
    assert ask(get("/orders/requests/k2")).document == unknown
    assert ask(get("/orders/requests/k1", member=7)).document == unknown
    assert ask(get("/orders/requests/K1")).document == unknown


def test_a_sku_is_shown_with_what_is_available(database):
    a_sku(database, 1001, stock=10, price="100000.00")
    an_order({1001: 3})
    database.execute("UPDATE ims_sku_stock SET hot = TRUE")
    answer = ask(get("/stock/1001"))
    assert answer.status == 200
    assert answer.document == {
        "sku_id": 1001,
        "title": "SKU 1001",
        "price": "100000.00",
        "stock": 10,
        "lock_stock": 3,
        "available": 7,
        "hot": True,
    }


def test_a_sku_that_is_not_there_is_not_found(database):
    answer = ask(get("/stock/1001"))
    assert (answer.status, answer.code) == (404, "SKU_NOT_FOUND")
