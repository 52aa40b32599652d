"""Goal: every guard of what goes back is missed when it is gone, on the order and on the payment.

Method: see guards.py. Refunds are told by the channel as cumulative sums; where the code looks
before the statement does, the proof calls the statement as code that had not looked would.
"""

from decimal import Decimal
from functools import partial
from typing import Final

import pytest

from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.db.transaction import Tx, in_transaction
from lockstep.orders import refund_store as order_refunds
from lockstep.orders import store as orders
from lockstep.orders.model import Order
from lockstep.orders.refund import record_refund
from lockstep.payments import refundable_store as refundable
from lockstep.payments import store
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.concurrency.guards import Guard, assert_missed
from tests.concurrency.taking_away import Clause, constraint
from tests.support.builders import a_sku, a_trade_notice, an_order
from tests.support.channel import cancel
from tests.support.database import Database

# --- of an order ---------------------------------------------------------------------------------


def unpaid(database: Database) -> Order:
    a_sku(database)
    return an_order()


def paid(database: Database) -> Order:
    order = unpaid(database)
    assert accept(a_trade_notice(order)) is Result.APPLIED
    return order


def refund_of(database: Database, order: Order, *sums: str) -> tuple[str, Decimal]:
    """The order's status and refunded amount after these cumulative sums."""

    def record(tx: Tx, refunded: Decimal) -> None:
        locked = orders.lock_own_order(tx, order.member_id, order.order_no)
        assert locked is not None
        record_refund(tx, locked, refunded, "test", {})

    for each in sums:
        in_transaction(partial(record, refunded=Decimal(each)))
    row = database.one("SELECT status, refunded_amount FROM oms_order")
    return row["status"], row["refunded_amount"]


def refund_told_in_the_wrong_order(database: Database) -> tuple[str, Decimal]:
    return refund_of(database, paid(database), "5.00", "3.00")


def refund_more_than_was_paid(database: Database) -> tuple[str, Decimal]:
    return refund_of(database, paid(database), "9.91")


def refund_an_unpaid_order(database: Database) -> tuple[str, Decimal]:
    return refund_of(database, unpaid(database), "5.00")


def refund_nothing_of_an_unpaid_order(database: Database) -> tuple[str, Decimal]:
    return refund_of(database, unpaid(database), "0.00")


def refund_in_part(database: Database) -> tuple[str, Decimal]:
    return refund_of(database, paid(database), "5.00")


def refund_in_part_while_refunding(database: Database) -> tuple[str, Decimal]:
    order = paid(database)
    database.execute("UPDATE oms_order SET prev_status = status, status = 'REFUNDING'")
    return refund_of(database, order, "5.00")


# --- of a payment --------------------------------------------------------------------------------


def money_that_came_late(database: Database) -> TradeNotice:
    order = unpaid(database)
    cancel(order.member_id, order.order_no)
    late = a_trade_notice(order)
    assert accept(late) is Result.REFUND_PENDING
    return late


def refund_notice(paid_by: TradeNotice, refunded: str) -> TradeNotice:
    return a_trade_notice(
        kind=NoticeKind.REFUND,
        out_trade_no=paid_by.out_trade_no,
        trade_no=paid_by.trade_no,
        total_amount=paid_by.total_amount,
        refund_fee=Decimal(refunded),
    )


def payment(database: Database) -> tuple[str, Decimal]:
    row = database.one("SELECT state, refunded_amount FROM oms_order_payment")
    return row["state"], row["refunded_amount"]


def late_money_goes_back_in_part(database: Database) -> tuple[str, Decimal]:
    accept(refund_notice(money_that_came_late(database), "5.00"))
    return payment(database)


def more_goes_back_of_a_payment_than_was_paid(database: Database) -> tuple[str, Decimal]:
    money_that_came_late(database)
    payment_id = database.value("SELECT id FROM oms_order_payment")
    in_transaction(lambda tx: refundable.add_refunded(tx, payment_id, Decimal("9.91")))
    return payment(database)


def an_applied_payment_is_marked_refunded(database: Database) -> tuple[str, Decimal]:
    paid(database)
    payment_id = database.value("SELECT id FROM oms_order_payment")

    def mark(tx: Tx) -> None:
        refundable.add_refunded(tx, payment_id, Decimal("9.90"))
        refundable.mark_payment_refunded(tx, payment_id)

    in_transaction(mark)
    return payment(database)


def finished_twice(database: Database) -> bool:
    """Whether the first notice's time is kept."""
    late = money_that_came_late(database)
    database.execute("UPDATE oms_order_payment SET finished_at = '2026-11-30'")
    accept(
        a_trade_notice(
            kind=NoticeKind.FINISHED,
            trade_status="TRADE_FINISHED",
            out_trade_no=late.out_trade_no,
            trade_no=late.trade_no,
        )
    )
    return database.count("oms_order_payment", finished_at="2026-11-30") == 1


IN_FULL: Final = "AND refunded_amount = paid_amount"
LEGAL_PAIRS: Final = constraint("oms_order", "FOREIGN KEY fk_order_transition")
LEGAL_EVENTS: Final = constraint("oms_order_event", "FOREIGN KEY fk_event_transition")
AMOUNTS: Final = constraint("oms_order", "CHECK ck_order_amounts")

BY_PAIRS: Final = "refused by fk_order_transition"
BY_EVENTS: Final = "refused by fk_event_transition"
NOTHING, FIVE, ALL = Decimal("0.00"), Decimal("5.00"), Decimal("9.90")
UNPAID: Final = "PENDING_PAYMENT"

GUARDS: Final = (
    Guard(
        "RECORD_REFUNDED_AMOUNT: more than is known",
        refund_told_in_the_wrong_order,
        ("PAID", FIVE),
        (
            (
                Clause(
                    order_refunds, "RECORD_REFUNDED_AMOUNT", "AND refunded_amount < %(refunded)s"
                ),
                ("PAID", Decimal("3.00")),
            ),
        ),
    ),
    Guard(
        "RECORD_REFUNDED_AMOUNT: no more than was paid",
        refund_more_than_was_paid,
        ("PAID", NOTHING),
        (
            (
                Clause(order_refunds, "RECORD_REFUNDED_AMOUNT", "AND paid_amount >= %(refunded)s"),
                "refused by ck_order_amounts",
            ),
            (AMOUNTS, ("PAID", Decimal("9.91"))),
        ),
    ),
    Guard(
        "RECORD_REFUNDED_AMOUNT: of a paid order",
        refund_an_unpaid_order,
        (UNPAID, NOTHING),
        (
            (
                Clause(order_refunds, "RECORD_REFUNDED_AMOUNT", "AND paid_amount >= %(refunded)s"),
                (UNPAID, NOTHING),
            ),
            (AMOUNTS, (UNPAID, NOTHING)),
            (
                Clause(
                    order_refunds,
                    "RECORD_REFUNDED_AMOUNT",
                    "AND status IN ('PAID', 'SHIPPED', 'FINISHED', 'REFUNDING')",
                ),
                (UNPAID, FIVE),
            ),
        ),
    ),
    Guard(
        "MARK_REFUNDING: of a paid order",
        refund_nothing_of_an_unpaid_order,
        (UNPAID, NOTHING),
        (
            (
                Clause(
                    order_refunds, "MARK_REFUNDING", "AND status IN ('PAID', 'SHIPPED', 'FINISHED')"
                ),
                BY_PAIRS,
            ),
            (LEGAL_PAIRS, BY_EVENTS),
            (LEGAL_EVENTS, ("REFUNDED", NOTHING)),
        ),
    ),
    Guard(
        "MARK_REFUNDING: in full",
        refund_in_part,
        ("PAID", FIVE),
        ((Clause(order_refunds, "MARK_REFUNDING", IN_FULL), ("REFUNDING", FIVE)),),
    ),
    Guard(
        "MARK_REFUNDED: from REFUNDING",
        refund_nothing_of_an_unpaid_order,
        (UNPAID, NOTHING),
        (
            (Clause(order_refunds, "MARK_REFUNDED", "AND status = 'REFUNDING'"), BY_PAIRS),
            (LEGAL_PAIRS, ("REFUNDED", NOTHING)),
        ),
    ),
    Guard(
        "MARK_REFUNDED: in full",
        refund_in_part_while_refunding,
        ("REFUNDING", FIVE),
        ((Clause(order_refunds, "MARK_REFUNDED", IN_FULL), ("REFUNDED", FIVE)),),
    ),
    Guard(
        "ADD_REFUNDED: no more than was paid",
        more_goes_back_of_a_payment_than_was_paid,
        ("REFUND_PENDING", NOTHING),
        (
            (
                Clause(refundable, "ADD_REFUNDED", "AND refunded_amount + %(amount)s <= amount"),
                "refused by ck_payment_amounts",
            ),
            (
                constraint("oms_order_payment", "CHECK ck_payment_amounts"),
                ("REFUND_PENDING", Decimal("9.91")),
            ),
        ),
    ),
    Guard(
        "MARK_PAYMENT_REFUNDED: in full",
        late_money_goes_back_in_part,
        ("REFUND_PENDING", FIVE),
        (
            (
                Clause(refundable, "MARK_PAYMENT_REFUNDED", "AND refunded_amount = amount"),
                ("REFUNDED", FIVE),
            ),
        ),
    ),
    Guard(
        "MARK_PAYMENT_REFUNDED: not APPLIED",
        an_applied_payment_is_marked_refunded,
        ("APPLIED", ALL),
        (
            (
                Clause(
                    refundable,
                    "MARK_PAYMENT_REFUNDED",
                    "AND state IN ('REFUND_PENDING', 'REFUNDING', 'REFUND_FAILED', 'UNMATCHED')",
                ),
                ("REFUNDED", ALL),
            ),
        ),
    ),
    Guard(
        "MARK_FINISHED: not known before",
        finished_twice,
        True,
        ((Clause(store, "MARK_FINISHED", "AND finished_at IS NULL"), False),),
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_the_guard_is_missed_when_it_is_gone(scratch, guard):
    assert_missed(guard, scratch)
