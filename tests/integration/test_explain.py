"""Every statement of the stores reaches its rows by the right key, on tables that are not small.

The statements are found by looking: one without its arguments and keys here fails the test.
"""

import os
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.support import bulk, statements
from tests.support.database import Database
from tests.support.plans import Arguments, plan_of

STATEMENTS = statements.of_the_stores()
HASH = "0" * 64
FAR = 2**63 - 1


def order_no(order_id: int) -> str:
    return f"20261130{order_id:016d}"


NO = order_no(200)
HOLD = f"{NO}-1"
ORDER = {"oms_order": "PRIMARY"}
SKU = {"ims_sku_stock": "PRIMARY"}
RESERVATION = {"ims_reservation": "uk_reservation"}
REFUND = {"oms_refund": "PRIMARY"}
ATTEMPT = {"oms_payment_attempt": "uk_attempt_out_trade_no"}
ATTEMPT_ROW = {"oms_payment_attempt": "PRIMARY"}
PAYMENT = {"oms_order_payment": "PRIMARY"}
OF_THE_ATTEMPT = "ix_attempt_order"
WITH_HOLD = {"r": "uk_reservation"}
# Where a sweep begins to look.
PAGE = {"at": "1970-01-02", "id": 0, "limit": 100}
# Where a purge does.
AGE = {"at": "1970-01-02", "days": 30, "limit": 500}

# Statement -> realistic arguments, and the key by which each of its tables is reached.
PLANNED: dict[str, tuple[Arguments, Mapping[str, str]]] = {
    "inventory.READ_SKUS": (((1001, 1002, 1003),), SKU),
    "inventory.HOLD_STOCK": ({"sku_id": 1001, "quantity": 1}, SKU),
    "inventory.SELL_STOCK": ({"sku_id": 1001, "quantity": 1}, SKU),
    "inventory.FREE_STOCK": ({"sku_id": 1001, "quantity": 1}, SKU),
    "inventory.LOCK_RESERVATION": ((HOLD,), {"r": "uk_reservation", "i": "PRIMARY"}),
    "inventory.READ_RESERVATION_SHARED": ((HOLD,), RESERVATION),
    "inventory.READ_STATE": ((HOLD,), RESERVATION),
    "inventory.MARK_CONFIRMED": ((HOLD,), RESERVATION),
    "inventory.MARK_RELEASED": ((HOLD,), RESERVATION),
    "inventory.READ_LOAD": (("x",), {}),
    "inventory.LOCK_SKUS": (((1001, 1002, 1003),), SKU),
    "inventory.CHANGE_SKUS": (('[[1001,"a","1.00",1,0,1]]',), {"s": "PRIMARY"}),
    "inventory.READ_RETURNED": (
        (("return:R1:1001", "return:R2:1001"),),
        {"ims_stock_entry": "uk_stock_source"},
    ),
    "inventory.ADD_STOCK": ((1, 1001), SKU),
    "messaging.LOCK_DUE": ((100,), {"outbox": "ix_outbox_due"}),
    "messaging.LEASE": ({"seconds": 60, "most": 300, "ids": (1, 2, 3)}, {"outbox": "PRIMARY"}),
    "messaging.COUNT_DUE": ((), {"outbox": "ix_outbox_due"}),
    "messaging.READ_STAGED": (("confirm", HOLD), {"outbox": "ix_outbox_group"}),
    "messaging.MARK_SENT": (("f" * 32,), {"outbox": "uk_outbox_message"}),
    "orders.COMPLETE_REQUEST": ((200, 200, "k200"), {"oms_order_request": "PRIMARY"}),
    "orders.READ_REQUEST": ((200, "k200"), {"oms_order_request": "PRIMARY"}),
    "orders.CLOSE_ORDER": (("EXPIRED", 200), {**ORDER, "a": OF_THE_ATTEMPT}),
    "orders.EXPIRE_ORDER": ((201,), {**ORDER, "a": OF_THE_ATTEMPT}),
    "orders.GIVE_UP_ORDER": ((200, 300), ORDER),
    "orders.MARK_HELD": (("2026-12-01", (199, 200)), ORDER),
    "orders.MARK_SOLD_OUT": (((199, 200),), ORDER),
    "orders.LOCK_TURN": ((1001,), {"ims_hot_turn": "PRIMARY"}),
    "orders.READ_PLACES": (
        (tuple(range(1, 11)),),
        {"o": "PRIMARY", "p": "ix_payment_order"},
    ),
    "orders.READ_WAITING_IDS": ((1001, 0, 1000), {"oms_order": "ix_order_turn"}),
    "orders.LOCK_WAITING": (
        (tuple(range(1, 101)),),
        {"o": "PRIMARY", "i": "PRIMARY", **WITH_HOLD},
    ),
    "orders.APPEND_EVENTS": (("system:x", "HELD", tuple(range(1, 101))), ORDER),
    "orders.MARK_PAID": ((200, "9.90"), ORDER),
    "orders.REQUEST_CANCEL": ((200,), ORDER),
    "orders.MARK_PROCESSING": ((200,), ORDER),
    "orders.READ_PAYABLE": ((200,), {"o": "PRIMARY", **WITH_HOLD}),
    "orders.RECORD_REFUNDED_AMOUNT": ({"order_id": 200, "refunded": "9.90"}, ORDER),
    "orders.MARK_REFUNDING": ((200,), ORDER),
    "orders.MARK_REFUNDED": ((200,), ORDER),
    "orders.LOCK_OWN_ORDER": ((NO, 200), {"oms_order": "uk_order_no"}),
    "orders.LOCK_ORDER": ((200,), ORDER),
    "orders.LOCK_ORDER_BY_NO": ((NO,), {"oms_order": "uk_order_no"}),
    "orders.BEGIN_REFUND": ((200,), ORDER),
    "orders.GIVE_UP_REFUND": ({"order_id": 200, "back_to": "PAID"}, ORDER),
    "orders.LOCK_ORDER_OF_TRADE": (
        {"out_trade_no": f"{NO}_2", "provider": "alipay", "trade_no": "T200"},
        {**ORDER, **ATTEMPT, "a": OF_THE_ATTEMPT, "p": "uk_payment_trade"},
    ),
    "orders.REINSTATE_ORDER": ((HOLD, 200, "9.90"), ORDER),
    "orders.READ_ORDER": ((200,), {"o": "PRIMARY", **WITH_HOLD}),
    "orders.READ_OWN_ORDER": ((NO, 200), {"o": "uk_order_no", **WITH_HOLD}),
    "orders.LIST_ORDERS": (
        {"member_id": 200, "before": FAR, "limit": 21},
        {"o": "ix_order_member", **WITH_HOLD},
    ),
    "orders.LIST_ORDERS_IN_STATUS": (
        {"member_id": 200, "status": "PAID", "before": FAR, "limit": 21},
        {"o": "ix_order_member_status", **WITH_HOLD},
    ),
    "orders.READ_ITEMS": ((tuple(range(1, 21)),), {"oms_order_item": "PRIMARY"}),
    "orders.READ_WANTED": ((200,), {"oms_order_item": "PRIMARY"}),
    "orders.READ_STATUS": ((200,), ORDER),
    "orders.READ_TIMELINE": ((200,), {"oms_order_event": "ix_event_order"}),
    "orders.READ_OWN_HOLDS": (
        (200, (1001, 1002)),
        {"o": "ix_order_member", "r": "uk_reservation", "i": "PRIMARY"},
    ),
    "upkeep.READ_EXPIRED_ORDERS": (
        {**PAGE, "status": "PENDING_PAYMENT"},
        {"o": "ix_order_expiry", "a": OF_THE_ATTEMPT},
    ),
    "upkeep.READ_DUE_ATTEMPTS": (PAGE, {"oms_payment_attempt": "ix_attempt_ask"}),
    "upkeep.READ_WAITING_ORDERS": ({**PAGE, "seconds": 60}, {"o": "ix_order_waiting"}),
    "upkeep.READ_WAITING_TURNS": (
        {**PAGE, "seconds": 60},
        {"o": "ix_order_waiting", "f": "ix_order_turn"},
    ),
    "upkeep.READ_OVERDUE_HOLDS": (PAGE, {"r": "ix_reservation_expiry", "o": "PRIMARY"}),
    "upkeep.READ_UNSETTLED_HOLDS": (
        PAGE,
        {"r": "ix_reservation_expiry", "o": "PRIMARY", "b": "ix_outbox_group"},
    ),
    "upkeep.READ_LATE_PAYMENTS": (
        {**PAGE, "seconds": 60},
        {"p": "ix_payment_state", "o": "PRIMARY"},
    ),
    "upkeep.READ_DUE_NOTICES": (PAGE, {"oms_notice": "ix_notice_ask"}),
    "upkeep.COUNT_OVERDUE": ((), {"o": "ix_order_expiry", "r": "ix_reservation_expiry"}),
    "payments.READ_NOTICE_STATE": (("alipay", "N200", HASH), {"oms_notice": "uk_notice"}),
    "payments.LOCK_NOTICE": (("alipay", "N200", HASH), {"oms_notice": "uk_notice"}),
    "payments.FINISH_NOTICE": (
        {"state": "DONE", "reason": None, "id": 1},
        {"oms_notice": "PRIMARY"},
    ),
    "payments.LEASE_NOTICE": ((60, 1), {"oms_notice": "PRIMARY"}),
    "payments.READ_STORED_NOTICE": ((200,), {"n": "PRIMARY", "p": "uk_payment_trade"}),
    "payments.LOCK_STORED_NOTICE": ((200,), {"oms_notice": "PRIMARY"}),
    "payments.WAKE_NOTICES": (("T200", "alipay"), {"oms_notice": "ix_notice_trade"}),
    "payments.READ_DUE_NOTICES": (("T200", "alipay"), {"oms_notice": "ix_notice_trade"}),
    "payments.MARK_ATTEMPT_PAID": ((f"{NO}_2",), ATTEMPT),
    "payments.CLOSE_OPEN_ATTEMPT": ((f"{NO}_2",), ATTEMPT),
    "payments.CLOSE_ASKED_ATTEMPT": ((f"{NO}_2",), ATTEMPT),
    "payments.READ_ATTEMPTS": ((200,), {"oms_payment_attempt": OF_THE_ATTEMPT}),
    "payments.READ_ATTEMPT": ((60, 1), ATTEMPT_ROW),
    "payments.BEGIN_CLOSING": ((1,), ATTEMPT_ROW),
    "payments.ASK_NOW": ((1,), ATTEMPT_ROW),
    "payments.LEASE_ATTEMPT": ((30, 1), ATTEMPT_ROW),
    "payments.CLOSE_ATTEMPT": ((1,), ATTEMPT_ROW),
    "payments.POSTPONE_POLL": ((60, 60, 1), ATTEMPT_ROW),
    "payments.POSTPONE_CLOSE": ((60, 1), ATTEMPT_ROW),
    "payments.ASK_AT_THE_END": ({"seconds": 60, "id": 1}, ATTEMPT_ROW),
    "payments.FORGET_ATTEMPT": ((1,), ATTEMPT_ROW),
    "payments.LOCK_PAYMENT": (
        {"provider": "alipay", "trade_no": "T200"},
        {"p": "uk_payment_trade", "n": "ix_notice_trade"},
    ),
    "payments.MATCH_PAYMENT": ((1, "APPLIED", None, 1), PAYMENT),
    "payments.READ_REFUND_PLACE": ((1,), {"r": "PRIMARY", "p": "PRIMARY"}),
    "payments.LOCK_REFUNDABLE": ((1,), PAYMENT),
    "payments.READ_APPLIED": ((200,), {"oms_order_payment": "uk_payment_applied"}),
    "payments.READ_REFUNDS": ((1,), {"oms_refund": "uk_refund_request"}),
    "payments.ASK_AGAIN": (("operator:alice", 1), REFUND),
    "payments.CLAIM_CALL": ((60, 1), REFUND),
    "payments.CLAIM_QUERY": ((60, 1), REFUND),
    "payments.DEFER": ((10, 1), REFUND),
    "payments.MARK_DONE": ((1,), REFUND),
    "payments.MARK_UNKNOWN": ((None, 10, 1, 1), REFUND),
    "payments.MARK_DUE": ((None, 10, 1, 1), REFUND),
    "payments.MARK_FAILED": (("X", 1, 1), REFUND),
    "payments.ADD_REFUNDED": ({"id": 1, "amount": "1.00"}, PAYMENT),
    "payments.MARK_TOLD": (("1.00", 1), PAYMENT),
    "payments.MARK_PAYMENT_REFUNDING": ((1,), PAYMENT),
    "payments.MARK_PAYMENT_FAILED": ((1,), PAYMENT),
    "payments.GIVE_UNMATCHED_BACK": ((1,), PAYMENT),
    "payments.LIST_WAITING": (
        {"state": "UNMATCHED", "before": FAR, "limit": 21},
        {
            "p": "ix_payment_state",
            "f": "uk_refund_request",
            "later": "uk_refund_request",
            "o": "PRIMARY",
        },
    ),
    "payments.LIST_APPLIED_WITH_FAILED_REFUND": (
        {"before": FAR, "limit": 21},
        {"f": "ix_refund_due", "p": "PRIMARY", "later": "uk_refund_request", "o": "PRIMARY"},
    ),
    "payments.MARK_PAYMENT_REFUNDED": ((1,), PAYMENT),
    "payments.MARK_FINISHED": ((None, 1), PAYMENT),
    "payments.READ_UNCONFIRMED_HOLD": (
        ("alipay", "T204"),
        {"p": "uk_payment_trade", "o": "PRIMARY", "r": "uk_reservation"},
    ),
    "payments.HAS_OPEN_REFUND": ((200,), {"oms_refund": "uk_refund_request"}),
    "payments.READ_RECEIPT": ((200,), PAYMENT),
    "payments.READ_REFUND_DONE": ((200, "R1"), {}),
    "payments.READ_LATE_PAYMENTS": ((200,), {"oms_order_payment": "ix_payment_order"}),
    "payments.READ_LATE_ORDERS": ((1001,), {"p": "ix_payment_state", "o": "PRIMARY"}),
    "payments.COUNT_LATE_PAYMENTS": ((200,), {"oms_order_payment": "ix_payment_order"}),
    "payments.SETTLE_LATE_PAYMENT": (("APPLIED", None, 1), PAYMENT),
    "payments.READ_PAYMENTS": ((200,), {"oms_order_payment": "ix_payment_order"}),
    "upkeep.FIND_OUTBOX": (
        AGE,
        {
            "b": "ix_outbox_due",
            "r": "uk_reservation",
            "o": "uk_order_no",
            "f": "uk_refund_request",
        },
    ),
    "upkeep.READ_DUE_REFUNDS": ({**PAGE, "state": "UNKNOWN"}, {"r": "ix_refund_due"}),
    "upkeep.READ_UNASKED_REFUNDS": (
        PAGE,
        {"p": "ix_payment_state", "r": "uk_refund_request"},
    ),
    "upkeep.READ_STAGED_REFUND": (
        {"group_key": "200", "refund_id": 200},
        {"r": "PRIMARY", "b": "ix_outbox_group"},
    ),
    "upkeep.FIND_NOTICES": (AGE, {"n": "ix_notice_state", "p": "uk_payment_trade"}),
    "upkeep.FIND_TOMBSTONES": (AGE, {"r": "ix_reservation_expiry", "b": "ix_outbox_group"}),
    "upkeep.FIND_REFUSALS": (AGE, {"message_refusal": "ix_refusal_created"}),
    "upkeep.DELETE_OUTBOX": (((1, 2, 3),), {"outbox": "PRIMARY"}),
    "upkeep.DELETE_NOTICES": (((1, 2, 3),), {"oms_notice": "PRIMARY"}),
    "upkeep.DELETE_TOMBSTONES": (((1, 2, 3),), {"ims_reservation": "PRIMARY"}),
    "upkeep.DELETE_REFUSALS": (((1, 2, 3),), {"message_refusal": "PRIMARY"}),
}
PLAIN_INSERTS: dict[str, Arguments] = {
    "inventory.INSERT_LOAD": ("x", HASH, "a", 0, 0, 0, 0),
    "inventory.INSERT_SKUS": (1, "t", "1.00", 1, 0, 1),
    "inventory.INSERT_ENTRIES": (1, "INITIAL", 1, "x", "a", "b"),
    "inventory.INSERT_RETURNS": (1, 1, "return:x:1", "operator:a", "b"),
    "inventory.INSERT_RESERVATION": ("x-1", 1, 2, HASH, "2026-11-30"),
    "inventory.INSERT_TOMBSTONE": ("x-1", 1, 2),
    "inventory.INSERT_ITEMS": ("x-1", 1, 2),
    "messaging.INSERT_OUTBOX": ("0" * 32, "confirm", "x-1", "{}", 10),
    "messaging.INSERT_REFUSAL": ("0" * 32, "ConfirmStock", "x-1", "X"),
    "orders.CLAIM_REQUEST": (1, "new", HASH),
    "orders.INSERT_ORDER": (
        NO,
        1,
        "PENDING_PAYMENT",
        "1.00",
        "1.00",
        None,
        HOLD,
        None,
        "2026-11-30",
        "2026-11-30",
    ),
    "orders.INSERT_TURN": (1,),
    "orders.INSERT_EVENTS": (1, "system:x", "{}"),
    "orders.INSERT_ITEMS": (1, 1, "t", 1, "1.00", "1.00"),
    "orders.INSERT_EVENT": (1, "NONE", "RESERVING", "member:1", "PLACED", None),
    "payments.INSERT_NOTICE": dict.fromkeys(
        re.findall(r"%\((\w+)\)s", STATEMENTS["payments.INSERT_NOTICE"])
    ),
    "payments.INSERT_ATTEMPT": (1, "new", "page", "1.00", "2026-11-30", 60),
    "payments.INSERT_ENTRY": (1, 1, "PAYMENT", "1.00", "payment:x"),
    "payments.INSERT_DUE": (1, "R", "1.00", "operator:a", "b", None),
    "payments.INSERT_DONE": (1, "R", "1.00", "alipay", "b"),
    "payments.INSERT_PAYMENT": ("alipay", "T", "O", 1, "1.00", "APPLIED", None, None),
}
# Statements that sort, and why it costs nothing that grows.
MAY_SORT = {
    "payments.READ_LATE_ORDERS": "late money that waits for one SKU: a minute's worth",
    "payments.READ_ATTEMPTS": "the payment pages of one order",
    "payments.LIST_WAITING": "money that waits for a person: people can only see to a few",
    "payments.LIST_APPLIED_WITH_FAILED_REFUND": "refunds that were given up: the same",
    "orders.READ_OWN_HOLDS": "the unpaid orders of one member, only after a shortage",
}


@pytest.fixture(scope="module")
def filled() -> Iterator[Database]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    database = Database.create(f"lockstep_explain_{worker}")
    bulk.fill(database)
    # The rows that a const lookup must find for its plan to name them.
    database.execute("UPDATE oms_notice SET content_hash = %s WHERE notify_id = 'N200'", (HASH,))
    database.execute("UPDATE ims_reservation SET state = 'RESERVED' WHERE order_id = 204")
    yield database
    database.drop()


def test_every_statement_of_the_stores_is_planned_here():
    assert set(STATEMENTS) == set(PLANNED) | set(PLAIN_INSERTS)
    assert len(STATEMENTS) > 50


@pytest.mark.parametrize("name", PLAIN_INSERTS)
def test_an_insert_reads_nothing(filled, name):
    assert plan_of(filled, STATEMENTS[name], PLAIN_INSERTS[name]).is_plain_insert


@pytest.mark.parametrize("name", PLANNED)
def test_a_statement_reaches_its_rows_by_the_expected_key(filled, name):
    arguments, keys = PLANNED[name]
    plan = plan_of(filled, STATEMENTS[name], arguments)
    assert plan.scanned == ()
    assert plan.keys == keys
    assert plan.sorts == (name in MAY_SORT)


def test_a_member_with_many_old_orders_is_listed_by_the_members_own_key(filled):
    """By the primary key the engine would walk through everybody's newer orders first."""
    filled.execute("UPDATE oms_order SET member_id = 7 WHERE id <= 1000")
    filled.rows("ANALYZE TABLE oms_order")
    for name in ("orders.LIST_ORDERS", "orders.LIST_ORDERS_IN_STATUS"):
        arguments, keys = PLANNED[name]
        assert isinstance(arguments, Mapping)
        plan = plan_of(filled, STATEMENTS[name], {**arguments, "member_id": 7})
        assert plan.keys == keys
        assert not plan.sorts


def test_several_statuses_at_once_are_found_by_the_key_but_sorted(filled):
    """Known: IN breaks the order of (status, expires_at). One query a status does not sort."""
    plan = plan_of(
        filled,
        "SELECT id FROM oms_order WHERE status IN ('PENDING_PAYMENT', 'PAYMENT_PROCESSING') "
        "AND expires_at <= NOW(3) ORDER BY expires_at LIMIT 100",
    )
    assert (plan.scanned, plan.keys) == ((), {"oms_order": "ix_order_expiry"})
    assert plan.sorts
