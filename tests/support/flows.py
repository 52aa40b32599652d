"""The operations that change something, each with the state that it starts from.

For tests that do one thing to all of them: lose an answer, die half-way. ``run`` may be called
again, as a member, a queue or Alipay would.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from lockstep.alipay.answers import Done
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Released
from lockstep.inventory.release import release
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.model import Closed, Held, NotWaiting, Placed, Replayed, SoldOut
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import Asked, AskRefund, ask_refund
from lockstep.payments.attach import attach
from lockstep.payments.give_back import GiveBack, GivenBack, give_back
from lockstep.payments.model import (
    Attached,
    NothingLate,
    Reinstated,
    Result,
    SentBack,
    Started,
)
from lockstep.payments.reinstate import reinstate
from lockstep.payments.revisit import ask, claim_notice, conclude
from tests.support.builders import a_sku, an_order, place_command
from tests.support.channel import ScriptedChannel, cancel, paid, start, sweep, the_trade, waiting
from tests.support.database import Database, forget_settings
from tests.support.late import reinstating

MEMBER = 42
LINES = {1001: 2, 1002: 1}


@dataclass(frozen=True)
class Flow:
    """``done`` says whether an outcome of ``run`` means that the work is done."""

    name: str
    prepare: Callable[[Database], None]
    run: Callable[[Database], object]
    done: Callable[[object], bool]

    def __str__(self) -> str:
        return self.name


def _skus(database: Database) -> None:
    a_sku(database, 1001)
    a_sku(database, 1002)


def _ordered(database: Database) -> None:
    _skus(database)
    an_order(LINES, member_id=MEMBER, key="k1")


def _cancelled(database: Database) -> None:
    _ordered(database)
    _cancel(database)


def _paid(database: Database) -> None:
    _ordered(database)
    _pay(database)


def _in_line(database: Database) -> None:
    _skus(database)
    database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    an_order(LINES, member_id=MEMBER, key="k1")


def _in_line_in_vain(database: Database) -> None:
    _in_line(database)
    _an_entry_takes(database, 1001, 10)


def _an_entry_takes(database: Database, sku_id: int, quantity: int) -> None:
    database.execute(
        "INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason) "
        "VALUES (%s, 'CORRECTION', %s, 'gone', 'test', 'gone')",
        (sku_id, -quantity),
    )
    database.execute(
        "UPDATE ims_sku_stock SET stock = stock - %s WHERE sku_id = %s", (quantity, sku_id)
    )


def _overdue(database: Database) -> None:
    _ordered(database)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND")


def _sold(database: Database) -> None:
    _paid(database)
    _confirm(database)


def _revivable(database: Database) -> None:
    """Money in time for an order that expired, where it may revive it; its old hold is still
    there."""
    _overdue(database)
    _expire(database)
    database.execute("UPDATE oms_order SET expires_at = '2030-01-01'")
    with pytest.MonkeyPatch.context() as patch:
        reinstating(patch)
        _pay(database)
    forget_settings()


def _revivable_in_vain(database: Database) -> None:
    _revivable(database)
    release(*_named_hold(database))
    _an_entry_takes(database, 1001, 10)


def _told_of_a_refund(database: Database) -> None:
    _ordered(database)
    accept(a_notice(database, NoticeKind.REFUND))


def _unmatched(database: Database) -> None:
    _ordered(database)
    accept(replace(a_notice(database), out_trade_no="nobody"))


def _reinstate(database: Database) -> object:
    return reinstate(database.value("SELECT id FROM oms_order"))


def _ask(database: Database) -> object:
    """As sweeps do until it is decided; the lease of whoever died over it is over by then."""
    while database.count("oms_notice", state="QUERY_DUE"):
        database.execute("UPDATE oms_notice SET asks = 0, next_ask_at = NOW(3)")
        question = claim_notice(database.value("SELECT id FROM oms_notice"))
        if question is not None:
            order = database.one("SELECT order_no, pay_amount FROM oms_order")
            trade = the_trade(out_trade_no=order["order_no"], total_amount=order["pay_amount"])
            return conclude(question, ask(ScriptedChannel(query=Done(trade)), question))
    return None


def _attach(database: Database) -> object:
    order_no = database.value("SELECT order_no FROM oms_order")
    return attach("T1", order_no, "operator:alice", "it is his")


def _place(_: Database) -> object:
    return place(place_command(LINES, member_id=MEMBER, key="k1"))


def _cancel(database: Database) -> object:
    return cancel(MEMBER, database.value("SELECT order_no FROM oms_order"))


def _pay(database: Database) -> object:
    return accept(a_notice(database))


def _refund(database: Database) -> object:
    return accept(a_notice(database, NoticeKind.REFUND))


def _ask_refund(database: Database) -> object:
    order_no = database.value("SELECT order_no FROM oms_order")
    return ask_refund(AskRefund(order_no, "k1", "alice", "broken", restock={1001: 1}))


def _give_back(_: Database) -> object:
    return give_back(GiveBack("T1", "alice", "nobody claims it"))


def _confirm(database: Database) -> object:
    return confirm(*_named_hold(database))


def _release(database: Database) -> object:
    return release(*_named_hold(database))


def _hold(database: Database) -> object:
    reservation_id, order_id = _named_hold(database)
    return hold(order_id, reservation_id)


def _expire(database: Database) -> object:
    return expire(database.value("SELECT id FROM oms_order"))


def _named_hold(database: Database) -> tuple[str, int]:
    row = database.one("SELECT reservation_id, id FROM oms_order")
    return row["reservation_id"], row["id"]


def a_notice(database: Database, kind: NoticeKind = NoticeKind.PAYMENT) -> TradeNotice:
    """What Alipay says of the only order: the same notice for the same kind."""
    refunded = kind is NoticeKind.REFUND
    order = database.one("SELECT order_no, pay_amount FROM oms_order")
    at = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)
    return TradeNotice(
        kind=kind,
        notify_id=f"N-{kind}",
        notify_type="trade_status_sync",
        app_id="2021000100000001",
        seller_id="2088000000000001",
        trade_status="TRADE_CLOSED" if refunded else "TRADE_SUCCESS",
        out_trade_no=order["order_no"],
        trade_no="T1",
        total_amount=order["pay_amount"],
        refund_fee=order["pay_amount"] if refunded else None,
        out_biz_no=None,
        gmt_payment=at,
        gmt_refund=at if refunded else None,
        gmt_close=None,
        subject="an order",
    )


def _with_a_page(database: Database) -> None:
    _ordered(database)
    _start(database)


def _with_a_page_that_is_over(database: Database) -> None:
    _with_a_page(database)
    for table in ("oms_order", "oms_payment_attempt"):
        database.execute(f"UPDATE {table} SET expires_at = NOW(3) - INTERVAL 2 MINUTE")  # noqa: S608


def _start(database: Database) -> object:
    return start(database.value("SELECT order_no FROM oms_order"), member_id=MEMBER)


def _cancel_what_is_unpaid(database: Database) -> object:
    order_no = database.value("SELECT order_no FROM oms_order")
    return cancel(MEMBER, order_no, ScriptedChannel(query=waiting, close=Done(None)))


def _ask_about_what_is_unpaid(database: Database) -> object:
    return _sweep_after_the_lease(database, ScriptedChannel(query=waiting, close=Done(None)))


def _ask_about_what_is_paid(database: Database) -> object:
    amount = database.value("SELECT pay_amount FROM oms_order")
    return _sweep_after_the_lease(database, ScriptedChannel(query=lambda no: paid(no, str(amount))))


def _sweep_after_the_lease(database: Database, channel: ScriptedChannel) -> object:
    """The order's status, once whoever died before is relieved."""
    database.execute(
        "UPDATE oms_payment_attempt SET next_ask_at = NOW(3) WHERE next_ask_at IS NOT NULL"
    )
    sweep(lambda: True, channel)
    return database.value("SELECT status FROM oms_order")


# One transaction each.
FLOWS = (
    Flow("place", _skus, _place, lambda outcome: isinstance(outcome, Placed | Replayed)),
    Flow("hold", _in_line, _hold, lambda outcome: isinstance(outcome, Held | NotWaiting)),
    Flow("sell_out", _in_line_in_vain, _hold, lambda o: isinstance(o, SoldOut | NotWaiting)),
    Flow("expire", _overdue, _expire, lambda outcome: outcome in {True, False}),
    Flow("cancel", _ordered, _cancel, lambda outcome: isinstance(outcome, Closed)),
    Flow("pay", _ordered, _pay, lambda o: o in {Result.APPLIED, Result.REPLAYED}),
    Flow("pay_late", _cancelled, _pay, lambda o: o in {Result.REFUND_PENDING, Result.REPLAYED}),
    Flow("refund", _paid, _refund, lambda o: o in {Result.REFUND_RECORDED, Result.REPLAYED}),
    Flow("start", _ordered, _start, lambda outcome: isinstance(outcome, Started)),
    Flow("ask_refund", _sold, _ask_refund, lambda outcome: isinstance(outcome, Asked)),
    Flow("give_back", _unmatched, _give_back, lambda outcome: isinstance(outcome, GivenBack)),
    Flow("reinstate", _revivable, _reinstate, lambda o: isinstance(o, Reinstated | NothingLate)),
    Flow(
        "reinstate_in_vain",
        _revivable_in_vain,
        _reinstate,
        lambda o: isinstance(o, SentBack | NothingLate),
    ),
    Flow("attach", _unmatched, _attach, lambda outcome: isinstance(outcome, Attached)),
    Flow("confirm", _paid, _confirm, lambda outcome: isinstance(outcome, Confirmed)),
    Flow("release", _cancelled, _release, lambda outcome: isinstance(outcome, Released)),
)

# The channel is asked between two transactions.
TALKS = (
    Flow("cancel_asked", _with_a_page, _cancel_what_is_unpaid, lambda o: isinstance(o, Closed)),
    Flow("expire_asked", _with_a_page_that_is_over, _ask_about_what_is_unpaid, "CLOSED".__eq__),
    Flow("poll_paid", _with_a_page, _ask_about_what_is_paid, "PAID".__eq__),
    Flow("ask", _told_of_a_refund, _ask, lambda o: o in {Result.REFUND_RECORDED, None}),
)
