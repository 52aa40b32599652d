"""Money for an order that expired: it goes back, or revives the order with a fresh hold.

The deployment chooses (LATE_PAYMENT_POLICY). In both cases it is recorded, answered success, and
ends; in neither is anything sold that was not there.
"""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from functions import reserve_stock
from lockstep import settings
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import InvariantBroken
from lockstep.inventory.model import Released
from lockstep.inventory.release import release
from lockstep.messaging.contracts import ReserveStock
from lockstep.orders import store
from lockstep.orders.model import CloseReason, OrderStatus
from lockstep.orders.reinstate import may_be_reinstated, take_up
from lockstep.payments.model import NothingLate, Reinstated, Result, SentBack
from lockstep.payments.reinstate import reinstate
from tests.support.batches import batch, failed_ids, record_of
from tests.support.builders import a_sku, an_order, assert_at_rest, deliver_outbox
from tests.support.channel import cancel, sweep
from tests.support.database import Database
from tests.support.lambda_context import Context
from tests.support.late import IN_TIME, TOO_LATE, an_expired_order, reinstating
from tests.support.notices import (
    an_attempt,
    attempt_state,
    finished,
    order_row,
    payment_row,
    payment_state,
    refunded,
    refunded_in_full,
    staged,
    the_order,
    trail,
)
from tests.support.reading import SIGNER as ALIPAY

NOTHING = Decimal("0.00")
ALL = Decimal("9.90")
EXPIRED = ("CLOSED", "EXPIRED", NOTHING, NOTHING)
PAID = ("PAID", None, ALL, NOTHING)
# By an order that is taken up again.
TOUCHED = ("oms_order", "oms_order_event", "ims_reservation", "ims_sku_stock", "outbox")


@pytest.fixture
def policy(monkeypatch):
    reinstating(monkeypatch)


@pytest.fixture(autouse=True)
def known_to_the_function(monkeypatch):
    ALIPAY.configure(monkeypatch)


def base_of(database: Database) -> str:
    """What the ids of the order's holds begin with."""
    first = database.value("SELECT MIN(reservation_id) FROM ims_reservation")
    return str(first).rpartition("-")[0]


def holds(database: Database) -> list[tuple[int, str]]:
    rows = database.rows("SELECT n, state FROM ims_reservation ORDER BY order_id, n")
    return [(row["n"], row["state"]) for row in rows]


# --- the choice ----------------------------------------------------------------------------------


def test_the_policy_is_to_refund_unless_the_deployment_says_otherwise(monkeypatch):
    monkeypatch.delenv("LATE_PAYMENT_POLICY", raising=False)
    settings.late_payment_policy.cache_clear()
    assert settings.late_payment_policy() is settings.LatePaymentPolicy.REFUND


def test_a_policy_that_is_none_is_noticed(monkeypatch):
    reinstating(monkeypatch, "KEEP")
    with pytest.raises(ValueError, match="KEEP"):
        settings.late_payment_policy()


def test_by_default_late_money_goes_back_p7_p8_e1(database):
    """P7, P8, E1: closed here, paid there; nothing is sold again."""
    order_id = an_expired_order(database, stock=1)
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database) == EXPIRED
    assert set(staged(database)).isdisjoint({"reserve", "confirm"})
    assert reinstate(order_id) == NothingLate()
    assert_at_rest(database)
    assert database.stock(1001) == (1, 0)


# --- reinstated ----------------------------------------------------------------------------------


def test_money_in_time_revives_its_order_with_a_fresh_hold(database, policy):
    order_id = an_expired_order(database)
    deliver_outbox(database)
    assert database.stock(1001) == (10, 0)
    assert ALIPAY.notify()["body"] == "success"
    assert payment_state(database) == ("REINSTATE_PENDING", None)
    assert order_row(database) == EXPIRED
    message = database.one("SELECT group_key, payload FROM outbox WHERE queue = 'reserve'")
    assert message["group_key"] == f"{base_of(database)}-2"
    assert json.loads(message["payload"])["order_id"] == order_id
    deliver_outbox(database)
    assert order_row(database) == PAID
    assert payment_state(database) == ("APPLIED", None)
    assert_at_rest(database)
    assert holds(database) == [(1, "RELEASED"), (2, "CONFIRMED")]
    assert database.stock(1001) == (9, 0)
    row = database.one("SELECT reservation_id, paid_at FROM oms_order")
    assert row["reservation_id"] == f"{base_of(database)}-2"
    assert row["paid_at"] is not None


def test_the_trail_tells_closed_money_received_reinstated_d9(database, policy):
    """D9: the history explains itself."""
    order_id = an_expired_order(database)
    ALIPAY.accept()
    deliver_outbox(database)
    assert trail(database, order_id) == [
        ("PENDING_PAYMENT", "CLOSED", "system:sweep_expired", "EXPIRED"),
        ("CLOSED", "PAID", "system:reserve_stock", "REINSTATED"),
    ]
    evidence = database.value("SELECT evidence FROM oms_order_event WHERE reason = 'REINSTATED'")
    assert json.loads(evidence) == {
        "trade_no": "T1",
        "gateway_paid_at": "2026-10-24T02:00:05+00:00",
    }


def test_a_hold_that_is_not_given_back_yet_is_given_back_with_it(database, policy):
    """The only unit: it is there, but still in the old hold."""
    an_expired_order(database, stock=1)
    ALIPAY.accept()
    database.execute("UPDATE outbox SET sent_at = NOW(3) WHERE queue = 'release'")
    deliver_outbox(database)
    assert order_row(database) == PAID
    assert holds(database) == [(1, "RELEASED"), (2, "RESERVED")]
    assert database.stock(1001) == (1, 1)
    order_id = database.value("SELECT id FROM oms_order")
    assert release(f"{base_of(database)}-1", order_id) == Released(repeated=True)
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)


def test_a_fresh_hold_outlives_what_its_confirm_may_take(database, policy):
    an_expired_order(database)
    ALIPAY.accept()
    order_id = database.value("SELECT id FROM oms_order")
    assert isinstance(reinstate(order_id), Reinstated)
    left = database.value(
        "SELECT TIMESTAMPDIFF(SECOND, NOW(3), expires_at) FROM ims_reservation WHERE n = 2"
    )
    assert 590 <= left <= 600


def test_stock_that_was_sold_meanwhile_is_not_sold_twice_a5(database, policy):
    """A5: the hold expired, another buyer took it, then the notice came."""
    order_id = an_expired_order(database, stock=1)
    deliver_outbox(database)
    other = the_order(database, "O2")
    ALIPAY.accept(out_trade_no="O2", trade_no="T2", notify_id="N2")
    deliver_outbox(database)
    assert ALIPAY.accept() is Result.REINSTATE_PENDING
    assert reinstate(order_id) == SentBack(1)
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database) == EXPIRED
    assert order_row(database, "O2")[0] == "PAID"
    assert database.count("ims_reservation", order_id=order_id) == 1
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)
    assert other != order_id


def test_two_late_payments_pay_once_and_the_earlier_one_does(database, policy):
    order_id = an_expired_order(database)
    later = {"gmt_payment": "2026-10-24 10:00:05", "trade_no": "T2", "notify_id": "N2"}
    earlier = {"gmt_payment": "2026-10-24 09:59:00"}
    assert ALIPAY.accept(**later) is Result.REINSTATE_PENDING
    assert ALIPAY.accept(**earlier) is Result.REINSTATE_PENDING
    assert isinstance(reinstate(order_id), Reinstated)
    assert payment_state(database, "T1") == ("APPLIED", None)
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert reinstate(order_id) == NothingLate()
    assert_at_rest(database)


def test_of_two_of_the_same_second_the_one_that_was_recorded_first_pays(database, policy):
    order_id = an_expired_order(database)
    ALIPAY.accept(trade_no="T2", notify_id="N2")
    ALIPAY.accept()
    reinstate(order_id)
    assert payment_state(database, "T2") == ("APPLIED", None)


def test_where_stock_is_gone_all_late_money_goes_back(database, policy):
    order_id = an_expired_order(database, stock=1)
    deliver_outbox(database)
    an_order()
    ALIPAY.accept()
    ALIPAY.accept(trade_no="T2", notify_id="N2")
    assert reinstate(order_id) == SentBack(2)
    back = ("REFUND_PENDING", "LATE_PAYMENT")
    assert (payment_state(database), payment_state(database, "T2")) == (back, back)
    assert order_row(database) == EXPIRED
    assert_at_rest(database)


def test_money_after_a_reinstatement_is_a_second_payment(database, policy):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    reinstate(order_id)
    assert ALIPAY.accept(trade_no="T2", notify_id="N2") is Result.REFUND_PENDING
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert_at_rest(database)


def test_a_repeated_notice_and_a_repeated_command_change_nothing(database, policy):
    order_id = an_expired_order(database)
    assert ALIPAY.accept() is Result.REINSTATE_PENDING
    assert ALIPAY.accept() is Result.REPLAYED
    assert staged(database) == ["release", "reserve"]
    command = ReserveStock(reservation_id=f"{base_of(database)}-2", order_id=order_id)
    for _ in range(3):
        assert failed_ids(reserve_stock.handler(batch(record_of("m", command)), Context())) == []
    assert order_row(database) == PAID
    assert len(trail(database, order_id)) == 2
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_the_page_of_the_late_money_is_used_up(database, policy):
    order_id = an_expired_order(database)
    an_attempt(database, order_id, "O1")
    ALIPAY.accept()
    assert attempt_state(database, "O1") == "PAID"


# --- not reinstated ------------------------------------------------------------------------------


def test_money_paid_a_moment_after_the_end_goes_back(database, policy):
    an_expired_order(database, expired_at=TOO_LATE)
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")


def test_money_paid_in_the_last_moment_is_in_time(database, policy):
    an_expired_order(database, expired_at=IN_TIME)
    assert ALIPAY.accept() is Result.REINSTATE_PENDING


def test_money_without_a_time_goes_back(database, policy):
    an_expired_order(database)
    assert ALIPAY.accept(gmt_payment=None) is Result.REFUND_PENDING


def test_a_wrong_sum_goes_back_though_it_was_in_time(database, policy):
    an_expired_order(database)
    assert ALIPAY.accept(total_amount="9.89") is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "AMOUNT_MISMATCH")


@pytest.mark.parametrize("reason", ["CANCELLED", "OUT_OF_STOCK", "GATEWAY_CLOSED"])
def test_only_an_expired_order_is_revived_e11(database, policy, reason):
    """E1, E11: what the member cancelled, or the shop could not hold, is refunded."""
    an_expired_order(database)
    database.execute("UPDATE oms_order SET close_reason = %s", (reason,))
    assert ALIPAY.accept() is Result.REFUND_PENDING
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database)[:2] == ("CLOSED", reason)


def test_a_members_own_cancel_is_refunded_long_after_e11(database, policy):
    """E11: recorded, to go back, answered success."""
    a_sku(database)
    the_order(database)
    cancel(42, "O1")
    deliver_outbox(database)
    assert ALIPAY.notify()["body"] == "success"
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert_at_rest(database)


# --- what went back while it waited --------------------------------------------------------------


def test_late_money_that_went_back_in_whole_revives_nothing(database, policy):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    ALIPAY.accept(**refunded_in_full())
    assert reinstate(order_id) == SentBack(1)
    assert payment_state(database) == ("REFUNDED", "LATE_PAYMENT")
    assert order_row(database) == EXPIRED


def test_late_money_of_which_a_part_went_back_pays_and_the_part_is_counted(database, policy):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    ALIPAY.accept(**refunded("3.00"))
    assert isinstance(reinstate(order_id), Reinstated)
    assert order_row(database) == ("PAID", None, ALL, Decimal("3.00"))


def test_the_end_of_the_window_is_kept_while_late_money_waits(database, policy):
    an_expired_order(database)
    ALIPAY.accept()
    assert ALIPAY.accept(**finished()) is Result.NOTED
    assert payment_row(database)["finished_at"] is not None
    assert payment_state(database)[0] == "REINSTATE_PENDING"


# --- what was lost -------------------------------------------------------------------------------


def test_late_money_whose_command_was_lost_is_lined_up_again(database, policy):
    an_expired_order(database)
    ALIPAY.accept()
    database.execute("UPDATE outbox SET sent_at = NOW(3)")
    assert sweep(lambda: True).restaged == 0
    for table in ("outbox", "oms_order_payment"):
        database.execute(f"UPDATE {table} SET created_at = created_at - INTERVAL 61 SECOND")  # noqa: S608
    assert sweep(lambda: True).restaged == 2  # the release as well
    assert sweep(lambda: True).restaged == 0
    assert staged(database).count("reserve") == 2
    deliver_outbox(database)
    assert order_row(database) == PAID
    assert_at_rest(database)


def test_a_refused_fresh_hold_sends_the_money_back(database, policy):
    """A tombstone of the next hold, which nobody should have left."""
    order_id = an_expired_order(database)
    release(f"{base_of(database)}-2", order_id)
    ALIPAY.accept()
    assert reinstate(order_id) == SentBack(1)
    assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
    assert order_row(database) == EXPIRED


@pytest.mark.parametrize(
    "changed",
    [
        {"status": OrderStatus.PAID},
        {"close_reason": CloseReason.CANCELLED},
        {"reservation_id": None},
        {"expires_at": None},
    ],
)
def test_nothing_but_an_expired_order_with_a_hold_and_an_end_may_be_revived(
    database, policy, changed
):
    an_expired_order(database)
    order = in_transaction(lambda tx: store.lock_order_of_trade(tx, "O1"))
    assert order is not None
    assert may_be_reinstated(order, order.expires_at)
    assert not may_be_reinstated(replace(order, **changed), order.expires_at)


# --- what contradicts itself ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("UPDATE oms_order SET close_reason = 'CANCELLED'", "cannot be reinstated"),
        ("UPDATE ims_reservation SET state = 'CONFIRMED'", "of a closed order"),
        ("UPDATE oms_order SET reservation_id = NULL", "never had a hold"),
    ],
)
def test_an_order_that_contradicts_itself_is_not_paid(database, policy, broken, why):
    order_id = an_expired_order(database)
    database.execute(broken)
    before = [database.rows(f"SELECT * FROM {table}") for table in TOUCHED]  # noqa: S608

    def pay(tx: Tx) -> None:
        order = store.lock_order(tx, order_id)
        assert order is not None
        take_up(tx, order, ALL, "test", {})

    with pytest.raises(InvariantBroken, match=why):
        in_transaction(pay)
    assert [database.rows(f"SELECT * FROM {table}") for table in TOUCHED] == before  # noqa: S608
