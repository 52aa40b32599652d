"""POST /orders on a real database: every status and code, and what each answer looks like."""

import re
import time
from functools import partial

import pytest

from lockstep.db import connection
from lockstep.orders import place as place_module
from tests.support.api import ask
from tests.support.builders import a_sku, an_order, assert_at_rest
from tests.support.database import Database, forget_settings
from tests.support.http_events import Event, an_order_body, get, post_order

ORDER_TABLES = ("oms_order", "oms_order_item", "oms_order_request", "ims_reservation", "outbox")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def short_waits(database, monkeypatch):
    """A lock that is not given back soon ends the retries."""
    monkeypatch.setenv("DATABASE_LOCK_WAIT_SECONDS", "1")
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 1.2)
    connection.discard()


def lines(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"sku_id": sku_id, "quantity": quantity} for sku_id, quantity in pairs]


def test_a_new_order_is_answered_whole(database):
    a_sku(database, 1001)
    a_sku(database, 1002, price="100000.10")
    body = an_order_body(
        lines=lines((1002, 1), (1001, 1), (1002, 2)),
        expected_amount="300010.20",
        note="ring twice 🔔",
    )
    answer = ask(post_order(body))
    assert answer.status == 201
    assert answer.headers == {"content-type": "application/json"}
    document = answer.document
    order = document["order"]
    order_no = order["order_no"]
    assert re.fullmatch(r"\d{24}", order_no)
    assert TIME.fullmatch(order.pop("created_at"))
    assert TIME.fullmatch(order.pop("expires_at"))
    assert document == {
        "request_state": "SUCCESS",
        "created": True,
        "order": {
            "order_no": order_no,
            "status": "PENDING_PAYMENT",
            "close_reason": None,
            "total_amount": "300010.20",
            "pay_amount": "300010.20",
            "paid_amount": "0.00",
            "refunded_amount": "0.00",
            "currency": "CNY",
            "paid_at": None,
            "note": "ring twice 🔔",
            "lines": [
                {
                    "sku_id": 1001,
                    "title": "SKU 1001",
                    "quantity": 1,
                    "price": "9.90",
                    "amount": "9.90",
                },
                {
                    "sku_id": 1002,
                    "title": "SKU 1002",
                    "quantity": 3,
                    "price": "100000.10",
                    "amount": "300000.30",
                },
            ],
            "reservation": {"reservation_id": f"{order_no}-1", "state": "RESERVED"},
        },
    }
    assert_at_rest(database)


def test_a_replay_is_answered_with_the_order_as_it_is_now(database):
    a_sku(database)
    placed = ask(post_order()).document["order"]
    database.execute(
        "UPDATE oms_order SET prev_status = status, status = 'CLOSED', close_reason = 'CANCELLED'"
    )
    again = ask(post_order())
    now = {**placed, "status": "CLOSED", "close_reason": "CANCELLED"}
    assert again.status == 200
    assert again.document == {"request_state": "SUCCESS", "created": False, "order": now}
    assert database.count("oms_order") == 1


@pytest.mark.parametrize(
    "same",
    [
        an_order_body(lines=lines((1001, 1), (1002, 2))),
        an_order_body(lines=lines((1002, 2), (1001, 1))),
        an_order_body(lines=lines((1002, 1), (1001, 1), (1002, 1))),
        an_order_body(lines=lines((1001, 1), (1002, 2)), note=None, expected_amount=None),
    ],
)
def test_a_request_that_says_the_same_in_another_form_is_a_replay(database, same):
    a_sku(database, 1001)
    a_sku(database, 1002)
    first = ask(post_order(an_order_body(lines=lines((1001, 1), (1002, 2)))))
    again = ask(post_order(same, in_base64=True))
    assert (first.status, again.status) == (201, 200)
    assert again.document["order"]["order_no"] == first.document["order"]["order_no"]


def test_another_members_key_is_another_order(database):  # C17
    a_sku(database)
    mine, theirs = ask(post_order(member=1)), ask(post_order(member=2))
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.document["order"]["order_no"] != theirs.document["order"]["order_no"]


def test_keys_that_differ_by_case_are_two_orders(database):  # C15
    a_sku(database)
    assert [ask(post_order(key=key)).status for key in ("Abc", "abc", "ABC")] == [201] * 3
    assert database.count("oms_order") == 3


def test_a_request_whose_row_stays_locked_is_to_be_sent_again(database, short_waits):
    a_sku(database)
    with database.another_session() as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT * FROM ims_sku_stock WHERE sku_id = 1001 FOR UPDATE")
        answer = ask(post_order())
        assert answer.status == 202
        assert answer.document == {"request_state": "PROCESSING"}
        assert int(answer.headers["retry-after"]) >= 1
    assert database.count("oms_order_request") == 0
    assert ask(post_order()).status == 201


def test_a_key_that_somebody_is_deciding_is_in_flight_here_and_in_the_probe(database, short_waits):
    a_sku(database)
    with database.another_session() as other, other.cursor() as cursor:
        cursor.execute(
            "INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state) "
            "VALUES (42, 'k1', REPEAT('0', 64), 'PROCESSING')"
        )
        posted, probed = ask(post_order()), ask(get("/orders/requests/k1"))
    assert posted.document == {"request_state": "PROCESSING"}
    assert probed.document == {"request_state": "PROCESSING", "order": None}
    assert ask(get("/orders/requests/k1")).document == {"request_state": "UNKNOWN", "order": None}


def test_a_probe_does_not_wait_for_whoever_is_deciding(database):
    with database.another_session() as other, other.cursor() as cursor:
        cursor.execute(
            "INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state) "
            "VALUES (42, 'k1', REPEAT('0', 64), 'PROCESSING')"
        )
        began = time.monotonic()
        assert ask(get("/orders/requests/k1")).document["request_state"] == "PROCESSING"
        # Waiting would take the three seconds that a lock is waited for.
        assert time.monotonic() - began < 2


def refused(status: int, code: str, event: Event) -> dict[str, object]:
    """The members of the refusal beyond the five that every one has."""
    answer = ask(event)
    assert (answer.status, answer.code) == (status, code)
    always = {"type", "title", "status", "detail", "code"}
    return {name: value for name, value in answer.document.items() if name not in always}


def assert_no_row(database: Database) -> None:
    assert [table for table in ORDER_TABLES if database.count(table)] == []


def test_a_key_with_other_content_is_refused(database):
    a_sku(database)
    ask(post_order())
    for other in (an_order_body(note=""), an_order_body(expected_amount="9.90")):
        assert refused(409, "IDEMPOTENCY_KEY_REUSED", post_order(other)) == {}
    assert database.count("oms_order") == 1


def test_unknown_and_off_sale_skus_are_refused_by_their_ids(database):
    a_sku(database, 1001)
    a_sku(database, 1002, on_sale=False)
    body = an_order_body(lines=lines((1003, 1), (1001, 1), (1002, 1)))
    assert refused(422, "SKU_UNKNOWN", post_order(body)) == {"sku_ids": [1002, 1003]}
    assert_no_row(database)


def test_sums_that_cannot_be_are_refused_with_what_they_are(database):
    a_sku(database, 1001)
    a_sku(database, 1002, price="0.00")
    a_sku(database, 1003, price="100000000.01")
    other_sum = an_order_body(expected_amount="9.89")
    assert refused(409, "AMOUNT_CHANGED", post_order(other_sum)) == {"pay_amount": "9.90"}
    nothing = an_order_body(lines=lines((1002, 1)))
    assert refused(422, "AMOUNT_ZERO", post_order(nothing)) == {"pay_amount": "0.00"}
    too_much = an_order_body(lines=lines((1003, 1)))
    assert refused(422, "AMOUNT_TOO_LARGE", post_order(too_much)) == {"pay_amount": "100000000.01"}
    assert_no_row(database)


def test_a_shortage_is_refused_with_every_short_line_and_the_orders_in_the_way(database):
    a_sku(database, 1001, stock=5)
    a_sku(database, 1002, stock=2)
    wanted = an_order_body(lines=lines((1001, 6), (1002, 3)))
    event = partial(post_order, wanted, key="k2")
    short = [
        {"sku_id": 1001, "wanted": 6, "available": 5},
        {"sku_id": 1002, "wanted": 3, "available": 2},
    ]
    assert refused(409, "OUT_OF_STOCK", event()) == {"lines": short}
    assert_no_row(database)
    mine = an_order({1002: 1})
    short[1]["available"] = 1
    assert refused(409, "OUT_OF_STOCK", event()) == {"lines": short, "own_orders": [mine.order_no]}
    assert refused(409, "OUT_OF_STOCK", event(member=7)) == {"lines": short}


# Each row is wrong in two ways that are checked one after the other: the first is answered.
BAD_BODY = "not JSON"
NO_ORDER = an_order_body(lines=[])
UNKNOWN = an_order_body(lines=lines((9999, 1)))
WRONG_SUM = an_order_body(lines=lines((1001, 99)), expected_amount="1.00")
IN_ORDER = {
    "member before key": (post_order(BAD_BODY, key="", member="x"), "MEMBER_ID_INVALID"),
    "key before body": (post_order(BAD_BODY, key="k 1"), "IDEMPOTENCY_KEY_INVALID"),
    "body before known key": (post_order(NO_ORDER, key="known"), "BODY_INVALID"),
    "readable before known key": (post_order(BAD_BODY, key="known"), "BODY_UNREADABLE"),
    "known key before SKUs": (post_order(UNKNOWN, key="known"), "IDEMPOTENCY_KEY_REUSED"),
    "SKUs before amount": (post_order({**UNKNOWN, "expected_amount": "1.00"}), "SKU_UNKNOWN"),
    "amount before stock": (post_order(WRONG_SUM), "AMOUNT_CHANGED"),
    "stock last": (post_order(an_order_body(lines=lines((1001, 99)))), "OUT_OF_STOCK"),
}


@pytest.mark.parametrize(("event", "code"), IN_ORDER.values(), ids=IN_ORDER)
def test_refusals_come_in_the_promised_order(database, event, code):
    a_sku(database)
    ask(post_order(key="known"))
    assert ask(event).code == code


def test_a_known_key_is_replayed_though_nothing_of_it_could_be_ordered_any_more(database):
    a_sku(database, stock=1)
    ask(post_order(an_order_body(expected_amount="9.90")))
    database.execute("UPDATE ims_sku_stock SET price = 1, on_sale = FALSE")
    assert ask(post_order(an_order_body(expected_amount="9.90"))).status == 200


def test_a_database_that_is_not_there_is_503_and_not_202(database, monkeypatch):
    monkeypatch.setenv("DATABASE_PORT", "1")
    monkeypatch.setattr(place_module, "WITHIN_SECONDS", 0.2)
    connection.discard()
    forget_settings()
    answer = ask(post_order(an_order_body()))
    assert (answer.status, answer.code) == (503, "TRY_AGAIN")
    assert answer.headers["retry-after"] == "1"
