"""The tables as outside tools read them, and the rules that hold for every column of a kind."""

import re

import pytest

from lockstep.inventory.model import Refusal, ReservationState
from lockstep.messaging.contracts import QUEUE_OF
from lockstep.orders.model import (
    ORDER_TRANSITIONS,
    CloseReason,
    OrderStatus,
    RequestState,
)
from lockstep.payments.model import NoticeState, PaymentState, RefundReason

PROMISED = {
    "oms_order": "id order_no member_id status prev_status close_reason cancel_requested_at "
    "total_amount pay_amount paid_amount refunded_amount reservation_id expires_at paid_at "
    "created_at",
    "oms_order_item": "order_id sku_id title quantity price amount",
    "oms_order_request": "member_id idempotency_key request_hash state order_id",
    "oms_order_event": "id order_id from_status to_status actor reason evidence created_at",
    "oms_order_payment": "id provider trade_no out_trade_no order_id amount state reason "
    "refunded_amount gateway_paid_at",
    "oms_payment_attempt": "order_id out_trade_no product amount state expires_at",
    "oms_refund": "id payment_id out_request_no amount state requested_by next_try_at",
    "oms_money_entry": "order_id payment_id kind amount source",
    "oms_notice": "provider notify_id trade_no out_trade_no trade_status state reason",
    "ims_sku_stock": "sku_id title price stock lock_stock hot on_sale",
    "ims_stock_entry": "sku_id kind delta source actor reason",
    "ims_reservation": "reservation_id order_id n request_hash state expires_at",
    "ims_reservation_item": "reservation_id sku_id quantity",
    "outbox": "id message_id queue group_key payload sent_at attempts next_at",
    "message_refusal": "message_id type reservation_id code created_at",
}
# Text that people write; everything else that is text is an id or a word of a fixed list.
PROSE = {"title", "note", "actor", "reason", "requested_by"}
WORD_REASONS = {("oms_order_event", "reason"), ("oms_notice", "reason")}
WORD_REASONS |= {("oms_order_payment", "reason")}

STATES_BY_CHECK = {
    "ck_reservation_state": set(ReservationState),
    "ck_payment_state": set(PaymentState),
    "ck_notice_state": set(NoticeState),
    "ck_order_close_reason": set(CloseReason),
    # UNKNOWN is the absence of a row.
    "ck_request_state": set(RequestState) - {RequestState.UNKNOWN},
    "ck_attempt_state": {"OPEN", "CLOSING", "CLOSED", "PAID"},
    "ck_refund_state": {"DUE", "CALLING", "DONE", "UNKNOWN", "FAILED"},
    "ck_stock_kind": {"INITIAL", "RESTOCK", "CORRECTION", "RETURN"},
}
WORDS_BY_COLUMN = {
    ("oms_order", "status"): list(OrderStatus),
    ("oms_order", "prev_status"): list(OrderStatus),
    ("oms_order", "close_reason"): list(CloseReason),
    ("oms_order_event", "from_status"): list(OrderStatus),
    ("oms_order_event", "to_status"): list(OrderStatus),
    ("oms_order_event", "reason"): [*CloseReason, "PLACED", "PAID", "REFUNDED_IN_FULL"],
    ("oms_order_request", "state"): list(RequestState),
    ("oms_order_payment", "state"): list(PaymentState),
    ("oms_order_payment", "reason"): list(RefundReason),
    ("oms_notice", "state"): list(NoticeState),
    ("ims_reservation", "state"): list(ReservationState),
    ("message_refusal", "code"): list(Refusal),
    ("message_refusal", "type"): [model.__name__ for model in QUEUE_OF],
    ("outbox", "queue"): list(QUEUE_OF.values()),
}

READ_COLUMNS = """
SELECT c.table_name AS t, c.column_name AS name, c.data_type AS type, c.column_type AS full_type,
       c.collation_name AS collation, c.datetime_precision AS places,
       c.character_maximum_length AS length
FROM information_schema.columns AS c
WHERE c.table_schema = %s
"""


@pytest.fixture
def columns(database):
    return database.rows(READ_COLUMNS, (database.name,))


@pytest.mark.parametrize("table", PROMISED)
def test_every_promised_column_is_there(columns, table):
    there = {column["name"] for column in columns if column["t"] == table}
    assert set(PROMISED[table].split()) - there == set()


def test_every_time_has_milliseconds(columns):
    times = [c for c in columns if c["type"] in {"datetime", "timestamp", "date", "time"}]
    assert len(times) >= 20
    assert [c for c in times if (c["type"], c["places"]) != ("datetime", 3)] == []


def test_ids_and_words_are_compared_byte_by_byte(columns):
    texts = [c for c in columns if c["type"] in {"char", "varchar"}]
    ids = [c for c in texts if c["name"] not in PROSE or (c["t"], c["name"]) in WORD_REASONS]
    assert len(ids) >= 30
    assert [c for c in ids if c["collation"] != "ascii_bin"] == []


def test_prose_takes_any_script(columns):
    texts = [c for c in columns if c["type"] in {"char", "varchar"}]
    prose = [c for c in texts if c["name"] in PROSE and (c["t"], c["name"]) not in WORD_REASONS]
    assert len(prose) >= 6
    assert [c for c in prose if not c["collation"].startswith("utf8mb4_")] == []


def test_money_is_exact(columns):
    money = [c for c in columns if re.search(r"amount|\bprice|refund_fee", c["name"])]
    assert len(money) >= 12
    assert {c["full_type"] for c in money} == {"decimal(18,2)"}


def test_no_number_is_unsigned(columns):
    """An unsigned `stock - lock_stock` raises 1690 where the guard should just say no."""
    assert [c for c in columns if "unsigned" in c["full_type"]] == []


def test_keys_that_a_table_draws_itself_are_big_and_automatic(database):
    drawn = database.rows(
        "SELECT table_name AS t, data_type AS type FROM information_schema.columns "
        "WHERE table_schema = %s AND column_name = 'id' AND extra = 'auto_increment'",
        (database.name,),
    )
    assert len(drawn) == 11
    assert {row["type"] for row in drawn} == {"bigint"}


def test_every_table_is_transactional(database):
    engines = database.rows(
        "SELECT DISTINCT engine AS e FROM information_schema.tables WHERE table_schema = %s",
        (database.name,),
    )
    assert engines == [{"e": "InnoDB"}]


def test_the_legal_pairs_are_the_transitions_of_the_model(database):
    rows = database.rows("SELECT from_status, to_status FROM oms_order_transition")
    assert {(row["from_status"], row["to_status"]) for row in rows} == {
        (before, after) for before, afters in ORDER_TRANSITIONS.items() for after in afters
    }


@pytest.mark.parametrize(("check", "states"), STATES_BY_CHECK.items())
def test_a_list_of_states_in_the_schema_is_the_one_in_the_model(database, check, states):
    clause = database.value(
        "SELECT check_clause AS c FROM information_schema.check_constraints "
        "WHERE constraint_schema = %s AND constraint_name = %s",
        (database.name, check),
    )
    [listed] = re.findall(r"in \(([^()]+)\)", clause)
    assert set(re.findall(r"'(\w+)\\?'", listed)) == states


def test_every_list_of_states_in_the_schema_is_compared(database):
    rows = database.rows(
        "SELECT constraint_name AS name, check_clause AS c "
        "FROM information_schema.check_constraints WHERE constraint_schema = %s",
        (database.name,),
    )
    lists = {row["name"] for row in rows if " in (" in row["c"]}
    # Subsets: which payments may be without an order, which refunds are never without a next try.
    assert lists - {"ck_payment_order", "ck_refund_next_try"} == set(STATES_BY_CHECK)


@pytest.mark.parametrize(("column", "words"), WORDS_BY_COLUMN.items())
def test_a_column_is_wide_enough_for_every_word_it_may_hold(columns, column, words):
    [width] = [c["length"] for c in columns if (c["t"], c["name"]) == column]
    assert max(len(word) for word in words) <= width
