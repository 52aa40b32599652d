"""The addresses and queries of plain reads: refused by name before any database is asked."""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions import query_orders
from lockstep.api.operator_requests import check_trade_no
from lockstep.api.problems import Problem
from lockstep.api.requests import read_orders_query, write_cursor
from lockstep.orders.model import OrderStatus
from tests.support.api import ask
from tests.support.http_events import cancel_order as cancel
from tests.support.http_events import get, send
from tests.support.reading import full_width


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


BAD_CURSORS = {
    "not base64": "%%%",
    "a bare number": "17",
    "an unknown version": encoded("v2:17"),
    "zero": encoded("v1:0"),
    "negative": encoded("v1:-1"),
    "19 digits": encoded("v1:" + "9" * 19),
    "full-width digits": encoded("v1:" + full_width("17")),
    "a trailing newline": encoded("v1:17\n"),
    "SQL": encoded("v1:1 OR 1=1"),
    "not text": base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    "beyond ASCII": "é",
    "a stranger inside": encoded("v1:17")[:4] + "!" + encoded("v1:17")[4:],
    "truncated": encoded("v1:17")[:-1],
    "very long": "A" * 100_000,
}


@pytest.mark.parametrize("cursor", BAD_CURSORS.values(), ids=BAD_CURSORS)
def test_a_cursor_that_was_not_given_out_is_refused(cursor):
    answer = ask(get("/orders", cursor=cursor))
    assert (answer.status, answer.code) == (422, "QUERY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["cursor"]]


@given(st.text())
def test_no_cursor_is_a_server_error(cursor):
    with suppress(Problem):
        before = read_orders_query(get("/orders", cursor=cursor)).before
        assert cursor == "" or write_cursor(before) == cursor


@given(st.integers(min_value=1, max_value=10**18 - 1))
def test_a_cursor_comes_back_as_it_was_given_out(before):
    cursor = write_cursor(before)
    assert cursor is not None
    assert read_orders_query(get("/orders", cursor=cursor)).before == before


@pytest.mark.parametrize(
    "limit", ["0", "-1", "101", "1000", "1.5", "1e1", "ten", full_width("10"), " 1", "1,2"]
)
def test_a_limit_is_a_number_from_one_to_a_hundred(limit):
    answer = ask(get("/orders", limit=limit))
    assert (answer.status, answer.code) == (422, "QUERY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["limit"]]


@pytest.mark.parametrize("limit", ["1", "20", "99", "100"])
def test_a_good_limit_is_taken(limit):
    assert read_orders_query(get("/orders", limit=limit)).limit == int(limit)


@pytest.mark.parametrize("status", ["NONE", "paid", "PAID,CLOSED", "PAID ", "OPEN", "'"])
def test_a_status_is_one_that_an_order_can_have(status):
    answer = ask(get("/orders", status=status))
    assert (answer.status, answer.code) == (422, "QUERY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["status"]]


@pytest.mark.parametrize("status", sorted(set(OrderStatus) - {OrderStatus.NONE}))
def test_every_status_of_an_order_can_be_asked_for(status):
    assert read_orders_query(get("/orders", status=status)).status is OrderStatus(status)


def test_a_query_that_says_nothing_asks_for_the_newest_twenty():
    empty = read_orders_query(get("/orders", status="", cursor="", limit=""))
    assert empty == read_orders_query(get("/orders"))
    assert (empty.status, empty.before, empty.limit) == (None, None, 20)


@pytest.mark.parametrize(
    "order_no", ["1" * 33, "2026-1", "1 OR 1=1", full_width("1"), "a_b", "a.b", "%31"]
)
def test_what_cannot_be_an_order_number_is_not_found(order_no):
    found = ask(get(f"/orders/{order_no}"))
    assert (found.status, found.code) == (404, "ORDER_NOT_FOUND")
    cancelled = ask(cancel(order_no))
    assert (cancelled.status, cancelled.code) == (404, "ORDER_NOT_FOUND")


@pytest.mark.parametrize(
    "sku_id", ["0", "-1", "007", "1.5", "1e3", "SKU", full_width("1001"), str(2**53), "9" * 40]
)
def test_what_cannot_be_a_sku_is_not_found(sku_id):
    answer = ask(get(f"/stock/{sku_id}"))
    assert (answer.status, answer.code) == (404, "SKU_NOT_FOUND")


STRANGERS = ["\n", "\x00", "\t", '"', "\\", "`", "#", "?", "\x7f", "\x81", "\u2028", "\ud800", "🔑"]


@pytest.mark.parametrize("stranger", STRANGERS, ids=ascii)
def test_whatever_stands_in_an_address_is_refused_by_its_own_operation(stranger):
    found = ask(get(f"/orders/1{stranger}"))
    assert (found.status, found.code) == (404, "ORDER_NOT_FOUND")
    probed = ask(get(f"/orders/requests/{stranger}k1{stranger}"))
    assert (probed.status, probed.code) == (400, "IDEMPOTENCY_KEY_INVALID")
    counted = ask(get(f"/stock/1001{stranger}"))
    assert (counted.status, counted.code) == (404, "SKU_NOT_FOUND")


@pytest.mark.parametrize("path", ["/", "/order", "/orders/", "/orders/1/2", "/stock", "/stock/"])
def test_an_address_where_nothing_is_says_so(path):
    answer = send(query_orders.handler, get(path))
    assert (answer.status, answer.code) == (404, "ROUTE_NOT_FOUND")


@pytest.mark.parametrize("text", ["", "a b", "x" * 65, "2026!", full_width("2026"), "a\n"])
def test_what_can_be_no_trades_number_is_not_looked_for(text):
    with pytest.raises(Problem) as refused:
        check_trade_no(text)
    assert refused.value.code == "PAYMENT_NOT_FOUND"
