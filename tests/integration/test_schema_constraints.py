"""The last defence: what the engine refuses although somebody's SQL asks for it, one by one."""

import pymysql
import pytest

from lockstep.api.problems import Problem
from lockstep.api.requests import check_key
from tests.support.database import Database
from tests.support.raw_rows import VALID, insert_row

CHECK, FOREIGN_KEY, DUPLICATE = 3819, 1452, 1062

# Constraint -> the table and the changes that break it, each of them alone.
BROKEN_CHECKS: dict[str, tuple[str, list[dict[str, object]]]] = {
    "ck_order_amounts": (
        "oms_order",
        [
            {"total_amount": "-0.01"},
            {"pay_amount": "0.00"},
            {"paid_amount": "9.91"},
            {"refunded_amount": "0.01"},
            {"paid_amount": "9.90", "refunded_amount": "9.91"},
            {"paid_amount": "9.90", "refunded_amount": "-0.01"},
        ],
    ),
    "ck_order_close_reason": (
        "oms_order",
        [
            {"close_reason": "EXPIRED"},
            {"prev_status": "PENDING_PAYMENT", "status": "CLOSED"},
            {"prev_status": "PENDING_PAYMENT", "status": "CLOSED", "close_reason": "BORED"},
        ],
    ),
    "ck_order_item": (
        "oms_order_item",
        [
            {"quantity": 0, "amount": "0.00"},
            {"quantity": 1_000_001, "price": "1.00", "amount": "1000001.00"},
            {"price": "-1.00", "amount": "-2.00"},
            {"amount": "19.81"},
        ],
    ),
    "ck_request_state": (
        "oms_order_request",
        [
            {"state": "UNKNOWN", "order_id": None},
            {"state": "PROCESSING"},
            {"state": "SUCCESS", "order_id": None},
        ],
    ),
    "ck_payment_amounts": (
        "oms_order_payment",
        [{"amount": "0.00"}, {"refunded_amount": "9.91"}, {"refunded_amount": "-0.01"}],
    ),
    "ck_payment_state": ("oms_order_payment", [{"state": "LOST"}]),
    "ck_payment_order": (
        "oms_order_payment",
        [
            {"order_id": None, "state": "APPLIED"},
            {"order_id": None, "state": "RECEIVED"},
            {"order_id": None, "state": "REINSTATE_PENDING"},
        ],
    ),
    "ck_attempt_amount": ("oms_payment_attempt", [{"amount": "0.00"}]),
    "ck_attempt_state": ("oms_payment_attempt", [{"state": "LOST"}]),
    "ck_refund_amount": ("oms_refund", [{"amount": "0.00"}]),
    "ck_refund_state": ("oms_refund", [{"state": "LOST"}]),
    "ck_refund_next_try": (
        "oms_refund",
        [{"state": state, "next_try_at": None} for state in ("DUE", "CALLING", "UNKNOWN")],
    ),
    "ck_money_kind": (
        "oms_money_entry",
        [{"amount": "0.00"}, {"amount": "-1.00"}, {"kind": "GIFT"}],
    ),
    "ck_notice_state": ("oms_notice", [{"state": "LOST"}]),
    "ck_sku_id": ("ims_sku_stock", [{"sku_id": 0}, {"sku_id": 2**53}]),
    "ck_sku_price": ("ims_sku_stock", [{"price": "-0.01"}]),
    "ck_sku_stock": ("ims_sku_stock", [{"lock_stock": -1}, {"lock_stock": 11}, {"stock": -1}]),
    "ck_stock_kind": ("ims_stock_entry", [{"kind": "GIFT"}]),
    "ck_reservation_state": ("ims_reservation", [{"state": "LOST"}]),
    "ck_reservation_n": ("ims_reservation", [{"n": 0}]),
    "ck_reservation_hash": (
        "ims_reservation",
        [{"request_hash": None}, {"request_hash": None, "state": "CONFIRMED"}],
    ),
    "ck_reservation_item": ("ims_reservation_item", [{"quantity": 0}, {"quantity": 1_000_001}]),
    "ck_outbox_attempts": ("outbox", [{"attempts": -1}]),
}

# Unique key -> its table, and what a second row may change without becoming another one.
UNIQUE_KEYS: dict[str, tuple[str, dict[str, object]]] = {
    "oms_order.uk_order_no": ("oms_order", {"member_id": 43}),
    "oms_order_item.PRIMARY": ("oms_order_item", {"quantity": 1, "amount": "9.90"}),
    "oms_order_request.PRIMARY": ("oms_order_request", {"order_id": 2}),
    "oms_order_request.uk_request_order": ("oms_order_request", {"idempotency_key": "k2"}),
    "oms_order_payment.uk_payment_trade": (
        "oms_order_payment",
        {"order_id": 2, "amount": "1.00", "state": "REFUND_PENDING"},
    ),
    "oms_order_payment.uk_payment_applied": ("oms_order_payment", {"trade_no": "T2"}),
    "oms_payment_attempt.uk_attempt_out_trade_no": ("oms_payment_attempt", {"order_id": 2}),
    "oms_refund.uk_refund_request": ("oms_refund", {"amount": "1.00"}),
    "oms_money_entry.uk_money_source": ("oms_money_entry", {"payment_id": 2}),
    "oms_notice.uk_notice": ("oms_notice", {"trade_no": "T2"}),
    "oms_order_transition.PRIMARY": ("oms_order_transition", {}),
    "ims_sku_stock.PRIMARY": ("ims_sku_stock", {"title": "another"}),
    "ims_hot_turn.PRIMARY": ("ims_hot_turn", {}),
    "ims_stock_entry.uk_stock_source": ("ims_stock_entry", {"delta": 1}),
    "ims_catalogue_load.PRIMARY": ("ims_catalogue_load", {"actor": "another"}),
    "ims_reservation.uk_reservation": ("ims_reservation", {"order_id": 2, "n": 2}),
    "ims_reservation.uk_reservation_order": ("ims_reservation", {"reservation_id": "other-1"}),
    "ims_reservation_item.PRIMARY": ("ims_reservation_item", {"quantity": 1}),
    "outbox.uk_outbox_message": ("outbox", {"group_key": "other"}),
    "message_refusal.uk_refusal_message": ("message_refusal", {"code": "OTHER"}),
}

UNIQUE_COLUMNS = """
SELECT DISTINCT CONCAT(s.table_name, '.', s.index_name) AS name
FROM information_schema.statistics AS s
WHERE s.table_schema = %s
  AND s.non_unique = 0
  AND NOT EXISTS (
      SELECT 1
      FROM information_schema.columns AS c
      WHERE c.table_schema = s.table_schema
        AND c.table_name = s.table_name
        AND c.column_name = s.column_name
        AND c.extra = 'auto_increment')
"""


def refused(errno: int, database: Database, table: str, **changes: object) -> str:
    """Insert a row that must be refused with ``errno``; what the engine said."""
    with pytest.raises(pymysql.MySQLError) as raised:
        insert_row(database, table, **changes)
    assert raised.value.args[0] == errno
    return str(raised.value.args[1])


def names(database: Database, kind: str) -> set[str]:
    rows = database.rows(
        "SELECT constraint_name AS name FROM information_schema.table_constraints "
        "WHERE table_schema = %s AND constraint_type = %s",
        (database.name, kind),
    )
    return {row["name"] for row in rows}


def test_every_valid_row_is_taken(database):
    for table in VALID:
        if table != "oms_order_transition":
            insert_row(database, table)
            assert database.count(table) == 1


def test_no_check_is_without_its_test(database):
    assert names(database, "CHECK") == set(BROKEN_CHECKS)


def test_no_unique_key_is_without_its_test(database):
    unique = {row["name"] for row in database.rows(UNIQUE_COLUMNS, (database.name,))}
    assert unique == set(UNIQUE_KEYS)


def test_only_the_legal_pairs_are_referred_to(database):
    """A key to oms_order or ims_sku_stock would deadlock two orders of one SKU."""
    assert names(database, "FOREIGN KEY") == {"fk_order_transition", "fk_event_transition"}


@pytest.mark.parametrize(
    ("check", "table", "changes"),
    [(check, table, one) for check, (table, all_) in BROKEN_CHECKS.items() for one in all_],
)
def test_a_check_refuses_what_breaks_it(database, check, table, changes):
    assert f"'{check}'" in refused(CHECK, database, table, **changes)
    assert database.count(table) == 0


@pytest.mark.parametrize(
    ("key", "table", "changes"), [(k, t, c) for k, (t, c) in UNIQUE_KEYS.items()]
)
def test_a_unique_key_refuses_a_second_row(database, key, table, changes):
    if table == "oms_order_transition":
        assert f"'{key}'" in refused(DUPLICATE, database, table, to_status="SHIPPED")
        return
    insert_row(database, table)
    assert f"'{key}'" in refused(DUPLICATE, database, table, **changes)
    assert database.count(table) == 1


def test_any_number_of_payments_may_be_without_an_order_or_wait_for_their_refund(database):
    insert_row(database, "oms_order_payment", trade_no="T1")
    for n in (2, 3):
        insert_row(database, "oms_order_payment", trade_no=f"T{n}", state="REFUND_PENDING")
        insert_row(
            database, "oms_order_payment", trade_no=f"U{n}", order_id=None, state="UNMATCHED"
        )
    assert database.count("oms_order_payment") == 5


def test_any_number_of_requests_may_be_in_flight(database):
    for key in ("a", "b"):
        insert_row(
            database, "oms_order_request", idempotency_key=key, state="PROCESSING", order_id=None
        )
    assert database.count("oms_order_request") == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [("NONE", "PAID"), ("CLOSED", "PENDING_PAYMENT"), ("PAID", "CLOSED"), ("PAID", "PAID")],
)
def test_an_order_and_its_trail_take_legal_pairs_only(database, before, after):
    reason = "EXPIRED" if after == "CLOSED" else None
    said = refused(
        FOREIGN_KEY, database, "oms_order", prev_status=before, status=after, close_reason=reason
    )
    assert "fk_order_transition" in said
    said = refused(FOREIGN_KEY, database, "oms_order_event", from_status=before, to_status=after)
    assert "fk_event_transition" in said


def test_a_change_by_hand_that_names_where_it_comes_from_is_judged(database):
    insert_row(database, "oms_order")
    with pytest.raises(pymysql.MySQLError, match="fk_order_transition"):
        database.execute("UPDATE oms_order SET prev_status = status, status = 'SHIPPED'")
    database.execute("UPDATE oms_order SET prev_status = status, status = 'PAYMENT_PROCESSING'")
    assert database.value("SELECT status FROM oms_order") == "PAYMENT_PROCESSING"


def test_a_change_by_hand_without_prev_status_is_judged_by_the_one_before(database):
    """The known limit: the engine sees the pair, not the step; the trail still tells."""
    insert_row(database, "oms_order", prev_status="PENDING_PAYMENT", status="PAYMENT_PROCESSING")
    database.execute("UPDATE oms_order SET status = 'PAID', paid_amount = pay_amount")
    assert database.one("SELECT prev_status, status FROM oms_order") == {
        "prev_status": "PENDING_PAYMENT",
        "status": "PAID",
    }
    # The same step from PAID is as illegal as can be, and passes for the same reason.
    database.execute("UPDATE oms_order SET status = 'PAYMENT_PROCESSING'")
    with pytest.raises(pymysql.MySQLError, match="fk_order_transition"):
        database.execute("UPDATE oms_order SET status = 'SHIPPED'")


def test_a_manual_stock_below_what_is_held_is_refused_and_the_hold_can_still_be_given_back(
    database,
):
    insert_row(database, "ims_sku_stock", lock_stock=3)
    with pytest.raises(pymysql.MySQLError, match="ck_sku_stock"):
        database.execute("UPDATE ims_sku_stock SET stock = 2")
    database.execute("UPDATE ims_sku_stock SET lock_stock = lock_stock - 3")
    assert database.stock(1001) == (10, 0)


def test_keys_are_never_folded_and_a_padded_one_is_no_second_key(database):
    """ascii_bin pads: to the engine "k1" and "k1 " are one key, so the edge refuses spaces."""
    columns: dict[str, object] = {"state": "PROCESSING", "order_id": None}
    for key in ("k1", "K1"):
        insert_row(database, "oms_order_request", idempotency_key=key, **columns)
    refused(DUPLICATE, database, "oms_order_request", idempotency_key="k1 ", **columns)
    found = database.rows("SELECT * FROM oms_order_request WHERE idempotency_key = 'k1'")
    assert len(found) == 1
    with pytest.raises(Problem) as edge:
        check_key("k1 ")
    assert edge.value.code == "IDEMPOTENCY_KEY_INVALID"
